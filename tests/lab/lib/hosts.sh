# shellcheck shell=bash
# Hosts: namespaces of this computer, created once, for Ceph and Kubernetes. They share one network namespace, in which
# every node has its own address on a bridge. The network is not visible outside, and no packet leaves it.
CGROUPS="cpu cpuacct cpuset memory devices freezer blkio pids systemd" # all that a kubelet with cgroup v1 needs

start_network() {
  local p n="$LAB_NET"
  # lo has 10.96.0.1, the address of the service "kubernetes": the API can be reached without a kube-proxy
  OSD_LAB=$LAB_ID setsid unshare -n --propagation private bash -c '
    ip link set lo up; ip addr add 10.96.0.1/32 dev lo; ip link add $1 type bridge
    ip addr add $2.1/24 dev $1; for ((i = 1; i <= $4; i++)); do ip addr add $2.$((10 + i))/24 dev $1; done
    ip link set $1 up; ip route add default dev $1; sysctl -qw net.ipv4.ip_forward=1; touch "$3"
    exec sleep infinity' network "$BRIDGE" "$n" "$DIR/network-ready" "$NODE_COUNT" < /dev/null > "$DIR/log/network.log" 2>&1 &
  p=$!
  save_pid net $p
  poll 100 0.05 test -e "$DIR/network-ready" || die "the network namespace did not start (see $DIR/log/network.log)"
}

address_of() { # NODE
  if is_uml "$1"; then echo "$LAB_NET.$((10 + UML_NUMBER))"; else echo "$LAB_NET.$((10 + ${1#h}))"; fi
}

start_host() { # NAME
  if is_uml "$1"; then start_uml; return; fi
  local name=$1 b="$DIR/h/$1" role=plain u child
  mkdir -p "$b/log"
  case " $NODES " in *" $name "*) role=node ;; esac
  mkdir -p "/sys/fs/cgroup/pids/$LAB_ID/$name/daemons"
  # all processes of a host are in one cgroup, so that remaining processes can be found
  OSD_LAB=$LAB_ID setsid bash -c 'echo $$ > "$1"; shift; exec "$@"' host "/sys/fs/cgroup/pids/$LAB_ID/$name/daemons/cgroup.procs" \
    nsenter -t "$(pid_of net)" -n unshare -m -u -p --fork --kill-child --mount-proc --propagation private \
    bash "$SRC/lib/host_init.sh" "$name" "$b" $role "${name#h}" < /dev/null > "$b/log/init.log" 2>&1 &
  u=$!
  save_pid "$name.outer" $u
  poll 200 0.05 test -e "$b/ready" || { cat "$b/log/init.log" >&2; die "host $name did not start"; }
  child=$(cat "/proc/$u/task/$u/children") # outside of the host, the pid of its pid 1
  save_pid "$name" "${child%% *}"
  give_release "$name" || die "Ceph could not be provided on host $name"
}

# sets ENTER to the command prefix that enters a host, with the environment of a root login there
enter() { # HOST
  local p
  p=$(pid_of "$1") || die "host $1 is not running"
  ENTER=(nsenter -t "$p" -m -u -p -n env -i "PATH=$DIR/h/$1/bin:$PATH" LC_ALL=C HOME=/root TERM=dumb PYTHONDONTWRITEBYTECODE=1 "OSD_LAB=$LAB_ID"
    CEPH_VOLUME_ALLOW_LOOP_DEVICES=1 LVM_SUPPRESS_FD_WARNINGS=1)
}
on() { # HOST CMD...
  if is_uml "$1"; then shift; on_uml "$@"; return; fi
  local ENTER
  enter "$1"
  shift
  "${ENTER[@]}" "$@"
}
net() { nsenter -t "$(pid_of net || die "the lab's network is gone")" -n "$@"; }

run_in() { # HOST DAEMON CMD...: starts a daemon; DAEMON.pid has its pid in the host's own PID namespace
  local h=$1 d=$2 b="$DIR/h/$1" p
  shift 2
  printf '%q ' "$@" > "$b/$d.cmd"
  if is_uml "$h"; then run_in_uml "$d" "$@"; return; fi
  p=$(pid_of "$h") || die "host $h is not running"
  OSD_LAB=$LAB_ID setsid nsenter -t "$p" -m -u -p -n bash -c 'echo $$ > "$1"; echo $$ > "$2"; ulimit -n 1048576; shift 2; exec "$@"' \
    daemon "$b/$d.pid" "/sys/fs/cgroup/pids/$LAB_ID/$h/daemons/cgroup.procs" "$@" < /dev/null >> "$b/log/$d.log" 2>&1 &
}

cmd_restart() { # HOST DAEMON
  [ $# = 2 ] || usage "restart HOST DAEMON"
  local b="$DIR/h/$1" cmd
  [ -e "$b/$2.cmd" ] || usage "there is no $2 on '$1'"
  # shellcheck disable=SC2016
  on "$1" bash -c 'p=$(cat "$1"); kill "$p" 2>/dev/null
    for ((i = 0; i < 30; i++)); do kill -0 "$p" 2>/dev/null || exit 0; sleep 0.1; done; kill -9 "$p"' - "$b/$2.pid"
  eval "cmd=($(cat "$b/$2.cmd"))"
  run_in "$1" "$2" "${cmd[@]}"
}
cmd_on() {
  [ $# -ge 2 ] || usage "on HOST CMD..."
  case " $HOSTS " in *" $1 "*) ;; *) usage "there is no host '$1' ($HOSTS)" ;; esac
  on "$@"
}
cmd_net() {
  [ $# -ge 1 ] || usage "net CMD..."
  export KUBECONFIG="$DIR/kubeconfig" KUBECACHEDIR="$DIR/kube-cache" PATH="$CACHE/bin:$PATH" OSD_LAB=$LAB_ID
  net "$@"
}

stop_hosts() {
  local h
  with_nodes "$MOST_NODES"
  for h in $HOSTS u1; do # nothing is ended of hosts that the lab does not have
    end_pid "$h" KILL       # ends all processes in its PID namespace
    end_pid "$h.outer" KILL # if the start was interrupted between the two
  done
  end_pid net KILL
}
remove_cgroups() {
  local c left
  for _ in {1..50}; do
    left=0
    for c in /sys/fs/cgroup/*/"$LAB_ID"; do
      [ -d "$c" ] || continue
      find "$c" -depth -type d -exec rmdir {} + 2> /dev/null
      [ -d "$c" ] && left=1
    done
    [ $left = 0 ] && return
    sleep 0.1
  done
}
