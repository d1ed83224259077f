# shellcheck shell=bash
# u1, a host with its own kernel, for what the computer's kernel does not provide: device-mapper, so LVM and LUKS, and udev. It
# is a User-Mode Linux: a complete kernel as one process, at native speed but with one CPU, on the lab's network.
UML_PACKAGES="uml-utilities kmod patchelf"
UML_MEMORY=2G
UML_NUMBER=11 # of the node: its address ends in 21

with_uml() { # from here on u1 is one of the hosts
  UML=1
  case " $NODES " in *" u1 "*) return ;; esac
  HOSTS+=" u1"
  NODES+=" u1"
  PACKAGES+=" $UML_PACKAGES"
}

# Gets the kernel. That of Debian 12 stops a process by ptrace at each system call and page fault. Since 6.16 kernels can use
# seccomp instead: a process starts in a quarter of the time. Debian's newer kernel needs a newer C library than the
# computer's, so the tree has both, and the program names its loader by an absolute path.
build_uml_kernel() {
  local d="$CACHE/uml" lib="$CACHE/uml/usr/lib"
  [ "$(cat "$d/.made" 2> /dev/null)" = "$d" ] && return
  note "getting the kernel of u1"
  rm -rf "$d"
  debian_tree sid user-mode-linux,libc6 "$d" --variant=extract || die "the kernel of u1 cannot be had"
  patchelf --set-interpreter "${lib}64/ld-linux-x86-64.so.2" --set-rpath "$lib/x86_64-linux-gnu" "$d/usr/bin/linux.uml" &&
    "$d/usr/bin/linux.uml" --version > /dev/null || die "the kernel of u1 does not start on this computer"
  echo "$d" > "$d/.made"
}

# Creates a file system with containerd's root. u1 uses it with a copy-on-write file, without a copy or an import. (Containers
# need overlayfs, which cannot be stacked on u1's own overlay.)
build_uml_disk() {
  local f="$CACHE/u1.ext4" want
  want=$(cat "$CACHE/ctrd/.made")
  [ -s "$f" ] && [ "$(cat "$f.made" 2> /dev/null)" = "$want" ] && return
  note "creating the disk of u1 from the containerd root"
  rm -f "$f" "$f.made"
  mkfs.ext4 -q -F -J size=8 -i 32768 -m 0 -d "$CACHE/ctrd" "$f.new" 8G > /dev/null || die "no disk for u1"
  mv "$f.new" "$f"
  echo "$want" > "$f.made"
}

