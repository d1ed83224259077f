set -euo pipefail

# Finds the volumes of this OSD by their tags, opens them where they are encrypted, and makes the data folder from them.
activate() {
    # LVM must not read images of RBD: they may need this very OSD to answer.
    echo 'devices { filter = ["r|/dev/rbd.*|"] }' >> /etc/lvm/lvm.conf
    # ceph-volume reads it, though it says no more than CEPH_ARGS does.
    if [ ! -e /etc/ceph/ceph.conf ]; then
        echo '[global]' > /tmp/ceph.conf
        export CEPH_CONF=/tmp/ceph.conf
    fi
    # No tmpfs: it would end with this container. What is in the folder is made anew each time.
    ceph-volume lvm activate --no-systemd --no-tmpfs "$ROOK_OSD_STORE_FLAG" "$ROOK_OSD_ID" "$ROOK_OSD_UUID"
}
