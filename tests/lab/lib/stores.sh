# shellcheck shell=bash
# OSD stores, made natively on the hosts; the daemons run as pods. $DIR/osd/ID holds the facts of one OSD.
LEGACY_DATA=/var/lib/rook # Rook 1.2 kept OSD data at <dataDirHostPath>/osd<id>

host_of_osd() { echo "h$(($1 % 3 + 1))"; }
newuuid() { cat /proc/sys/kernel/random/uuid; }

# The disks, with their partitions, one after the other and before any store: while a table is re-read its partitions come
# and go, and ceph-volume on that host, which looks at every device, dies of a file in /sys that vanishes under it.
make_disk() { # ID KIND
  local id=$1 kind=$2 h disk
  h=$(host_of_osd "$id")
  disk=$(new_disk "$h" "osd$id" "$DISK_GIB") || die "no disk for osd.$id"
  : > "$DIR/osd/$id"
  set_fact "$id" host "$h"
  set_fact "$id" kind "$kind"
  set_fact "$id" disk "$disk"
  [ "$kind" != filestore-part ] || partition_as_ceph_disk "$id" "$h" "$disk" >> "$DIR/log/osd.$id.log" 2>&1 ||
    die "the disk of osd.$id could not be partitioned (see $DIR/log/osd.$id.log)"
}

make_store() { # ID
  local id=$1 kind log="$DIR/log/osd.$1.log"
  kind=$(fact "$id" kind)
  "make_${kind//-/_}" "$id" "$(fact "$id" host)" "$(fact "$id" disk)" >> "$log" 2>&1 ||
    { tail -5 "$log" >&2; die "osd.$id ($kind) could not be made (see $log)"; }
}

make_raw() { # ID HOST DISK
  local d="/var/lib/ceph/osd/ceph-$1"
  on "$2" ceph-volume raw prepare --bluestore --data "$3" --osd-id "$1" || return 1
  set_fact "$1" uuid "$(on "$2" cat "$d/fsid")"
  on "$2" bash -c 'umount "$1" && rmdir "$1"' - "$d" # a tmpfs: with Rook it goes away with the prepare pod
}

# The id and its key from the monitor, then the data directory DATA with its keyring. Sets UUID.
register() { # ID HOST DATA
  UUID=$(newuuid)
  set_fact "$1" uuid "$UUID"
  # shellcheck disable=SC2016
  on "$2" bash -e -c 'key=$(ceph-authtool --gen-print-key)
    got=$(echo "{\"cephx_secret\":\"$key\"}" | ceph osd new "$2" "$1" -i -)
    [ "$got" = "$1" ] || { echo "wanted osd.$1, the monitor gave $got" >&2; exit 1; }
    ceph-authtool --create-keyring "$3/keyring" --name "osd.$1" --add-key "$key"' - "$1" "$UUID" "$3"
}
mkfs() { # ID HOST DATA STORE
  on "$2" chown -R ceph:ceph "$3/" &&
    on "$2" ceph-osd -i "$1" --mkfs --osd-uuid "$UUID" --osd-objectstore "$4" --osd-data "$3" --osd-journal "$3/journal" \
      --keyring "$3/keyring" --setuser ceph --setgroup ceph
}

make_bluestore_dev() { # ID HOST DISK
  local d="$LEGACY_DATA/osd$1" UUID
  on "$2" bash -e -c 'mkdir -p "$1"; ln -s "$2" "$1/block"; chown ceph:ceph "$2"; echo bluestore > "$1/type"' - "$d" "$3" &&
    register "$1" "$2" "$d" && mkfs "$1" "$2" "$d" bluestore
}

partition_as_ceph_disk() { # ID HOST DISK
  local part journal
  part=$(newuuid) journal=$(newuuid)
  set_fact "$1" part "$part"
  set_fact "$1" journal "$journal"
  on "$2" sgdisk -n2:0:+512M -t2:45b0969e-9b03-4f30-b4c6-b4b80ceff106 -c2:'ceph journal' -u2:"$journal" \
    -n1:0:0 -t1:4fbd7e29-9d25-41b8-afd0-062c0ceff05d -c1:'ceph data' -u1:"$part" "$3" || return 1
  reread "$3"
  sync_dev "$2"
}

make_filestore_part() { # ID HOST DISK
  local d="$LEGACY_DATA/osd$1" by=/dev/disk/by-partuuid UUID
  on "$2" bash -e -c 'mkfs.xfs --unsupported -q -f -i size=2048 "$1"; mkdir -p "$2"; mount "$1" "$2"
    ln -s "$3" "$2/journal"; basename "$3" > "$2/journal_uuid"; chown ceph:ceph "$3"' \
    - "$by/$(fact "$1" part)" "$d" "$by/$(fact "$1" journal)" &&
    register "$1" "$2" "$d" && mkfs "$1" "$2" "$d" filestore && on "$2" umount "$d"
}