start_uml() { # returns when it boots; `on_uml` works about 4 s later
  local b="$DIR/h/u1" u child d disks=()
  [ ${#DIR} -le 80 ] || die "LAB_DIR is too long for u1: the path of a socket ends after 107 characters"
  mkdir -p "$b"/{log/ceph,etc-ceph,ceph,run,disks} "/sys/fs/cgroup/pids/$LAB_ID/u1/daemons" /lib/modules
  rm -rf "$b/run/u1"
  (umask 077 && newuuid > "$b/token")
  net ip tuntap add tap-u1 mode tap 2> /dev/null # it already exists if u1 is started again
  net ip link set tap-u1 master "$BRIDGE" up || die "no network for u1"
  net ip route replace "10.97.$UML_NUMBER.0/24" via "$(address_of u1)"
  for d in "$b"/disks/ubd*; do [ ! -e "$d" ] || disks+=("${d##*/}=$DIR/img/$(sed -n s/^LAB_IMAGE=//p "$d").img"); done
  OSD_LAB=$LAB_ID setsid bash -c 'echo $$ > "$1"; shift; exec "$@"' host "/sys/fs/cgroup/pids/$LAB_ID/u1/daemons/cgroup.procs" \
    nsenter -t "$(pid_of net)" -n unshare -m -p --fork --kill-child --mount-proc --propagation private \
    "$CACHE/uml/usr/bin/linux.uml" seccomp=on mem=$UML_MEMORY root=/dev/root rootfstype=hostfs rootflags=/ rw init="$SRC/lib/uml_init.sh" \
    vec0:transport=tap,ifname=tap-u1,depth=64,gro=1 con=null con0=null,fd:1 umid=u1 uml_dir="$b/run" \
    "ubdp=$b/disk.cow,$CACHE/u1.ext4" "${disks[@]}" -- "$DIR" "$SRC" "$LAB_NET" $UML_NUMBER "$LAB_ID" "$CACHE/uml" \
    < /dev/null >> "$b/log/console.log" 2>&1 &
  u=$!
  save_pid u1.outer $u
  poll 200 0.05 uml_of $u || { tail -5 "$b/log/console.log" >&2; die "u1 did not start"; }
  save_pid u1 "$child"
}
uml_of() { # PID: sets `child` to the kernel that it started; for a moment there may be other children, or none
  for child in $(cat "/proc/$1/task/$1/children" 2> /dev/null); do
    [ "$(cat "/proc/$child/comm" 2> /dev/null)" = linux.uml ] && return
  done
  return 1
}
on_uml() { # CMD...
  pid_of u1 > /dev/null || die "host u1 is not running"
  net env -i "PATH=$PATH" PYTHONDONTWRITEBYTECODE=1 "OSD_LAB=$LAB_ID" /usr/bin/python3 "$SRC/py/uml_on.py" "$(address_of u1)" "$DIR/h/u1/token" "$@"
}
wait_for_uml() {
  # shellcheck disable=SC2317
  ended_or_answers() { ! pid_of u1 > /dev/null || on_uml true 2> /dev/null < /dev/null; }
  poll 300 0.2 ended_or_answers && pid_of u1 > /dev/null || { tail -5 "$DIR/h/u1/log/console.log" >&2; die "u1 does not answer (see $DIR/h/u1/log/console.log)"; }
}

run_in_uml() { # DAEMON CMD...: the daemon closes the pipes of uml_server.py, which would wait for them
  local d=$1 b="$DIR/h/u1"
  shift
  # shellcheck disable=SC2016
  on_uml setsid -f bash -c 'exec < /dev/null >> "$1" 2>&1; echo $$ > "$2"; echo $$ > "$3"; ulimit -n 1048576; shift 3; exec "$@"' \
    daemon "$b/log/$d.log" "$b/$d.pid" "/sys/fs/cgroup/$LAB_ID/u1/daemons/cgroup.procs" "$@" < /dev/null
}
start_uml_runtime() { # with plain runc, because u1's own sysfs shows only its own disks
  wait_for_uml
  containerd_config /run/containerd /var/lib/containerd runc > "$DIR/h/u1/containerd.toml"
  run_in u1 containerd containerd -c "$DIR/h/u1/containerd.toml"
}

# ---------------------------------------------------------------- disks: h/u1/disks/ubdX has the name and the image of a disk
mconsole() { # in the lab's network namespace, where the abstract socket of the answer is
  net timeout 20 uml_mconsole "$DIR/h/u1/run/u1/mconsole" "$@" > "$DIR/h/u1/log/mconsole.log" 2>&1 && ! grep -q ^ERR "$DIR/h/u1/log/mconsole.log"
}
plug_uml() { # NAME IMAGE -> /dev/ubdX
  local c d
  for c in {b..o}; do
    d="$DIR/h/u1/disks/ubd$c"
    (set -o noclobber; printf 'LAB_NAME=%s\nLAB_IMAGE=%s\n' "$1" "$2" > "$d") 2> /dev/null || continue
    mconsole config "ubd$c=$DIR/img/$2.img" || { rm "$d"; cat "$DIR/h/u1/log/mconsole.log" >&2; return 1; }
    on_uml bash -c 'for ((i = 0; i < 50; i++)); do [ -b "$1" ] && break; sleep 0.1; done; udevadm settle; test -b "$2"' - "/dev/ubd$c" "/dev/disk/by-id/lab-$1" < /dev/null ||
      { echo "lab: /dev/ubd$c did not appear in u1" >&2; return 1; }
    echo "/dev/ubd$c"
    return
  done
  echo "lab: u1 cannot have another disk" >&2
  return 1
}
pull_uml() { # NAME
  local d
  d=$(grep -lx "LAB_NAME=$1" "$DIR"/h/u1/disks/ubd* 2> /dev/null) || die "no host has a disk $1"
  mconsole remove "${d##*/}" || die "/dev/${d##*/} is in use"
  rm "$d"
  echo "/dev/${d##*/}"
}

cmd_power_on() { # u1
  [ "$*" = u1 ] && [ -n "${UML:-}" ] || usage "power-on u1 (lab up --uml); no other host can start again"
  poll 50 0.1 eval '! pid_of u1 > /dev/null' || die "u1 is already powered on" # a kernel takes a moment to end
  local cmd d
  start_uml
  wait_for_uml
  for d in containerd kubelet; do
    eval "cmd=($(cat "$DIR/h/u1/$d.cmd"))"
    run_in u1 $d "${cmd[@]}"
  done
  # the API server still has the old status of the node: ask the kubelet itself
  poll 300 0.2 K get --raw /api/v1/nodes/u1/proxy/healthz > /dev/null 2>&1 || die "u1 is not ready (see $DIR/h/u1/log)"
}
