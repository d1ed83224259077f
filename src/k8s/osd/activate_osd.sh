# Finds the device of this OSD: its block path, or else another disk. Then creates the data folder from it.
# `raw list` always gets a device as its argument: without one, some releases list nothing.
set -euo pipefail

carries() {
    ceph-volume raw list "$1" --format json 2>/dev/null | python3 -c '
import json, os, sys
found = json.load(sys.stdin)
found = found.values() if isinstance(found, dict) else found
fsid, osd = os.environ["ROOK_OSD_UUID"], os.environ["ROOK_OSD_ID"]
sys.exit(0 if any(o.get("osd_uuid") == fsid and str(o.get("osd_id")) == osd for o in found) else 1)' 2>/dev/null
}

# Only kernel names: with a link, ceph-volume 16.2.15 fails with an IndexError, because lsblk does not list that name.
device=$(readlink -f "$ROOK_BLOCK_PATH" || true)
if [ ! -b "$device" ] || ! carries "$device"; then
    echo "$ROOK_BLOCK_PATH does not carry osd.$ROOK_OSD_ID ($ROOK_OSD_UUID): checking every disk"
    # No process substitution: not every node has /dev/fd, and /dev is that of the node.
    device=$(
        lsblk --noheadings --list --paths --output NAME,TYPE | while read -r name type; do
            case $type in disk | part | loop | mpath) ;; *) continue ;; esac
            if carries "$name"; then
                echo "$name"
                break
            fi
        done
    ) || true
fi
if [ -z "$device" ]; then
    echo "no disk of this node carries osd.$ROOK_OSD_ID ($ROOK_OSD_UUID)" >&2
    exit 1
fi
echo "osd.$ROOK_OSD_ID is on $device"
ceph-volume raw activate --device "$device" --no-systemd --no-tmpfs

# With one device, ceph-volume links only that one. BlueStore itself checks that the other devices belong to the OSD.
link() {
    if [ -n "$2" ]; then
        ln -snf "$2" "/var/lib/ceph/osd/ceph-$ROOK_OSD_ID/$1"
        chown ceph:ceph "$2"
    fi
}
link block.db "${ROOK_METADATA_DEVICE:-}"
link block.wal "${ROOK_WAL_DEVICE:-}"
