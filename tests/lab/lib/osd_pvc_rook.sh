#!/bin/bash
# ceph osd start -- ARGUMENTS: does what Rook's program does for an OSD on a volume of LVM on its PersistentVolumeClaim.
set -eo pipefail
[ "$1 $2 $3 $4" = "ceph osd start --" ] || { echo "unexpected arguments: $*" >&2; exit 2; }
shift 4
bash /rook/disk "/mnt/$LAB_PVC"
group=$(dirname "$ROOK_BLOCK_PATH")
vgchange --activate y "${group##*/}"
ceph-volume lvm activate --no-systemd --no-tmpfs --bluestore "$ROOK_OSD_ID" "$ROOK_OSD_UUID"
exec ceph-osd "$@"
