# For tests only: the store is a file of the node. Creates the data folder from it.
set -euo pipefail

dir=/var/lib/ceph/osd/ceph-$ROOK_OSD_ID
ceph-bluestore-tool prime-osd-dir --dev "$ROOK_BLOCK_PATH" --path "$dir" --no-mon-config
if [ "$(cat "$dir/fsid")" != "$ROOK_OSD_UUID" ]; then
    echo "$ROOK_BLOCK_PATH carries $(cat "$dir/fsid"), not osd.$ROOK_OSD_ID ($ROOK_OSD_UUID)" >&2
    exit 1
fi
ln -snf "$ROOK_BLOCK_PATH" "$dir/block"
chown ceph:ceph "$ROOK_BLOCK_PATH"
