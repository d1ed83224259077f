# shellcheck shell=bash
# Builds the cached parts: "hyper", one static binary with every part of Kubernetes and etcd, from the published modules
# (7 minutes without a cache; its Go build cache may be deleted afterwards), and a containerd root with the unpacked images.
SNAPSHOTS=io.containerd.snapshotter.v1.overlayfs/snapshots # in a containerd root: the unpacked layers
KUBE=1.34.4 STAGING=0.34.4 ETCD=3.6.4 # Kubernetes, its staging modules (same minor.patch), the etcd that Kubernetes requires

cmd_build() {
  mkdir -p "$CACHE/bin" || die "no cache directory $CACHE"
  exec 7> "$CACHE/lock"
  flock 7 # one build at a time
  build_hyper
  # shellcheck disable=SC2046
  build_containerd_root $(releases)
  [ -z "${UML:-}" ] || { build_uml_kernel; build_uml_disk; }
  exec 7>&-
}

build_hyper() { # all parts in one go build and one link; the name of the command decides which part runs
  local src="$CACHE/src" go mod want have="" v=k8s.io/component-base/version n
  want="$KUBE $ETCD $(sha256sum < "$SRC/src/hyper.go" | cut -c1-16)"
  [ -x "$CACHE/bin/hyper" ] && have=$(cat "$CACHE/bin/hyper.made" 2>/dev/null)
  [ "$have" = "$want" ] && return
  go=$(PATH=$PATH:/usr/local/go/bin:$HOME/go/bin command -v go) || cannot "Go is missing (needed once, to build Kubernetes)"
  note "building Kubernetes $KUBE (7 minutes without a cache)"
  mkdir -p "$src"
  cp "$SRC/src/hyper.go" "$src/main.go"
  # the staging modules are published as k8s.io/X v0.34.4; go.mod of the module lists them
  mod=$(cd "$src" && "$go" mod download -json "k8s.io/kubernetes@v$KUBE" | jq -r .GoMod) || die "the module k8s.io/kubernetes v$KUBE cannot be downloaded"
  {
    printf 'module lab/hyper\n\ngo 1.24.0\n\ngodebug default=go1.24\n\nrequire (\n'
    printf '\tk8s.io/kubernetes v%s\n\tk8s.io/component-base v0.0.0\n\tk8s.io/kubectl v0.0.0\n' "$KUBE"
    printf '\tgo.etcd.io/etcd/server/v3 v%s\n)\n\nreplace (\n' "$ETCD"
    grep -oE 'k8s.io/[a-z-]+ => ./staging' "$mod" | awk -v v="v$STAGING" '{print "\t" $1 " => " $1 " " v}'
    echo ')'
  } > "$src/go.mod"
  # without these -X the API server reports the version v0.0.0-master
  (cd "$src" && "$go" mod tidy && CGO_ENABLED=0 "$go" build -trimpath -o "$CACHE/bin/hyper.new" -ldflags "-s -w -X $v.gitVersion=v$KUBE \
    -X $v.gitMajor=${KUBE%%.*} -X $v.gitMinor=$(cut -d. -f2 <<< "$KUBE") -X $v.gitTreeState=clean" .) > "$CACHE/hyper.log" 2>&1 ||
    { tail -5 "$CACHE/hyper.log" >&2; die "the build failed (see $CACHE/hyper.log)"; }
  mv "$CACHE/bin/hyper.new" "$CACHE/bin/hyper"
  for n in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do ln -sfn hyper "$CACHE/bin/$n"; done
  echo "$want" > "$CACHE/bin/hyper.made"
  note "Kubernetes built ($(du -h "$CACHE/bin/hyper" | cut -f1))"
}

containerd_config() { # STATE-DIRECTORY ROOT [RUNC]: prints the configuration; `lab registry` adds a registry
  render "$SRC/manifests/containerd.toml" "STATE=$1" "ROOT=$2" "PAUSE=$PAUSE_IMAGE" "RUNC=${3:-$SRC/lib/runc-lab}"
}

# Every node gets a copy of it (hard links), because an import on a node takes 10 s. Imports the requested images that are
# missing, and does not remove others. .made-RELEASE lists the directories of the image's layers, the uppermost first.
build_containerd_root() { # RELEASE...
  local root="$CACHE/ctrd" want r new=()
  mkdir -p "$CACHE/img"
  want=$(cat "$SRC/lib/images.sh" "$SRC/lib/releases.sh" "$SRC/src/pause.c" | sha256sum | cut -c1-16)
  if [ "$(cat "$root/.made" 2>/dev/null)" != "$want" ]; then
    rm -rf "$root"
    pause_archive
    new+=(pause)
  fi
  for r; do
    [ ! -e "$root/.made-$r" ] || continue
    ceph_archive "$r"
    new+=("ceph-$r")
  done
  [ ${#new[@]} -gt 0 ] || return 0
  note "unpacking the images into a containerd root"
  import_images "$root" "${new[@]}"
  echo "$want" > "$root/.made"
  note "images ready ($(du -sh "$root" | cut -f1))"
}

import_images() { # ROOT NAME...
  local root=$1 tmp pid i layers
  shift
  tmp=$(mktemp -d)
  containerd_config "$tmp" "$root" > "$tmp/config.toml"
  containerd -c "$tmp/config.toml" > "$CACHE/ctrd.log" 2>&1 &
  pid=$!
  poll 100 0.1 ctr -a "$tmp/containerd.sock" version > /dev/null 2>&1 || die "containerd did not start (see $CACHE/ctrd.log)"
  for i; do
    ctr -a "$tmp/containerd.sock" -n k8s.io images import "$CACHE/img/$i.tar" >> "$CACHE/ctrd.log" 2>&1 ||
      { kill $pid; die "import of $i failed (see $CACHE/ctrd.log)"; }
    # the containerd root has the content of the archive; later only the digests are needed
    rm -f "$CACHE/img/$i.tar"
    [ "$i" != pause ] || continue
    layers=$(layers_of "$CACHE/img/$i.json" ctr -a "$tmp/containerd.sock" -n k8s.io snapshots) && [ -n "$layers" ] ||
      { kill $pid; die "the layers of $i were not found"; }
    echo "$layers" > "$root/.made-${i#ceph-}"
  done
  kill $pid
  wait $pid 2>/dev/null
  rm -rf "$tmp"
  # containerd has forgotten the snapshots of layers_of, but would remove their directories only minutes later
  rmdir "$root/$SNAPSHOTS"/*/fs 2> /dev/null
  rmdir "$root/$SNAPSHOTS"/* 2> /dev/null
  true
}
layers_of() { # IMAGE.json CTR...: prints the directories that a container of the image gets, the uppermost first
  local d chain=
  for d in $(jq -r '.layers[].digest' "$1"); do
    chain=${chain:+sha256:$(printf '%s %s' "$chain" "$d" | sha256sum | cut -d' ' -f1)}
    chain=${chain:-$d}
  done
  shift
  "$@" rm lab-tree > /dev/null 2>&1 # of an interrupted build
  # the command that creates the view prints its mounts: a view is no root of containerd's garbage collection, which
  # each import starts, and may be removed before a second command reads it
  "$@" view --target / lab-tree "$chain" | grep -oE 'snapshots/[0-9]+/fs' | cut -d/ -f2 | paste -sd' '
  "$@" rm lab-tree > /dev/null 2>&1
  true
}
