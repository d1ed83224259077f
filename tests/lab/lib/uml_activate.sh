set -euo pipefail
# Does what `raw activate` does, which in 16.2.15 does not find an OSD on a mapped device (/dev/mapper/NAME is a link).
prime() {
  local home=/var/lib/ceph/osd/ceph-$ROOK_OSD_ID
  ceph-bluestore-tool --cluster=ceph prime-osd-dir --dev "$ROOK_BLOCK_PATH" --path "$home" --no-mon-config
  ln -snf "$ROOK_BLOCK_PATH" "$home/block"
  chown -R ceph:ceph "$home"
  chown ceph:ceph "$ROOK_BLOCK_PATH"
}
case $ROOK_CV_MODE in
  lvm) ceph-volume lvm activate --no-systemd --no-tmpfs "$ROOK_OSD_STORE_FLAG" "$ROOK_OSD_ID" "$ROOK_OSD_UUID" ;;
  raw) # as on a PVC: the mapping is opened with the key, then activated
    name=${ROOK_BLOCK_PATH##*/}
    [ -e "$ROOK_BLOCK_PATH" ] || printf %s "$LAB_SECRET" | cryptsetup open --key-file - "$LAB_DISK" "$name"
    case $name in host-*) prime; exit ;; esac
    ceph-volume raw activate --device "$ROOK_BLOCK_PATH" --no-systemd --no-tmpfs ${ROOK_METADATA_DEVICE:+--block.db "$ROOK_METADATA_DEVICE"} ;;
esac
