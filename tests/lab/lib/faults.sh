# shellcheck shell=bash
# Faults of a lab: a Ceph image whose ceph-volume fails as configured, disks that are removed and attached, a host that loses
# power. The cached images of the labs do not depend on these files.

cmd_faults() { # creates the image; /run/udev/lab-faults-osd.ID of a host lists the faults of osd.ID, one a line
  local t n name=$CEPH_IMAGE-faulty
  args_at_most 0 "$@"
  t=$(mktemp -d "$DIR/image.XXXXXX")
  install -D -m 755 "$SRC/faults/ceph-volume" "$t/tree/usr/local/sbin/ceph-volume"
  install -D -m 755 -t "$t/tree/usr/local/lib/lab-faults" "$SRC/faults/ceph" "$SRC/faults/ceph-osd"
  install -D -m 755 "$SRC/faults/behind/ceph" "$t/tree/usr/local/lib/lab-faults/behind/ceph"
  tar -C "$t/tree" --owner=0 --group=0 -cf "$t/top.layer" usr/local/sbin/ceph-volume usr/local/lib/lab-faults
  oci_archive "$t/image.tar" "$name" "$CACHE/img/ceph-$RELEASE.json" '{}' "$t/top.layer" || die "no image"
  for n in $NODES; do
    on "$n" ctr -n k8s.io images import "$t/image.tar" > "$t/log" 2>&1 || { cat "$t/log" >&2; die "the import failed"; }
  done
  rm -rf "$t"
  echo "$name"
}

cmd_pull() { # NAME: removes a disk from its host, but not its image. Prints its device.
  local host l
  [ $# = 1 ] || usage "pull NAME"
  if [ -n "${UML:-}" ] && grep -lqx "LAB_NAME=$1" "$DIR"/h/u1/disks/ubd* 2> /dev/null; then pull_uml "$1"; return; fi
  exec 8> "$DIR/disks.lock"
  flock 8
  read -r host _ l < <(awk -v n="$1" '$2 == n' "$DIR/disks")
  [ -n "${l:-}" ] || die "no host has a disk $1"
  partx -d "$l" 2> /dev/null
  losetup -d "$l" || die "$l cannot be detached"
  # the kernel detaches it when the last process closes it; a probe takes some milliseconds
  poll 50 0.1 test ! -e "/sys/block/${l#/dev/}/loop/backing_file" || die "$l is in use"
  awk -v n="$1" '$2 != n' "$DIR/disks" > "$DIR/disks.new"
  cat "$DIR/disks.new" > "$DIR/disks" # in place: the watcher reads it
  rm "$DIR/disks.new"
  exec 8>&-
  sync_dev "$host"
  echo "$l"
}

cmd_plug() { # HOST IMAGE [NAME] [/dev/loopN]: attaches an image of img/ to a host, with a name. Prints its device.
  local name=${3:-$2} l=${4:-} f="$DIR/img/$2.img"
  [ $# -ge 2 ] && [ $# -le 4 ] || usage "plug HOST IMAGE [NAME] [/dev/loopN]"
  [ -e "$f" ] || die "$f does not exist"
  if is_uml "$1"; then plug_uml "$name" "$2"; return; fi
  exec 8> "$DIR/disks.lock"
  flock 8
  if [ -n "$l" ]; then losetup -P "$l" "$f" || die "$l is already in use"; else l=$(attach_loop "$f"); fi
  [ -n "$l" ] || die "no loop device"
  echo "$1 $name $l" >> "$DIR/disks"
  exec 8>&-
  reread "$l"
  sync_dev "$1"
  echo "$l"
}

cmd_power_off() { # HOST: kills all its processes at once. It does not start again.
  [ $# = 1 ] || usage "power-off HOST"
  end_pid "$1" KILL || die "$1 is already powered off"
}
