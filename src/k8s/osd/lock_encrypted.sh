# Deferred: the daemon is still running, and the kernel locks each volume when the daemon has closed it. The hook never fails.
for link in "/var/lib/ceph/osd/ceph-$ROOK_OSD_ID"/block{,.db,.wal}; do
    if [ -L "$link" ] && cryptsetup status "$(readlink "$link")" > /dev/null; then
        cryptsetup close --deferred "$(readlink "$link")" || true
    fi
done
exit 0
