# shellcheck shell=bash
# Creates container images as OCI layouts, without a registry or Docker. Layers are plain tar files, so the digest of a layer
# is its diff id, too. NAME.json next to an image lists its layers and configuration, for images that are based on it.
PAUSE_IMAGE=lab.local/pause:1

# OUT.tar NAME BASE.json|- CONFIG LAYER.tar...: creates an OCI layout of BASE's layers and these on top. It does not contain
# the layer files of BASE: containerd has them, and imports an archive without them. This makes `lab faults` fast.
oci_archive() {
  local out=$1 name=$2 base=$3 config=$4 t layers="[]" l d
  shift 4
  [ "$base" = - ] || { layers=$(jq -c .layers "$base"); config=$(jq -c --argjson c "$config" '.config + $c' "$base"); }
  t=$(mktemp -d "$CACHE/oci.XXXXXX")
  mkdir -p "$t/blobs/sha256"
  blob() { # FILE -> its digest; the file becomes a blob
    local h
    h=$(sha256sum < "$1" | cut -d' ' -f1)
    ln "$1" "$t/blobs/sha256/$h" 2>/dev/null || cp "$1" "$t/blobs/sha256/$h"
    echo "sha256:$h"
  }
  for l; do
    d=$(blob "$l")
    layers=$(jq -c --arg d "$d" --argjson s "$(stat -c %s "$l")" \
      '. + [{mediaType: "application/vnd.oci.image.layer.v1.tar", digest: $d, size: $s}]' <<< "$layers")
  done
  jq -nc --argjson l "$layers" --argjson c "$config" \
    '{architecture: "amd64", os: "linux", config: $c, rootfs: {type: "layers", diff_ids: [$l[].digest]}}' > "$t/config"
  d=$(blob "$t/config")
  jq -nc --argjson l "$layers" --arg d "$d" --argjson s "$(stat -c %s "$t/config")" '{schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $d, size: $s}, layers: $l}' > "$t/manifest"
  d=$(blob "$t/manifest")
  jq -nc --arg d "$d" --argjson s "$(stat -c %s "$t/manifest")" --arg n "$name" '{schemaVersion: 2, manifests: [
    {mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $s, platform: {architecture: "amd64", os: "linux"},
     annotations: {"io.containerd.image.name": $n, "org.opencontainers.image.ref.name": ($n | split(":")[1])}}]}' > "$t/index.json"
  echo '{"imageLayoutVersion":"1.0.0"}' > "$t/oci-layout"
  tar -C "$t" -cf "$out" oci-layout index.json blobs
  d=$?
  jq -nc --argjson l "$layers" --argjson c "$config" '{layers: $l, config: $c}' > "${out%.tar}.json"
  rm -rf "$t"
  return $d
}

# the sandbox image: a process that waits and reaps
pause_archive() {
  local t
  t=$(mktemp -d "$CACHE/tree.XXXXXX")
  gcc -Os -static -s -o "$t/pause" "$SRC/src/pause.c" || die "gcc could not build pause"
  tar -C "$t" --owner=0 --group=0 --mtime=@0 -cf "$t/pause.layer" pause
  oci_archive "$CACHE/img/pause.tar" "$PAUSE_IMAGE" - '{"Entrypoint":["/pause"]}' "$t/pause.layer" || die "no pause image"
  rm -rf "$t"
}

ceph_archive() { # RELEASE
  local img="$CACHE/img" t
  ceph_base_layer "$1"
  t=$(mktemp -d "$CACHE/tree.XXXXXX")
  # Ceph's own images have a run directory and a systemctl, which are missing in Debian. This systemctl must always fail:
  # success means that the unit of the OSD is active, and ceph-volume refuses to zap
  mkdir -p "$t/fix/run/ceph" "$t/fix/usr/bin"
  chown "$(stat -c %u:%g /var/lib/ceph)" "$t/fix/run/ceph"
  printf '#!/bin/sh\nexit 3\n' > "$t/fix/usr/bin/systemctl"
  chmod 755 "$t/fix/usr/bin/systemctl"
  tar -C "$t/fix" --mtime=@0 --numeric-owner -cf "$t/fix.layer" run usr
  # disks of the lab are loop devices; ceph-volume accepts them only with this variable
  oci_archive "$img/ceph-$1.tar" "$(ceph_image "$1")" - '{"Cmd":["/bin/bash"], "Env":[
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "CEPH_VOLUME_ALLOW_LOOP_DEVICES=1", "LVM_SUPPRESS_FD_WARNINGS=1"]}' \
    "$img/ceph-$1.layer" "$t/fix.layer" || die "no image of Ceph $1"
  rm -rf "$t"
}

debian_tree() { # SUITE PACKAGES FOLDER|FILE.tar OPTIONS...: unpacks packages of Debian, without their pages
  local options=("${@:4}")
  # the index of sid on a mirror may be weeks old, but is valid for one week
  [ "$1" != sid ] || options+=(--aptopt='Acquire::Min-ValidTime "5184000"')
  # a mirror may fail for a moment; apt's own user cannot verify a signature if it cannot open /dev/null
  options+=(--aptopt='Acquire::Retries "3"' --aptopt='APT::Sandbox::User "root"')
  mmdebstrap --quiet --mode=root --aptopt='APT::Install-Recommends "false"' "${options[@]}" --include="$2" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' "$1" "$3" > "$CACHE/mmdebstrap.log" 2>&1 ||
    { tail -5 "$CACHE/mmdebstrap.log" >&2; return 1; }
}

ceph_base_layer() { # RELEASE: creates the layer, and a file with its version
  local l="$CACHE/img/ceph-$1.layer" packages suite
  packages=$(packages_of "$1")
  suite=$(suite_of "$1")
  [ -s "$l" ] && [ "$(cat "$l.made" 2>/dev/null)" = "$packages" ] && return
  note "creating the image of Ceph $1 (a minute)"
  # mmdebstrap creates a tar only if the name ends with .tar
  debian_tree "$suite" "$packages" "$l.tmp.tar" --variant=minbase || die "the image of Ceph $1 could not be created"
  # 18.2.7+ds-1 -> 18.2.7
  tar -xOf "$l.tmp.tar" ./var/lib/dpkg/status | sed -nE '/^Package: ceph-common$/,/^$/s/^Version: ([0-9.]+).*/\1/p' > "${l%.layer}.version"
  grep -q "^${1//./\\.}" "${l%.layer}.version" || die "$suite does not have Ceph $1 any more, but '$(version_of "$1")'"
  mv "$l.tmp.tar" "$l"
  echo "$packages" > "$l.made"
}
