# shellcheck shell=bash
# Disks: loop devices on sparse files, listed in $DIR/disks as HOST NAME /dev/loopN. A host has no udevd, because all hosts
# would get the same kernel events: a watcher does its work. The kernel may have no partition table parser: `reread` does
# its work.
ON_FILE=osd-migrate/osd-on-file.img # below a host's dataDirHostPath: the disk of TEST_ENVIRONMENT_OSD_STORE_ON_FILE
DISK_GIB=6 # ceph-volume rejects less than 5 GB as "insufficient space"

new_disk() { # HOST NAME GIB -> /dev/loopN
  local f="$DIR/img/$2.img" l
  truncate -s "${3}G" "$f" || return 1
  exec 8> "$DIR/disks.lock"
  flock 8
  l=$(attach_loop "$f")
  [ -n "$l" ] && echo "$1 $2 $l" >> "$DIR/disks"
  exec 8>&-
  [ -n "$l" ] || return 1
  sync_dev "$1"
  echo "$l"
}

# Each lab has its own range of numbers. `losetup -f` would return the lowest unused number, which may be that of a disk
# that another lab has removed and will attach again.
first_loop() { echo $((16 + 64 * (0x${LAB_ID: -6} % 1000))); }
attach_loop() { # FILE -> /dev/loopN
  local n first
  first=$(first_loop)
  for ((n = first; n < first + 64; n++)); do
    [ ! -e "/sys/block/loop$n/loop/backing_file" ] && losetup -P "/dev/loop$n" "$1" && echo "/dev/loop$n" && return
  done
}

