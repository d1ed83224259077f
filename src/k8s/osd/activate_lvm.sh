set -euo pipefail

# Finds the volumes of this OSD by their tags, opens them if they are encrypted, and creates the data folder from them.
activate() {
    # LVM must not read RBD images: their PGs may be on this OSD, which is not running.
    echo 'devices { filter = ["r|/dev/rbd.*|"] }' >> /etc/lvm/lvm.conf
    # ceph-volume requires a ceph.conf, although CEPH_ARGS has all settings.
    if [ ! -e /etc/ceph/ceph.conf ]; then
        echo '[global]' > /tmp/ceph.conf
        export CEPH_CONF=/tmp/ceph.conf
    fi
    # No tmpfs: it would end with this container. Each activation creates the content of the folder again.
    ceph-volume lvm activate --no-systemd --no-tmpfs "$ROOK_OSD_STORE_FLAG" "$ROOK_OSD_ID" "$ROOK_OSD_UUID"
}
