# shellcheck shell=bash
# Starts, removes and prints a lab. Ceph and Kubernetes start in parallel, then the OSD Deployments are created.
DEFAULT_LAYOUT=0=bluestore-dev,1=filestore-part,5=bluestore-dev

kind_of() { # ID: prints its kind in LAYOUT
  local e
  for e in ${LAYOUT//,/ }; do [ "${e%%=*}" = "$1" ] && { echo "${e#*=}"; return; }; done
  echo raw
}
check_layout() {
  local e
  for e in ${LAYOUT//,/ }; do
    [[ $e =~ ^[0-9]+= ]] && is_kind "${e#*=}" || usage "not a layout: '$e' (ID=KIND; kinds: $KINDS)"
    [[ $OSD_RELEASE = 16.* || $(store_of "${e#*=}") = bluestore ]] || usage "'$e': OSDs of $OSD_RELEASE have no Filestore"
    [ "${e%%=*}" -lt "$OSDS" ] || usage "the layout names osd.${e%%=*}, but there are $OSDS OSDs"
  done
}

cmd_up() {
  OSDS=6 LAYOUT='' UML=''
  local given='' uml='' hosts=3
  while [ $# -gt 0 ]; do
    case $1 in
      --layout) [ $# -ge 2 ] || usage "--layout LIST"; LAYOUT=$2 given=1; shift 2 ;;
      --osds) [[ ${2:-} = 0 ]] || need_number "${2:-}"; OSDS=$2; shift 2 ;;
      --hosts)
        [[ ${2:-} =~ ^[3-9]$ ]] || usage "--hosts N: 3 to $MOST_NODES"
        hosts=$2; shift 2 ;;
      --uml) uml=1; shift ;;
      --release | --osd-release) release_option "$@"; shift 2 ;;
      *) usage "up [--layout LIST] [--osds N] [--hosts N] [--uml] [--release R] [--osd-release R]" ;;
    esac
  done
  with_nodes "$hosts"
  [ -z "$uml" ] || with_uml
  check_releases
  [ -n "$given" ] || LAYOUT=$DEFAULT_LAYOUT
  if [ -z "$given" ] && [[ $OSD_RELEASE != 16.* ]]; then LAYOUT=$(tr , '\n' <<< "$LAYOUT" | grep -v =filestore- | paste -sd,); fi
  if [ -z "$given" ] && [ "$OSDS" -lt 6 ]; then LAYOUT=$(tr , '\n' <<< "$LAYOUT" | awk -F= -v n="$OSDS" '$1 < n' | paste -sd,); fi
  check_layout
  check_computer
  raise_limits
  already_up
  check_space
  cmd_install
  cmd_build
  make_lab
}

already_up() { # exits with 0 if the lab is up and clean
  [ -e "$DIR/env" ] || return 0
  [ -e "$DIR/ready" ] || die "the lab in $DIR was not completed. Remove it: lab down"
  local want="$OSDS $NODE_COUNT $LAYOUT $UML $RELEASE $OSD_RELEASE"
  load_lab
  [ "$want" = "$OSDS $NODE_COUNT $LAYOUT ${UML:-} $RELEASE $OSD_RELEASE" ] || die "a lab of $OSDS OSDs on $NODE_COUNT hosts, layout '$LAYOUT'${UML:+, with u1}, Ceph $RELEASE (OSDs $OSD_RELEASE) is up in $DIR. Remove it first: lab down"
  [ "$OSDS" = 0 ] || wait_clean 5 > /dev/null || die "a lab is up in $DIR, but not clean (see 'lab status')"
  nodes_ready || die "a lab is up in $DIR, but not all nodes are ready (see 'lab status')"
  note "the lab is already up"
  exit 0
}

interrupted() {
  trap - INT TERM EXIT
  # shellcheck disable=SC2046
  kill $(jobs -p) 2> /dev/null
  echo "lab: interrupted; 'lab down' removes what was started" >&2
  exit 130
}

make_lab() {
  local h id jobs=() ceph kube
  [ ! -e "$DIR" ] || [ -z "$(ls -A "$DIR")" ] || die "$DIR is neither empty nor a lab"
  mkdir -p "$DIR"/{pids,osd,log,h,img} || die "$DIR cannot be created"
  : > "$DIR/disks"
  FSID=$(newuuid) CEPH_IMAGE=$(ceph_image "$RELEASE") OSD_IMAGE=$(ceph_image "$OSD_RELEASE")
  declare -p FSID OSDS NODE_COUNT LAYOUT UML RELEASE OSD_RELEASE CEPH_IMAGE OSD_IMAGE | sed 's/^declare -[^ ]* //' > "$DIR/env"
  save_pid up $$
  trap interrupted INT TERM
  trap '[ $? = 0 ] || [ -e "$DIR/ready" ] || echo "lab: '"'lab down'"' removes what was started" >&2' EXIT

  start_network
  for h in $HOSTS; do start_host "$h" & jobs+=($!); done
  wait_jobs "${jobs[@]}"
  start_watcher
  note "hosts ready"

  start_kubernetes & kube=$!
  start_ceph & ceph=$!
  wait_jobs $ceph
  jobs=()
  for ((id = 0; id < OSDS; id++)); do make_disk "$id" "$(kind_of "$id")"; done
  for ((id = 0; id < OSDS; id++)); do make_store "$id" & jobs+=($!); done
  wait_jobs "${jobs[@]}"
  [ "$OSDS" = 0 ] || note "OSD stores created"
  wait_jobs $kube
  make_rook_objects
  if [ "$OSDS" -gt 0 ]; then
    deploy_osds
    note "OSD Deployments created"
    wait_clean 180 >&2 || die "the cluster did not become clean (see 'lab status')"
    poll 300 0.2 deployments_available || die "not all OSD Deployments are available"
  else # wait for the mgr: without it there are no PG statistics, and no message about that
    poll 300 0.2 mgr_available || die "the mgr is not available"
  fi
  rados_py epochs --now > "$DIR/ready"
  note "up: lab ceph -s, lab kubectl get pods -A"
}
wait_jobs() { # PID...
  local j rc=0
  for j; do wait "$j" || rc=1; done
  [ $rc = 0 ] || die "up failed"
}

cmd_down() {
  [ -e "$DIR/env" ] || { [ ! -e "$DIR" ] || die "$DIR is not a lab"; note "no lab is up"; return 0; }
  end_pid up && poll 30 0.1 eval '! pid_of up > /dev/null'
  end_pid client KILL
  end_pid watcher KILL
  stop_hosts
  sleep 0.2
  detach_disks
  remove_cgroups
  # a process that is ending may still write
  poll 20 0.2 rm -rf --one-file-system "$DIR" || die "$DIR could not be removed"
  note "down"
}

cmd_status() {
  args_at_most 0 "$@"
  local id h d p
  on adm ceph -s
  on adm ceph osd tree
  K get nodes -o wide
  K get pods -A -o wide
  printf '\n%-6s %-5s %-15s %-12s %s\n' OSD HOST KIND DISK UUID
  for id in $(osds); do
    printf '%-6s %-5s %-15s %-12s %s\n' "$id" "$(fact "$id" host)" "$(fact "$id" kind)" "$(fact "$id" disk)" "$(fact "$id" uuid)"
  done
  printf '\n%-6s %-24s %s\n' HOST PROCESS RSS_MIB
  for h in $HOSTS; do
    on "$h" ps -eo comm:24,rss --no-headers | awk -v h="$h" '$1 ~ /^(ceph-|kube|etcd|containerd$)/ {printf "%-6s %-24s %d\n", h, $1, $2 / 1024}'
  done
}
