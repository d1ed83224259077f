set -euo pipefail
case $ROOK_CV_MODE in
  lvm) ceph-volume lvm activate --no-systemd --no-tmpfs "$ROOK_OSD_STORE_FLAG" "$ROOK_OSD_ID" "$ROOK_OSD_UUID" ;;
  raw) # as on a PVC: what has the key opens the mapping, then the mapping is activated
    name=${ROOK_BLOCK_PATH##*/}
    [ -e "$ROOK_BLOCK_PATH" ] || printf %s "$LAB_SECRET" | cryptsetup open --key-file - "$LAB_DISK" "$name"
    ceph-volume raw activate --device "$ROOK_BLOCK_PATH" --no-systemd --no-tmpfs ${ROOK_METADATA_DEVICE:+--block.db "$ROOK_METADATA_DEVICE"} ;;
esac
