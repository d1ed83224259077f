# shellcheck shell=bash
# OSDs on logical volumes and under dm-crypt, on u1, whose kernel supports them: created natively with its ceph-volume, started
# as pods by Deployments in Rook's shape. $DIR/osd/ID has the facts of one OSD, as in stores.sh.
VOLUME_KINDS="lvm lvm-crypt lvm-db lvm-wal lvm-part lvm-filestore raw-crypt raw raw-db filestore-dir
 raw-multipath raw-host-crypt"

cmd_volume_osd() { # ID KIND DATA [GROUP]
  [ $# = 3 ] || [ $# = 4 ] || usage "volume-osd ID KIND DATA [GROUP]"
  [ -n "${UML:-}" ] || usage "volume-osd needs u1 (lab up --uml)"
  [[ $1 =~ ^[0-9]+$ ]] || usage "not an id: '$1'"
  case " ${VOLUME_KINDS//$'\n'/} " in *" $2 "*) ;; *) usage "unknown kind '$2' ($VOLUME_KINDS)" ;; esac
  [ ! -e "$DIR/osd/$1" ] || die "osd.$1 already exists"
  local id=$1 kind=$2 log="$DIR/log/osd.$1.log" facts
  # shellcheck disable=SC2154
  facts=$(on_uml bash -e -o pipefail -s "$@" < "$SRC/lib/uml_prepare.sh" 2> "$log") || { tail -5 "$log" >&2; die "osd.$id ($kind) could not be created (see $log)"; }
  printf 'host=u1\nkind=%s\n%s\n' "$kind" "$facts" > "$DIR/osd/$id"
  deploy_volume_osd "$id"
  await_volume_osd "$id"
}
# ID: 6 minutes, because seven OSDs of the emulated host share one slow core
await_volume_osd() { poll 1800 0.2 volume_osd_available "$1" || die "osd.$1 is not available"; }
# shellcheck disable=SC2317
volume_osd_available() { [ "$(K -n rook-ceph get deployment "rook-ceph-osd-$1" -o 'jsonpath={.status.availableReplicas}' 2> /dev/null)" = 1 ]; }

deploy_volume_osd() { # ID: applies the Deployment of a raw OSD with the differences; for a directory, that of any host
  local id=$1 kind owner mode=lvm store=bluestore encrypted=false
  kind=$(fact "$id" kind)
  case $kind in raw | raw-db | raw-multipath | raw-host-crypt) mode=raw ;; raw-crypt) mode=raw encrypted=true ;; lvm-crypt) encrypted=true ;; lvm-filestore) store=filestore ;; esac
  owner=$(K -n rook-ceph get cephcluster rook-ceph -o 'jsonpath={.metadata.uid}') || die "no CephCluster"
  if [ "$kind" = filestore-dir ]; then render_osd "$id" "$owner" | apply_osd; return; fi
  render_osd "$id" "$owner" |
    K create --dry-run=client -f - -o json |
    jq --arg mode $mode --arg store $store --arg encrypted $encrypted --arg key "$(fact "$id" secret)" --arg disk "$(fact "$id" disk)" \
      --rawfile activate "$SRC/lib/uml_activate.sh" -f "$SRC/manifests/osd-volume.jq" |
    apply_osd
}
apply_osd() { K apply -f - >> "$DIR/log/apply.log" 2>&1 || { tail -5 "$DIR/log/apply.log" >&2; die "a Deployment could not be created"; }; }

# Exchanges the names of u1's disks while u1 is powered off, as if the kernel had found them in another order.
cmd_rename_disks() { # u1
  [ "$*" = u1 ] || usage "rename-disks u1"
  poll 50 0.1 eval '! pid_of u1 > /dev/null' || die "u1 is powered on" # a kernel takes a moment to end
  local f last='' d="$DIR/h/u1/disks"
  for f in "$d"/ubd*; do mv "$f" "$f.was"; done
  # each disk gets the name of the previous one, the first disk the name of the last
  for f in "$d"/ubd*.was; do
    [ -z "$last" ] || mv "$f" "$last"
    [ -n "$last" ] || mv "$f" "$d/first"
    last=${f%.was}
  done
  mv "$d/first" "$last"
}
