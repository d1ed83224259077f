# shellcheck shell=bash
# What a Rook operator would have made in Kubernetes: the CephCluster and its Secrets, and one Deployment for every OSD,
# from the templates manifests/rook-*.yaml and manifests/osd-KIND.yaml.
key_of() { on adm ceph-authtool -p -n "$2" "/etc/ceph/$1"; } # KEYRING NAME

make_rook_objects() {
  K apply -f "$SRC/manifests/rook-crd.yaml" > /dev/null || die "the CRD could not be made"
  K wait --for=condition=Established --timeout=30s crd/cephclusters.ceph.rook.io > /dev/null || die "the CRD is not there"
  render "$SRC/manifests/rook-cluster.yaml" "IMAGE=$CEPH_IMAGE" "NET=$LAB_NET" "FSID=$FSID" "MON_KEY=$(key_of mon.keyring mon.)" \
    "ADMIN_KEY=$(key_of ceph.client.admin.keyring client.admin)" > "$DIR/rook-cluster.yaml"
  poll 50 0.2 K apply -f "$DIR/rook-cluster.yaml" > "$DIR/log/apply.log" 2>&1 || { cat "$DIR/log/apply.log" >&2; die "Rook's objects could not be made"; }
}

deploy_osds() {
  local id owner
  owner=$(K -n rook-ceph get cephcluster rook-ceph -o 'jsonpath={.metadata.uid}') || die "no CephCluster"
  for id in $(osds); do
    render "$SRC/manifests/osd-$(fact "$id" kind).yaml" "ID=$id" "HOST=$(fact "$id" host)" "DISK=$(fact "$id" disk)" "UUID=$(fact "$id" uuid)" \
      "PART=$(fact "$id" part)" "FSID=$FSID" "IMAGE=$OSD_IMAGE" "VERSION=$(version_of "$OSD_RELEASE")" "OWNER=$owner"
    echo ---
  done > "$DIR/osd-deployments.yaml"
  K apply -f "$DIR/osd-deployments.yaml" >> "$DIR/log/apply.log" 2>&1 || { tail -5 "$DIR/log/apply.log" >&2; die "OSD Deployments could not be made"; }
}
deployments_available() {
  [ "$(K -n rook-ceph get deployments -o 'jsonpath={range .items[*]}{.status.availableReplicas}{"\n"}{end}' 2> /dev/null | grep -c 1)" = "$OSDS" ]
}
