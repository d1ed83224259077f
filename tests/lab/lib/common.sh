# shellcheck shell=bash
# Paths, messages, and processes, which are identified by pid AND start time.
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset CEPH_CONF CEPH_ARGS PYTHONHOME PYTHONPATH
REPO=$(readlink -f "$SRC/../..")
DIR=$(readlink -m "${LAB_DIR:-$REPO/.lab}")
CACHE=$(readlink -m "${LAB_CACHE:-$REPO/.cache/lab}")
# Part of all names outside of $DIR (cgroups, environment of processes), so that they can be found after $DIR was removed.
LAB_ID=osd-lab-$(printf %s "$DIR" | sha256sum | cut -c1-8)
MOST_NODES=9 # with disks: h1 h2 ...
with_nodes() { # N: sets HOSTS and NODES
  local n
  NODE_COUNT=$1 NODES=
  for ((n = 1; n <= $1; n++)); do NODES+="${NODES:+ }h$n"; done
  HOSTS="adm cp $NODES"
}
with_nodes 3
is_uml() { [ "$1" = u1 ]; } # the host of uml.sh, one more node after `lab up --uml`
LAB_NET=10.99.0      # adm and cp answer at .1, node hN at .(10+N), u1 at .21
BRIDGE=${LAB_ID/osd-lab-/osdlab} # 14 characters; an interface may have 15
POOL=labpool

T0=$EPOCHREALTIME
note() { # prints a line with the seconds since the start
  local us=$(( ${EPOCHREALTIME/./} - ${T0/./} ))
  printf '[%3d.%ds] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*" >&2
}
die() { echo "lab: $*" >&2; exit 1; }
usage() { echo "lab: $* (see: lab help)" >&2; exit 2; }
cannot() { echo "lab: cannot run here: $*" >&2; exit 3; }
args_at_most() { # N ARGS...
  local n=$1; shift
  [ $# -le "$n" ] || usage "too many arguments"
}
need_number() { [[ $1 =~ ^[1-9][0-9]*$ ]] || usage "not a number: '$1'"; }
poll() { # TRIES SECONDS CMD...: waits until CMD succeeds
  local n=$1 s=$2 i; shift 2
  for ((i = 0; i < n; i++)); do "$@" && return 0; sleep "$s"; done
  return 1
}

# ---------------------------------------------------------------- processes
start_time() { awk '{sub(/.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null; }
save_pid() { echo "$2 $(start_time "$2")" > "$DIR/pids/$1"; } # NAME PID
pid_of() { # NAME -> pid, if it still is the process that was started
  local p t
  { read -r p t < "$DIR/pids/$1"; } 2>/dev/null || return 1
  [ -n "$t" ] && [ "$(start_time "$p")" = "$t" ] && echo "$p"
}
end_pid() { # NAME [SIGNAL]
  local p
  p=$(pid_of "$1") && kill -"${2:-TERM}" "$p" 2>/dev/null
}

# ---------------------------------------------------------------- a lab that is up
load_lab() {
  [ -f "$DIR/env" ] || die "no lab is up in $DIR. Create one: lab up"
  # shellcheck source=/dev/null
  . "$DIR/env"
  with_nodes "$NODE_COUNT"
  [ -z "${UML:-}" ] || with_uml
  pid_of net >/dev/null || die "the lab in $DIR is not running any more. Remove it: lab down"
}
# facts of one OSD: host, kind, disk, uuid (and journal)
fact() { sed -n "s/^$2=//p" "$DIR/osd/$1" 2>/dev/null | tail -1; }
set_fact() { echo "$2=$3" >> "$DIR/osd/$1"; }
osds() { for f in "$DIR"/osd/*; do [ -e "$f" ] && echo "${f##*/}"; done | sort -n; }

render() { # FILE KEY=VALUE...: prints the file with every @KEY@ replaced
  local t kv
  t=$(< "$1"); shift
  for kv; do t=${t//"@${kv%%=*}@"/"${kv#*=}"}; done
  printf '%s\n' "$t"
}
