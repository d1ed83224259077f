# shellcheck shell=bash
# The Ceph cluster without its OSDs: mon.a and mgr.x, native on host adm. The Python scripts in py/ use librados, which is
# hundreds of times faster than the ceph command.
PGS=32
rados_py() { on adm in-release /usr/bin/python3 "$SRC/py/$1.py" "${@:2}"; } # SCRIPT ARGS...

start_ceph() {
  local e="$DIR/h/adm/etc-ceph" h log="$DIR/log/mon.log"
  # inside the hosts: for the native programs that create the stores
  for h in $HOSTS; do render "$SRC/manifests/ceph.conf" "FSID=$FSID" "NET=$LAB_NET" "MON=$(mon_release_settings)" > "$DIR/h/$h/etc-ceph/ceph.conf"; done
  on adm bash -e -s "$FSID" "$LAB_NET.1" > "$log" 2>&1 << 'S' || { tail -5 "$log" >&2; die "the monitor could not be created"; }
    fsid=$1 addr=$2
    cd /etc/ceph
    ceph-authtool --create-keyring ceph.client.admin.keyring --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' --cap mds 'allow *'
    ceph-authtool --create-keyring bootstrap.keyring --gen-key -n client.bootstrap-osd --cap mon 'profile bootstrap-osd' --cap mgr 'allow r'
    ceph-authtool --create-keyring mon.keyring --gen-key -n mon. --cap mon 'allow *'
    ceph-authtool mon.keyring --import-keyring ceph.client.admin.keyring
    ceph-authtool mon.keyring --import-keyring bootstrap.keyring
    monmaptool --create --fsid "$fsid" --addv a "[v2:$addr:3300,v1:$addr:3301]" monmap
    mkdir -p /var/lib/ceph/mon/ceph-a /var/lib/ceph/mgr/ceph-x
    chown -R ceph:ceph /etc/ceph /var/lib/ceph/mon /var/lib/ceph/mgr
    ceph-mon --mkfs -i a --monmap monmap --keyring mon.keyring --setuser ceph --setgroup ceph
    ceph-mon -i a --setuser ceph --setgroup ceph
S
  render "$SRC/manifests/osd-settings.conf" "NET=$LAB_NET" > "$e/osd-settings.conf"
  # OSDs that are created later in an empty cluster get their weights from Ceph
  [ "$OSDS" -gt 0 ] || sed -i /^osd_crush_initial_weight/d "$e/osd-settings.conf"
  rados_py setup /etc/ceph/osd-settings.conf /var/lib/ceph/mgr/ceph-x/keyring || die "the cluster could not be set up"
  [ "$OSDS" = 0 ] || make_pool
  on adm bash -c 'chown -R ceph:ceph /var/lib/ceph/mgr && ceph-mgr -i x --setuser ceph --setgroup ceph' >> "$DIR/log/mgr.log" 2>&1 || die "ceph-mgr did not start (see $DIR/log/mgr.log)"
  # most modules of the mgr cannot be loaded in Debian's 18.2, because of one of their Python libraries
  [ "$RELEASE" != 18.2 ] || on adm ceph health mute MGR_MODULE_DEPENDENCY --sticky 2>> "$DIR/log/mgr.log" || die "the health check of the mgr's modules could not be muted"
  for h in $NODES; do
    cp "$e/ceph.client.admin.keyring" "$DIR/h/$h/etc-ceph/"
    mkdir -p "$DIR/h/$h/ceph/bootstrap-osd"
    cp "$e/bootstrap.keyring" "$DIR/h/$h/ceph/bootstrap-osd/ceph.keyring"
  done
  note "mon and mgr started"
}

cmd_ceph() {
  [ $# -ge 1 ] || usage "ceph ARGS..."
  on adm ceph "$@"
}

# An empty cluster gets its pool when it has OSDs: without OSDs the PGs would be inactive.
cmd_pool() {
  args_at_most 0 "$@"
  make_pool
}
make_pool() {
  rados_py pool "$POOL" "$PGS" || die "the pool could not be created"
}
mgr_available() { on adm ceph mgr stat -f json 2> /dev/null | jq -e .available > /dev/null; }

wait_clean() { rados_py wait_clean "$(osds | wc -l)" "$1"; } # SECONDS
cmd_wait_clean() {
  args_at_most 1 "$@"
  need_number "${1:-300}"
  wait_clean "${1:-300}"
}
