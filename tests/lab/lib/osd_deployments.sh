# shellcheck shell=bash
# Creates what a Rook operator would have created in Kubernetes: the CephCluster and its Secrets, and one Deployment for
# every OSD, from the templates manifests/rook-*.yaml and manifests/osd-*.yaml.
key_of() { on adm ceph-authtool -p -n "$2" "/etc/ceph/$1"; } # KEYRING NAME

make_rook_objects() {
  K apply -f "$SRC/manifests/rook-crd.yaml" > /dev/null || die "the CRD could not be created"
  K wait --for=condition=Established --timeout=30s crd/cephclusters.ceph.rook.io > /dev/null || die "the CRD is not established"
  render "$SRC/manifests/rook-cluster.yaml" "IMAGE=$CEPH_IMAGE" "NET=$LAB_NET" "FSID=$FSID" "MON_KEY=$(key_of mon.keyring mon.)" \
    "ADMIN_KEY=$(key_of ceph.client.admin.keyring client.admin)" > "$DIR/rook-cluster.yaml"
  poll 50 0.2 K apply -f "$DIR/rook-cluster.yaml" > "$DIR/log/apply.log" 2>&1 || { cat "$DIR/log/apply.log" >&2; die "Rook's objects could not be created"; }
}

template_of() { # KIND
  case $1 in
    raw* | lvm*) echo raw ;;
    *-dir) echo directory ;;
    filestore-* | rook-filestore | bluestore-part*) echo mounted ;;
    *) echo device ;;
  esac
}
arg_lines() { [ $# = 0 ] || printf '            - %s\n' "$@"; } # items of a template's list of arguments
links_of() { # ID: prints the links of its data directory to devices
  local fact
  for fact in journal block db wal; do [ -z "$(fact "$1" $fact)" ] || echo "$(fact "$1" dir)/$(link_name $fact)"; done
}

render_osd() { # ID OWNER
  local id=$1 kind store dir db key='' db_env='' more=() chown='' selector=', rook_cluster: rook-ceph'
  kind=$(fact "$id" kind) dir=$(fact "$id" dir) db=$(fact "$id" db)
  store=$(store_of "$kind")
  [ "$store" = bluestore ] || more=(--osd-journal "$dir/journal")
  # ext4 stores no longer names in its extended attributes
  [ "$kind" != filestore-ext4 ] || more+=(--osd-max-object-name-len '"256"' --osd-max-object-namespace-len '"64"')
  case $kind in
    *-dir)
      key=$(on "$(fact "$id" host)" ceph-authtool -p -n "osd.$id" "$dir/keyring")
      if [ "$store" = bluestore ]; then chown=", $dir"; else more=("--osd-journal=$dir/journal"); fi ;;
    bluestore-hand-part) selector='' ;; # its Deployment was written by hand, too
    raw-db) db_env=$'\n'"            - {name: ROOK_METADATA_DEVICE, value: \"$db\"}" ;;
  esac
  render "$SRC/manifests/osd-$(template_of "$kind").yaml" "ID=$id" "HOST=$(fact "$id" host)" "UUID=$(fact "$id" uuid)" "FSID=$FSID" \
    "IMAGE=$OSD_IMAGE" "VERSION=$(version_of "$OSD_RELEASE")" "OWNER=$2" "STORE=$store" "DIR=$dir" "PART=$(fact "$id" part)" "BLOCK=$(fact "$id" block)" "KEY=$key" \
    "LINKS=$(links_of "$id" | paste -sd' ')" "MORE_ARGS=$(arg_lines "${more[@]}")" "CHOWN=$chown" "SELECTOR=$selector" "DB_ENV=$db_env" \
    "ACTIVATE_DB=${db_env:+ --block.db \"\$ROOK_METADATA_DEVICE\"}"
}

deploy_osds() {
  local id owner h
  owner=$(K -n rook-ceph get cephcluster rook-ceph -o 'jsonpath={.metadata.uid}') || die "no CephCluster"
  { for id in $(osds); do render_osd "$id" "$owner"; echo ---; done
    for h in $NODES; do node_config "$h"; done; } > "$DIR/osd-deployments.yaml"
  K apply -f "$DIR/osd-deployments.yaml" >> "$DIR/log/apply.log" 2>&1 || { tail -5 "$DIR/log/apply.log" >&2; die "OSD Deployments could not be created"; }
}
node_config() { # NODE: prints Rook's ConfigMap with what it created on the node
  local disk
  ! is_uml "$1" || return 0
  awk -v h="$1" '$1 == h {print $3}' "$DIR/disks" | while read -r disk; do on "$1" sfdisk -J "$disk" 2> /dev/null; done |
    python3 "$SRC/py/node_config.py" "$1" "$DIR/osd"
}
deployments_available() {
  [ "$(K -n rook-ceph get deployments -o 'jsonpath={range .items[*]}{.status.availableReplicas}{"\n"}{end}' 2> /dev/null | grep -c 1)" = "$OSDS" ]
}
