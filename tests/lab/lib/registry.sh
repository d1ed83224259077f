# shellcheck shell=bash
# A registry for the image and the chart, and a server for the files of a release, both with a certificate of the lab's CA. The names
# of hosts are not resolved in the lab, so both have the address of adm. What trusts the system's CAs needs SSL_CERT_FILE.
REGISTRY=$LAB_NET.1:5000 RELEASES=$LAB_NET.1:5443

# Unpacked, not installed: the package would start a registry on this computer.
registry_program() {
  local t program="$CACHE/bin/docker-registry"
  [ ! -x "$program" ] || return 0
  t=$(mktemp -d "$CACHE/registry.XXXXXX")
  # apt's own user may not write there; a fresh computer has no lists of packages
  download() { (cd "$t" && apt-get download -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root docker-registry); }
  { download || { apt-get update -qq && download; } && dpkg -x "$t"/*.deb "$t/tree"; } > "$t/log" 2>&1 ||
    { cat "$t/log" >&2; die "Debian's package docker-registry cannot be downloaded"; }
  mv "$t/tree/usr/bin/docker-registry" "$program"
  rm -rf "$t"
}

cmd_registry() { # BIN FOLDER: pushes the image of the program, and serves the files in FOLDER
  local t n version
  [ $# = 2 ] || usage "registry BIN FOLDER"
  registry_program
  cert registry /CN=registry "IP:$LAB_NET.1"
  mkdir "$DIR/registry" || die "the registry is running already"
  render "$SRC/manifests/registry.yaml" "DIR=$DIR" "ADDRESS=$REGISTRY" > "$DIR/registry.yaml"
  run_in adm registry "$CACHE/bin/docker-registry" serve "$DIR/registry.yaml"
  run_in adm releases python3 "$SRC/py/releases.py" "${RELEASES%:*}" "${RELEASES#*:}" "$2" "$DIR/pki/registry.crt" "$DIR/pki/registry.key"
  for n in $NODES; do
    # shellcheck disable=SC2016
    on "$n" bash -c 'mkdir -p "/etc/containerd/certs.d/$1"; printf "[host.\"https://%s\"]\n  ca = \"%s\"\n" "$1" "$2" > "/etc/containerd/certs.d/$1/hosts.toml"' \
      - "$REGISTRY" "$DIR/pki/ca.crt" || die "$n does not trust the registry"
  done
  for n in "$REGISTRY/v2/" "$RELEASES/"; do
    poll 100 0.1 net curl -s -o /dev/null --cacert "$DIR/pki/ca.crt" "https://$n" || die "https://$n does not answer (see $DIR/h/adm/log)"
  done
  version=$(sed -n 's/^version: //p' "$REPO/charts/osd-migrate/Chart.yaml")
  t=$(mktemp -d "$DIR/image.XXXXXX")
  program_archive "$1" "$t"
  SSL_CERT_FILE="$DIR/pki/ca.crt" net skopeo copy --quiet "oci-archive:$t/image.tar:${TOOL_IMAGE#*:}" "docker://$REGISTRY/owner/osd-migrate:$version" ||
    die "skopeo cannot push the image"
  rm -rf "$t"
  note "$REGISTRY has owner/osd-migrate:$version; https://$RELEASES has the files of $2"
}
