# shellcheck shell=bash
# The kinds of OSDs: the disks, partitions and directories of each. stores.sh creates the stores on them, osd_deployments.sh
# creates the Deployments. Facts about a device (part, block, db, wal, journal) have the target of the data directory's link.
KINDS="raw raw-part raw-db bluestore-dev bluestore-dev-db bluestore-hand-part bluestore-dir bluestore-part bluestore-part-db"
KINDS+=" filestore-dir filestore-part filestore-ext4 filestore-journal rook-part rook-part-db rook-filestore"
LEGACY_DATA=/var/lib/rook # Rook <= 1.2 stored OSD data in <dataDirHostPath>/osd<id>
STORAGE=/var/storage      # and with `directories[].path` P in P/osd<id>; here every P is below this, on a disk HOST-system
PARTUUID=/dev/disk/by-partuuid
# ceph-disk's partition types
CEPH_DATA=4fbd7e29-9d25-41b8-afd0-062c0ceff05d CEPH_JOURNAL=45b0969e-9b03-4f30-b4c6-b4b80ceff106
CEPH_BLOCK=cafecafe-9b03-4f30-b4c6-b4b80ceff106 CEPH_DB=30cd0809-c2b2-499c-8879-2d6b78529876 CEPH_WAL=5ce17fce-4087-4169-b7ff-056cc58473f9
LINUX=8300         # the default of sgdisk, which Rook <= 1.2 used
BYSTANDER_MIB=64   # partitions with other data, on disks of OSDs
SHARED_BYSTANDER=9 # their number on a disk that OSDs share; on an OSD's own disk the number is 1

host_of_osd() { echo "h$(($1 % NODE_COUNT + 1))"; }
newuuid() { cat /proc/sys/kernel/random/uuid; }
store_of() { case $1 in filestore-* | rook-filestore) echo filestore ;; *) echo bluestore ;; esac } # KIND
is_kind() { case " $KINDS " in *" $1 "*) ;; *) false ;; esac }

# Creates a disk with its partitions. All disks are created one after the other, before any store: while a table is read
# again, its partitions disappear for a moment, and ceph-volume on that host, which reads every device, would fail because
# of a missing file in /sys.
make_disk() { # ID KIND
  local id=$1 kind=$2 h disk PARTS=()
  h=$(host_of_osd "$id")
  : > "$DIR/osd/$id"
  set_fact "$id" host "$h"
  set_fact "$id" kind "$kind"
  case $kind in
    *-dir)
      set_fact "$id" dir "$STORAGE/data$id/osd$id"
      storage "$h" >> "$DIR/log/osd.$id.log" 2>&1 || die "no file system for osd.$id (see $DIR/log/osd.$id.log)"
      return ;;
    raw*) ;;
    *) set_fact "$id" dir "$LEGACY_DATA/osd$id" ;;
  esac
  disk=$(new_disk "$h" "osd$id" "$DISK_GIB") || die "no disk for osd.$id"
  set_fact "$id" disk "$disk"
  lay_out "$id" "$kind" "$h" "$disk" >> "$DIR/log/osd.$id.log" 2>&1 || die "the disks of osd.$id could not be created (see $DIR/log/osd.$id.log)"
}

