# ID KIND DATA [GROUP], in u1: creates the store of an OSD and prints its facts. DATA is a disk, for lvm-part a volume group in
# which a volume is created, for filestore-dir a disk for the file system of the directory. GROUP is a volume group for the
# database, the log or the journal, for raw-db a disk for the database.
id=$1 kind=$2 data=$3 group=${4:-}
d=/var/lib/ceph/osd/ceph-$id
if [ "$kind" = filestore-dir ]; then
  d=/var/storage/data$id/osd$id
  {
    mkfs.xfs -q -i size=2048 "$data"
    mkdir -p /var/storage && mount "$data" /var/storage && mkdir -p "$d"
    uuid=$(cat /proc/sys/kernel/random/uuid) key=$(ceph-authtool --gen-print-key) bootstrap=/var/lib/ceph/bootstrap-osd/ceph.keyring
    ceph --name client.bootstrap-osd --keyring $bootstrap osd new "$uuid" "$id" -i - <<< "{\"cephx_secret\":\"$key\"}"
    ceph-authtool --create-keyring "$d/keyring" --name "osd.$id" --add-key "$key"
    chown -R ceph:ceph "$d"
    ceph-osd -i "$id" --mkfs --osd-uuid "$uuid" --osd-objectstore filestore --osd-data "$d" --osd-journal "$d/journal" \
      --keyring "$d/keyring" --setuser ceph --setgroup ceph
  } >&2
  printf '%s\n' "uuid=$uuid" "dir=$d"
  exit
fi
map_by_host() { # creates /dev/mapper/host-ID on $data, as multipathd or crypttab would
  local size
  if [ "$kind" = raw-multipath ]; then
    modprobe -a dm-multipath dm-round-robin
    size=$(blockdev --getsz "$data")
    dmsetup create "host-$id" --uuid "mpath-lab-$id" --table "0 $size multipath 0 0 1 1 round-robin 0 1 0 $data"
  else
    (umask 077 && head -c 24 /dev/urandom | base64 > "/run/host-$id.key")
    # few iterations: the default takes 21 s here
    cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file "/run/host-$id.key" "$data"
    cryptsetup open --key-file "/run/host-$id.key" "$data" "host-$id"
  fi
  udevadm settle
}
{
  args=(--osd-id "$id")
  case $kind in
    lvm | lvm-crypt) args=(lvm prepare --bluestore --data "$data" "${args[@]}") ;;
    lvm-part)
      lvcreate -q --yes -L 5G -n "data-$id" "$data"
      args=(lvm prepare --bluestore --data "$data/data-$id" "${args[@]}") ;;
    lvm-db)
      lvcreate -q --yes -L 1G -n "db-$id" "$group"
      args=(lvm prepare --bluestore --data "$data" --block.db "$group/db-$id" "${args[@]}") ;;
    lvm-wal)
      lvcreate -q --yes -L 512M -n "wal-$id" "$group"
      args=(lvm prepare --bluestore --data "$data" --block.wal "$group/wal-$id" "${args[@]}") ;;
    lvm-filestore)
      lvcreate -q --yes -L 512M -n "journal-$id" "$group"
      args=(lvm prepare --filestore --data "$data" --journal "$group/journal-$id" "${args[@]}") ;;
    raw) args=(raw prepare --bluestore --data "$data" "${args[@]}") ;;
    raw-db) args=(raw prepare --bluestore --data "$data" --block.db "$group" "${args[@]}") ;;
    raw-multipath | raw-host-crypt) # a device that the host maps, not ceph-volume
      map_by_host
      args=(raw prepare --bluestore --data "/dev/mapper/host-$id" "${args[@]}") ;;
    raw-crypt)
      CEPH_VOLUME_DMCRYPT_SECRET=$(head -c 24 /dev/urandom | base64)
      export CEPH_VOLUME_DMCRYPT_SECRET
      args=(raw prepare --bluestore --data "$data" --dmcrypt "${args[@]}") ;;
  esac
  case $kind in lvm-crypt) args+=(--dmcrypt) ;; esac
  ceph-volume "${args[@]}"
  uuid=$(cat "$d/fsid")
  block=$(readlink "$d/block" || ceph-volume lvm list --format json | jq -r --arg id "$id" '.[$id][] | select(.type == "data").lv_path')
  # for an encrypted OSD, the fact is the volume below the mapping
  case $kind in lvm-crypt) block=$(ceph-volume lvm list --format json | jq -r --arg id "$id" '.[$id][] | select(.type == "block").lv_path') ;; esac
  umount "$d" && rmdir "$d"
} >&2
echo "uuid=$uuid"
echo "block=$block"
echo "disk=$data"
[ "$kind" != raw-db ] || echo "db=$group"
[ -z "${CEPH_VOLUME_DMCRYPT_SECRET:-}" ] || echo "secret=$CEPH_VOLUME_DMCRYPT_SECRET"
