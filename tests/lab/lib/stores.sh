# shellcheck shell=bash
# OSD stores, made natively on the hosts; the daemons run as pods. $DIR/osd/ID holds the facts of one OSD.
LEGACY_DATA=/var/lib/rook # Rook 1.2 kept OSD data at <dataDirHostPath>/osd<id>

host_of_osd() { echo "h$(($1 % 3 + 1))"; }
newuuid() { cat /proc/sys/kernel/random/uuid; }

make_store() { # ID KIND
  local id=$1 kind=$2 h disk log="$DIR/log/osd.$1.log"
  h=$(host_of_osd "$id")
  disk=$(new_disk "$h" "osd$id" "$DISK_GIB") || die "no disk for osd.$id"
  : > "$DIR/osd/$id"
  set_fact "$id" host "$h"
  set_fact "$id" kind "$kind"
  set_fact "$id" disk "$disk"
  "make_${kind//-/_}" "$id" "$h" "$disk" >> "$log" 2>&1 || { tail -5 "$log" >&2; die "osd.$id ($kind) could not be made (see $log)"; }
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

make_filestore_part() { # ID HOST DISK: the partitions as ceph-disk made them
  local d="$LEGACY_DATA/osd$1" UUID part journal
  part=$(newuuid) journal=$(newuuid)
  set_fact "$1" part "$part"
  on "$2" sgdisk -n2:0:+512M -t2:45b0969e-9b03-4f30-b4c6-b4b80ceff106 -c2:'ceph journal' -u2:"$journal" \
    -n1:0:0 -t1:4fbd7e29-9d25-41b8-afd0-062c0ceff05d -c1:'ceph data' -u1:"$part" "$3" || return 1
  reread "$3"
  sync_dev "$2"
  on "$2" bash -e -c 'mkfs.xfs --unsupported -q -f -i size=2048 "$1"; mkdir -p "$2"; mount "$1" "$2"
    ln -s "$3" "$2/journal"; basename "$3" > "$2/journal_uuid"; chown ceph:ceph "$3"' \
    - "/dev/disk/by-partuuid/$part" "$d" "/dev/disk/by-partuuid/$journal" &&
    register "$1" "$2" "$d" && mkfs "$1" "$2" "$d" filestore && on "$2" umount "$d"
}