lay_out() { # ID KIND HOST DISK
  local id=$1 h=$3 disk=$4 SHARED=''
  case $2 in
    raw | bluestore-dev) set_fact "$id" block "$disk" ;;
    raw-db) set_fact "$id" block "$disk"; one_more_disk "$id" "$h" db ;;
    bluestore-dev-db) set_fact "$id" block "$disk"; one_more_disk "$id" "$h" db && one_more_disk "$id" "$h" wal ;;
    filestore-part | filestore-ext4)
      partition "$id" journal 2 0:+512M $CEPH_JOURNAL 'ceph journal'
      partition "$id" part 1 0:0 $CEPH_DATA 'ceph data' ;;
    filestore-journal)
      partition "$id" part 1 0:0 $CEPH_DATA 'ceph data'
      write_table "$h" "$disk" && shared_disk "$id" "$h" journals || return 1
      partition "$id" journal 0 0:+512M $CEPH_JOURNAL 'ceph journal' ;;
    bluestore-part)
      partition "$id" part 1 0:+100M $CEPH_DATA 'ceph data'
      partition "$id" block 2 0:0 $CEPH_BLOCK 'ceph block' ;;
    bluestore-part-db)
      partition "$id" part 1 0:+100M $CEPH_DATA 'ceph data'
      partition "$id" block 2 0:0 $CEPH_BLOCK 'ceph block'
      write_table "$h" "$disk" && shared_disk "$id" "$h" dbs || return 1
      partition "$id" db 0 0:+1G $CEPH_DB 'ceph block.db' && write_table "$h" "$SHARED"
      partition "$id" wal 0 0:+576M $CEPH_WAL 'ceph block.wal' ;;
    rook-part)
      partition "$id" wal 1 0:+576M $LINUX "ROOK-OSD$id-WAL"
      partition "$id" db 2 0:+1G $LINUX "ROOK-OSD$id-DB"
      partition "$id" block 3 0:0 $LINUX "ROOK-OSD$id-BLOCK" ;;
    rook-part-db)
      partition "$id" block 1 0:0 $LINUX "ROOK-OSD$id-BLOCK"
      write_table "$h" "$disk" && shared_disk "$id" "$h" metadata || return 1
      partition "$id" wal 0 0:+576M $LINUX "ROOK-OSD$id-WAL" && write_table "$h" "$SHARED"
      partition "$id" db 0 0:+1G $LINUX "ROOK-OSD$id-DB" ;;
    rook-filestore) partition "$id" part 1 0:0 $LINUX "ROOK-OSD$id-FS-DATA" ;;
    bluestore-hand-part | raw-part)
      bystander 1 "0:+${BYSTANDER_MIB}M"
      partition "$id" block 2 0:0 $LINUX 'Linux filesystem'
      write_table "$h" "$disk" && fill "$h" "${disk}p1" || return 1
      set_fact "$id" bystander "osd$id 1"
      [ "$2" != raw-part ] || set_fact "$id" block "${disk}p2" ;; # what `devices` named, and so what ceph-volume was given
  esac
  write_table "$h" "${SHARED:-$disk}"
}

storage() { # HOST: creates the file system of its directories, so that a full disk of the computer does not matter
  local disk
  ! grep -q "^$1 $1-system " "$DIR/disks" || return 0
  disk=$(new_disk "$1" "$1-system" 20) || return 1
  on "$1" bash -e -c 'mkfs.xfs -q -i size=2048 "$1"; mount "$1" "$2"' - "$disk" "$STORAGE"
}
one_more_disk() { # ID HOST FACT
  local d
  d=$(new_disk "$2" "osd$1-$3" "$DISK_GIB") && set_fact "$1" "$3" "$d"
}
shared_disk() { # ID HOST NAME: sets SHARED to the disk HOST-NAME, and creates the disk if it does not exist
  local name="$2-$3"
  SHARED=$(awk -v n="$name" '$2 == n {print $3}' "$DIR/disks")
  if [ -z "$SHARED" ]; then
    SHARED=$(new_disk "$2" "$name" "$DISK_GIB") || return 1
    bystander $SHARED_BYSTANDER "-${BYSTANDER_MIB}M:0"
    write_table "$2" "$SHARED" && fill "$2" "${SHARED}p$SHARED_BYSTANDER" || return 1
  fi
  set_fact "$1" shared "$name"
  set_fact "$1" bystander "$name $SHARED_BYSTANDER"
}

# Adds a partition to the next table that is written (0: the first unused number), and a fact with its name.
partition() { # ID FACT NUMBER START:END TYPE NAME
  local uuid
  uuid=$(newuuid)
  set_fact "$1" "$2" "$PARTUUID/$uuid"
  PARTS+=("-n$3:$4" "-t$3:$5" "-c$3:$6" "-u$3:$uuid")
}
bystander() { PARTS+=("-n$1:$2" "-t$1:$LINUX" "-c$1:somebody's data"); } # NUMBER START:END
write_table() { # HOST DISK
  [ ${#PARTS[@]} -gt 0 ] || return 0
  on "$1" sgdisk "${PARTS[@]}" "$2" || return 1
  PARTS=()
  reread "$2"
  sync_dev "$1"
}
fill() { on "$1" bash -c 'head -c "$2M" /dev/urandom > "$1" && blockdev --flushbufs "$1"' - "$2" $BYSTANDER_MIB; } # HOST PARTITION
