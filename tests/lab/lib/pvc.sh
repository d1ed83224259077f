# shellcheck shell=bash
# OSDs on PersistentVolumeClaims: disks as `local` PersistentVolumes, PVCs of a set (storageClassDeviceSets) as Rook creates
# them, and OSDs that are prepared in a Job and run in Deployments of Rook's shape. $DIR/pvc/PVC has the facts of one PVC.
ROLES="data metadata wal" # names of the templates of a set that Rook knows

cmd_pvc() { # HOST [GIB] NAME SET ROLE INDEX
  local gib=$DISK_GIB owner id pvc
  [ $# = 6 ] && { gib=$2; set -- "$1" "${@:3}"; }
  [ $# = 5 ] || usage "pvc HOST [GIB] NAME SET ROLE INDEX"
  [[ $3 =~ ^[a-z0-9][a-z0-9.-]*$ ]] || usage "not a name for a set: '$3'"
  case " $ROLES " in *" $4 "*) ;; *) usage "unknown role '$4' ($ROLES)" ;; esac
  [[ $5 =~ ^[0-9]+$ ]] || usage "not an index: '$5'"
  owner=$(cluster_uid)
  id=${3//./-}-$4-$5
  [ -z "$(K -n rook-ceph get pvc -l "ceph.rook.io/DeviceSetPVCId=$id" -o name)" ] || die "set $3 already has a PVC '$4' of index $5"
  (cmd_disk "$1" "$gib" "$2") > /dev/null || exit
  render "$SRC/manifests/volume.yaml" "NAME=$2" "HOST=$1" "GIB=$gib" "ROLE=$4" | apply_quietly || exit
  pvc=$(render "$SRC/manifests/pvc.yaml" "ID=$id" "SET=$3" "INDEX=$5" "ROLE=$4" "GIB=$gib" "OWNER=$owner" |
    K create -f - -o 'jsonpath={.metadata.name}') || die "the PVC could not be created"
  mkdir -p "$DIR/pvc"
  printf '%s\n' "host=$1" "set=$3" "role=$4" "gib=$gib" > "$DIR/pvc/$pvc"
  echo "$pvc"
}
cluster_uid() { K -n rook-ceph get cephcluster rook-ceph -o 'jsonpath={.metadata.uid}' || die "no CephCluster"; }
pvc_fact() { sed -n "s/^$2=//p" "$DIR/pvc/$1"; } # PVC FACT
apply_quietly() { K apply -f - >> "$DIR/log/apply.log" 2>&1 || { tail -5 "$DIR/log/apply.log" >&2; die "an object could not be created"; }; }

cmd_pvc_osd() { # ID PVC [DB-PVC] [--encrypted | --lvm]
  local encrypted=false lvm=false words=() word id pvc db=none host
  for word; do case $word in --encrypted) encrypted=true ;; --lvm) lvm=true ;; *) words+=("$word") ;; esac; done
  set -- "${words[@]}"
  [ $# = 2 ] || [ $# = 3 ] || usage "pvc-osd ID PVC [DB-PVC] [--encrypted | --lvm]"
  [ $lvm = false ] || { [ $# = 2 ] && [ $encrypted = false ]; } || usage "--lvm is for an OSD without a database and without encryption"
  [[ $1 =~ ^[0-9]+$ ]] || usage "not an id: '$1'"
  [ ! -e "$DIR/osd/$1" ] || die "osd.$1 already exists"
  for word in "${@:2}"; do [ -e "$DIR/pvc/$word" ] || die "there is no PVC '$word' of 'lab pvc'"; done
  id=$1 pvc=$2 host=$(pvc_fact "$2" host)
  if [ $# = 3 ]; then
    db=$3
    [ "$(pvc_fact "$db" host)" = "$host" ] || die "PVC $db is not on $host"
  fi
  [ $encrypted = false ] || is_uml "$host" || die "only u1 can open encrypted volumes, and PVC $pvc is on $host"
  [ $lvm = false ] || is_uml "$host" || die "only u1 has LVM, and PVC $pvc is on $host"
  prepare_on_pvc || exit
  deploy_on_pvc || exit
  await_volume_osd "$id"
}

# The following have id, pvc, db, host, encrypted and lvm of cmd_pvc_osd.
render_on_pvc() { # MANIFEST KEY=VALUE...
  local suffix=
  [ "$encrypted" = false ] || suffix=-tmp
  render "$SRC/manifests/$1" "ID=$id" "PVC=$pvc" "DB=$db" "HOST=$host" "ENCRYPTED=$encrypted" "SUFFIX=$suffix" "FSID=$FSID" "IMAGE=$OSD_IMAGE" \
    "VERSION=$(version_of "$OSD_RELEASE")" "OWNER=$(cluster_uid)" "SET=$(pvc_fact "$pvc" set)" "SIZE=$(pvc_fact "$pvc" gib)Gi" "${@:2}" |
    K create --dry-run=client -f - -o json |
    jq --arg db "$db" --arg encrypted "$encrypted" --rawfile copy "$SRC/lib/osd_pvc_copy.sh" --rawfile open "$SRC/../../src/k8s/osd/open_encrypted.sh" \
      --rawfile disk "$SRC/lib/osd_pvc_disk.sh" -f "$SRC/manifests/osd-pvc.jq" |
    jq --arg lvm "$lvm" --arg pvc "$pvc" --rawfile disk "$SRC/lib/osd_pvc_disk.sh" --rawfile rook "$SRC/lib/osd_pvc_rook.sh" \
      -f "$SRC/manifests/osd-pvc-lvm.jq" |
    apply_quietly
}

prepare_on_pvc() {
  local job=rook-ceph-osd-prepare-$pvc log="$DIR/log/osd.$id.log" uuid kind=pvc tries=300
  render_on_pvc osd-pvc-prepare.yaml "LVM=$lvm" "KEY=$(head -c 128 /dev/urandom | base64 -w 0)" || return
  ! is_uml "$host" || tries=1500
  # shellcheck disable=SC2317
  is_prepared() { [ "$(K -n rook-ceph get job "$job" -o 'jsonpath={.status.succeeded}' 2> /dev/null)" = 1 ]; }
  poll $tries 0.2 is_prepared
  K -n rook-ceph logs "job/$job" --all-containers > "$log" 2>&1
  uuid=$(sed -n 's/^uuid=//p' "$log" | tail -1)
  is_prepared && [ -n "$uuid" ] || { tail -5 "$log" >&2; die "osd.$id could not be prepared on PVC $pvc (see $log)"; }
  [ "$db" = none ] || kind+=-db
  [ "$encrypted" = false ] || kind+=-crypt
  [ "$lvm" = false ] || kind+=-lvm
  printf '%s\n' "host=$host" "kind=$kind" "uuid=$uuid" "pvc=$pvc" "disk=$(disk_of "$pvc")" > "$DIR/osd/$id"
  [ "$db" = none ] || set_fact "$id" db "$(disk_of "$db")"
}
disk_of() { # PVC: prints the disk of the volume that the scheduler bound
  local volume path
  volume=$(K -n rook-ceph get pvc "$1" -o 'jsonpath={.spec.volumeName}') || return
  path=$(K get pv "$volume" -o 'jsonpath={.spec.local.path}') && on "$host" readlink -f "$path" < /dev/null
}

deploy_on_pvc() {
  local block=/mnt/$pvc
  [ "$encrypted" = false ] || block=/dev/mapper/$pvc-block-dmcrypt
  [ "$lvm" = false ] || block=$(sed -n 's/^block=//p' "$DIR/log/osd.$id.log" | tail -1)
  render_on_pvc osd-pvc.yaml "UUID=$(fact "$id" uuid)" "BLOCK=$block"
}
