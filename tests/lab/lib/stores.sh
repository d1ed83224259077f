# shellcheck shell=bash
# Creates the OSD stores natively on the hosts, on the devices of kinds.sh. The daemons run as pods. $DIR/osd/ID has the facts
# of one OSD.
make_store() { # ID
  local id=$1 kind h log="$DIR/log/osd.$1.log" make=make_legacy
  kind=$(fact "$id" kind) h=$(fact "$id" host)
  case $kind in raw*) make=make_raw ;; esac
  $make "$id" "$h" "$kind" >> "$log" 2>&1 || { tail -5 "$log" >&2; die "osd.$id ($kind) could not be created (see $log)"; }
}

make_raw() { # ID HOST
  local d="/var/lib/ceph/osd/ceph-$1" db
  db=$(fact "$1" db)
  on "$2" ceph-volume raw prepare --bluestore --data "$(fact "$1" block)" ${db:+--block.db "$db"} --osd-id "$1" || return 1
  set_fact "$1" uuid "$(on "$2" cat "$d/fsid")"
  on "$2" bash -c 'umount "$1" && rmdir "$1"' - "$d" # a tmpfs: with Rook it ends with the prepare pod
}

make_legacy() { # ID HOST KIND
  local id=$1 h=$2 kind=$3 d part UUID=''
  d=$(fact "$id" dir) part=$(fact "$id" part)
  on "$h" mkdir -p "$d" || return 1
  if [ -n "$part" ]; then
    make_file_system "$h" "$kind" "$part" "$d" || return 1
    # with ceph-disk, the uuid of the data partition is the OSD's
    case $kind in rook-*) ;; *) UUID=${part##*/} ;; esac
  fi
  UUID=${UUID:-$(newuuid)}
  link_devices "$id" "$h" "$d" && register "$id" "$h" "$d" && mkfs "$id" "$h" "$d" "$kind" || return 1
  [ -z "$part" ] || on "$h" umount "$d"
}

make_file_system() { # HOST KIND PARTITION DATA: creates the file system and mounts it on DATA
  # shellcheck disable=SC2016
  case $2 in
    filestore-ext4) on "$1" mkfs.ext4 -q "$3" ;;
    *) on "$1" mkfs.xfs --unsupported -q -f -i size=2048 "$3" ;;
  esac && on "$1" mount "$3" "$4"
}

link_devices() { # ID HOST DATA: creates the links to other devices, and ceph-disk's files with their uuids
  local fact target name note
  for fact in journal block db wal; do
    target=$(fact "$1" $fact)
    [ -n "$target" ] || continue
    name=$(link_name $fact) note=
    [ -z "$(fact "$1" part)" ] || note=${target##*/}
    on "$2" bash -e -c 'ln -s "$1" "$2"; chown ceph:ceph "$1"; [ -z "$3" ] || echo "$3" > "$2_uuid"' - "$target" "$3/$name" "$note" || return 1
  done
}
link_name() { case $1 in db | wal) echo "block.$1" ;; *) echo "$1" ;; esac } # FACT

# Registers the id with its key, then creates the keyring in the data directory DATA.
register() { # ID HOST DATA
  set_fact "$1" uuid "$UUID"
  # shellcheck disable=SC2016
  on "$2" bash -e -c 'key=$(ceph-authtool --gen-print-key)
    got=$(echo "{\"cephx_secret\":\"$key\"}" | ceph osd new "$2" "$1" -i -)
    [ "$got" = "$1" ] || { echo "expected osd.$1, the monitor assigned $got" >&2; exit 1; }
    ceph-authtool --create-keyring "$3/keyring" --name "osd.$1" --add-key "$key"' - "$1" "$UUID" "$3"
}

mkfs() { # ID HOST DATA KIND
  local store more=()
  store=$(store_of "$4")
  case $4 in
    bluestore-dir) # three sparse files; with these settings ceph-osd creates the links block, block.db and block.wal to them
      more=(--bluestore-block-path "$3/bluestore-block" --bluestore-block-size $((4 << 30)) --bluestore-block-create true
        --bluestore-block-db-path "$3/bluestore-db" --bluestore-block-db-size $((1 << 30)) --bluestore-block-db-create true
        --bluestore-block-wal-path "$3/bluestore-wal" --bluestore-block-wal-size $((576 << 20)) --bluestore-block-wal-create true) ;;
  esac
  [ "$store" = filestore ] || on "$2" bash -c 'echo bluestore > "$1/type"' - "$3"
  on "$2" chown -R ceph:ceph "$3/" &&
    on "$2" ceph-osd -i "$1" --mkfs --osd-uuid "$UUID" --osd-objectstore "$store" --osd-data "$3" --osd-journal "$3/journal" \
      --keyring "$3/keyring" --setuser ceph --setgroup ceph "${more[@]}"
}
