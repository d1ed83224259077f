
# The hook that locks the volumes also runs if the kubelet restarts only this container: then the volumes are still locked.
is_open() {
    local link
    for link in "/var/lib/ceph/osd/ceph-$ROOK_OSD_ID"/block{,.db,.wal}; do
        [ ! -L "$link" ] || cryptsetup status "$(readlink "$link")" > /dev/null || return 1
    done
}

if ! is_open; then
    activate
    chown --recursive ceph:ceph "/var/lib/ceph/osd/ceph-$ROOK_OSD_ID"
fi
exec "$@"
