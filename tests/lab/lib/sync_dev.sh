#!/bin/bash
# Runs inside a host. Creates the device nodes of its disks and partitions, the links and the database of udev, and its own
# view of /sys/block, /sys/class/block, /sys/dev/block. Input: lines NAME DISK MAJOR MINOR LABEL; LABEL is "-" if the disk has
# no name under /dev/disk/by-id.
# Changes only what differs, because another process may open a device by one of these names at the same time.
cd /dev || exit 1
shopt -s nullglob
umask 022
declare -A keep
link() { # TARGET NAME: replaces the link atomically
  keep[$2]=1
  [ "$(readlink "$2")" = "$1" ] || { ln -sfn "$1" "$2.new" && mv -fT "$2.new" "$2"; }
}
udev=/run/udev
mkdir -p disk/by-partuuid disk/by-id disk/by-partlabel $udev/data
touch $udev/control
while read -r n disk a b label; do
  keep[$n]=1
  [ "$(stat -c %t:%T "$n" 2> /dev/null)" = "$(printf %x:%x "$a" "$b")" ] || { rm -f "$n"; mknod -m 660 "$n" b "$a" "$b"; }
  path=devices/virtual/block/$disk
  if [ "$n" = "$disk" ]; then link "../$path" "/sys/block/$n"; else path=$path/$n; fi
  link "../../$path" "/sys/class/block/$n"
  link "../../$path" "/sys/dev/block/$a:$b"
  id=lab-$label
  [ "$n" = "$disk" ] || id+=-part${n##*p}
  info=$(blkid -p -o udev "$n" 2> /dev/null)
  f=$udev/data/b$a:$b
  keep[$f]=1
  {
    [ "$label" = - ] || echo "S:disk/by-id/$id"
    echo I:1000000
    [ -n "$info" ] && sed s/^/E:/ <<< "$info"
    printf 'G:systemd\nQ:systemd\nV:1\n'
  } > "$f.new"
  if cmp -s "$f.new" "$f"; then rm "$f.new"; else mv -f "$f.new" "$f"; fi
  [ "$label" = - ] || link "../../$n" "disk/by-id/$id"
  u=$(sed -n s/^ID_PART_ENTRY_UUID=//p <<< "$info"); [ -n "$u" ] && link "../../$n" "disk/by-partuuid/$u"
  u=$(sed -n s/^ID_PART_ENTRY_NAME=//p <<< "$info"); [ -n "$u" ] && link "../../$n" "disk/by-partlabel/$u"
done
for f in loop[0-9]* disk/by-*/* $udev/data/b* /sys/block/loop* /sys/class/block/loop* /sys/dev/block/7:* /sys/dev/block/259:*; do
  [ -n "${keep[$f]:-}" ] || rm -f "$f"
done
