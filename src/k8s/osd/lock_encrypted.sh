# Deferred: the kernel locks each volume when the daemon, which still runs, has closed it. Never fails: there is nothing to lose.
for link in "/var/lib/ceph/osd/ceph-$ROOK_OSD_ID"/block{,.db,.wal}; do
    if [ -L "$link" ] && cryptsetup status "$(readlink "$link")" > /dev/null; then
        cryptsetup close --deferred "$(readlink "$link")" || true
    fi
done
exit 0