reread() { # /dev/loopN: updates the kernel's partitions from the table. Changes only those that differ: `partx -u` removes
  # correct partitions for a moment, changes their minor numbers, and stops at a gap in their numbers.
  local k=${1#/dev/} p have want n start size
  have=$(for p in "/sys/block/$k/$k"p*; do
    [ -e "$p/start" ] && echo "${p##*p} $(cat "$p/start") $(cat "$p/size")"
  done | sort)
  want=$(partx -g -r -o NR,START,SECTORS "$1" 2> /dev/null | awk '{print $1, $2, $3}' | sort)
  while read -r n _; do delpart "$1" "$n"; done < <(comm -23 <(echo "$have") <(echo "$want") | grep .)
  while read -r n start size; do addpart "$1" "$n" "$start" "$size"; done < <(comm -13 <(echo "$have") <(echo "$want") | grep .)
}

file_loops() { # HOST -> loopN of the file for tests. The agents create these devices, so they are in no list
  local f="$DIR/h/$1/rook/$ON_FILE" l inode
  [ -e "$f" ] || return 0
  while read -r l inode; do
    [ "$inode" != "$(stat -c %i "$f")" ] || echo "${l#/dev/}"
  done < <(losetup -n -l -O NAME,BACK-INO)
}

sync_dev() { # HOST: updates its /dev, /sys and /run/udev from its disks
  local h=$1 on_host name l k part dev p
  ! is_uml "$h" || return 0 # it has a udevd
  p=$(pid_of "$h") || return 0
  exec 9> "$DIR/pids/$h.lock"
  flock 9
  while read -r on_host name l; do
    [ "$on_host" = "$h" ] || continue
    k=${l#/dev/}
    for part in "/sys/block/$k" "/sys/block/$k/$k"p*; do
      { read -r dev < "$part/dev"; } 2> /dev/null || continue
      { [[ $name = kubelet-* ]] || grep -qxs "$name" "$DIR/no-id"; } && name=-
      echo "${part##*/} $k ${dev%:*} ${dev#*:} $name"
    done
  done < <(cat "$DIR/disks"; file_loops "$h" | sed "s,.*,$h on-file /dev/&,") | nsenter -t "$p" -m -p bash "$SRC/lib/sync_dev.sh"
  exec 9>&-
}

# Does the work of udevd when partitions change. Checks twice a second, and starts a process only after a change.
watch_disks() {
  local -A seen now
  local h l k part a b c idle
  shopt -s nullglob
  exec {idle}<> <(:) # never has a line: a read with a timeout is a sleep without a process
  while [ -e "$DIR/env" ] && pid_of_unforked net; do
    now=()
    while read -r h _ l; do
      k=${l#/dev/}
      now[$h]+=" $k"
      for part in "/sys/block/$k/$k"p*; do
        { read -r a < "$part/dev" && read -r b < "$part/start" && read -r c < "$part/size"; } 2> /dev/null || continue
        now[$h]+=" ${part##*/}:$a:$b:$c"
      done
    done 2> /dev/null < "$DIR/disks"
    for h in $NODES; do # sync_dev finds out which host a loop device of the file belongs to
      if [ -e "$DIR/h/$h/rook/$ON_FILE" ]; then
        for part in /sys/block/loop*/loop/backing_file; do
          { read -r a < "$part"; } 2> /dev/null && [[ $a = *"${ON_FILE##*/}" ]] && now[$h]+=" $part"
        done
      fi
      [ "${seen[$h]:-}" = "${now[$h]:-}" ] || { sync_dev "$h"; seen[$h]=${now[$h]:-}; }
    done
    read -rt 0.5 -u "$idle" || true
  done
}
pid_of_unforked() { # NAME: like pid_of, but without starting a process
  local p t stat
  { read -r p t < "$DIR/pids/$1" && read -r stat < "/proc/$p/stat"; } 2> /dev/null || return 1
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  [ "${20}" = "$t" ]
}
start_watcher() {
  OSD_LAB=$LAB_ID setsid env "LAB_DIR=$DIR" "LAB_CACHE=$CACHE" bash -c '
    SRC=$1; . "$SRC/lib/common.sh"; . "$SRC/lib/disks.sh"; with_nodes "$2"; watch_disks' disk-watcher "$SRC" "$NODE_COUNT" < /dev/null >> "$DIR/log/watcher.log" 2>&1 &
  save_pid watcher $!
}

cmd_disk() { # HOST [GIB] NAME
  local gib=$DISK_GIB
  [ $# = 3 ] && { gib=$2; set -- "$1" "$3"; }
  [ $# = 2 ] || usage "disk HOST [GIB] NAME"
  need_number "$gib"
  case " $NODES " in *" $1 "*) ;; *) usage "there is no node '$1' ($NODES)" ;; esac
  [[ $2 =~ ^[a-z0-9][a-z0-9.-]*$ ]] || usage "not a name for a disk: '$2'"
  [ ! -e "$DIR/img/$2.img" ] || die "disk $2 already exists"
  if is_uml "$1"; then truncate -s "${gib}G" "$DIR/img/$2.img" && plug_uml "$2" "$2" || die "no disk"; return; fi
  new_disk "$1" "$2" "$gib" || die "no disk"
}

cmd_no_id() { # NAME: removes the disk's name under /dev/disk/by-id, like that of a virtio disk without a serial number
  local host
  [ $# = 1 ] || usage "no-id NAME"
  host=$(awk -v n="$1" '$2 == n {print $1}' "$DIR/disks")
  [ -n "$host" ] || die "no host has a disk $1"
  echo "$1" >> "$DIR/no-id"
  sync_dev "$host"
}

cmd_settle() { # HOST: probes its disks, as udevd does after a write
  args_at_most 1 "$@"
  case " $NODES " in
    *" ${1:-} "*) if is_uml "$1"; then on_uml udevadm settle; else sync_dev "$1"; fi ;;
    *) usage "there is no node '${1:-}' ($NODES)" ;;
  esac
}

cmd_partition() { # NAME GIB...: creates a GPT with partitions of these sizes on a disk (the name given to lab disk)
  local host l n=0 gib args=()
  [ $# -ge 2 ] || usage "partition NAME GIB..."
  read -r host _ l < <(awk -v n="$1" '$2 == n' "$DIR/disks")
  [ -n "${l:-}" ] || die "no host has a disk $1"
  shift
  for gib; do
    need_number "$gib"
    n=$((n + 1))
    args+=("-n$n:0:+${gib}G" "-t$n:8300" "-u$n:$(newuuid)")
  done
  on "$host" sgdisk "${args[@]}" "$l" > /dev/null || die "$l could not be partitioned"
  reread "$l"
  sync_dev "$host"
  for ((gib = 1; gib <= n; gib++)); do echo "${l}p$gib"; done
}

cmd_digest() { # NAME [PART]: prints the SHA-256 of a disk or of a partition, read from the disk and not from a cache
  local host l dev
  [ $# -ge 1 ] && [ $# -le 2 ] || usage "digest NAME [PART]"
  read -r host _ l < <(awk -v n="$1" '$2 == n' "$DIR/disks")
  [ -n "${l:-}" ] || die "no host has a disk $1"
  dev=$l${2:+p$2}
  on "$host" bash -c 'set -e -o pipefail; blockdev --flushbufs "$1"; blockdev --flushbufs "$2"
    dd if="$2" bs=1M iflag=direct status=none | sha256sum | cut -d" " -f1' - "$l" "$dev" || die "$dev could not be read"
}

# Prints the loop devices that kubelets of this lab attached to block volumes (losetup-kubelet), as far as they are attached.
kubelet_loops() {
  local k
  awk '$2 ~ /^kubelet-/ {print $3}' "$DIR/disks" | while read -r k; do [ ! -e "/sys/block/${k#/dev/}/loop" ] || echo "$k"; done
}

detach_disks() { # detaches loop devices on files of this lab; a mount that is being removed may use one for a moment
  local l f h left
  for _ in {1..50}; do
    left=0
    for l in $(kubelet_loops); do left=1; losetup -d "$l" 2> /dev/null; done # first: they keep the disks below in use
    for h in $NODES; do
      for l in $(file_loops "$h"); do left=1; losetup -d "/dev/$l" 2> /dev/null; done
    done
    while read -r l f; do
      case $f in "$DIR/img/"*) ;; *) continue ;; esac
      left=1
      partx -d "$l" 2> /dev/null
      losetup -d "$l" 2> /dev/null
    done < <(losetup -n -l -O NAME,BACK-FILE)
    [ $left = 0 ] && return
    sleep 0.1
  done
}
