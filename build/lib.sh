# shellcheck shell=bash
# Shared by the scripts of this folder: versions, paths and errors. The file is sourced, and sets the working directory.
# shellcheck disable=SC2034 # used by the scripts that source this file
set -eu -o pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
unset MAKEFLAGS MAKELEVEL MFLAGS # cargo and cc must not use make's job server
[ -d "$HOME/.cargo/bin" ] && PATH=$PATH:$HOME/.cargo/bin
export LC_ALL=C.UTF-8

# Pinned versions. They are part of the paths of the caches, which all clones on this computer share.
CARGO_DENY=0.20.2
ZIG=0.17.0 ZIGBUILD=0.24.0
HELM=3.22.0
ACTIONLINT=1.7.12 KREW=0.4.3 CYCLONEDX=0.5.9
KUBE_STATE_METRICS=2.13.0
PUPPETEER=24.43.1 AXE=4.14.1
KUBERNETES_VALIDATE=1.37.0 # schemas of Kubernetes 1.29 to 1.37, offline
GLIBC=2.28 # glibc of Ceph's images on el8: the oldest in which the binary must start

TOOLS=${XDG_CACHE_HOME:-$HOME/.cache}/osd-migrate
DENY_ROOT=$TOOLS/cargo-deny-$CARGO_DENY
ZIG_VENV=$TOOLS/zig-$ZIG-zigbuild-$ZIGBUILD
HELM_ROOT=$TOOLS/helm-$HELM
ACTIONLINT_ROOT=$TOOLS/actionlint-$ACTIONLINT
KREW_ROOT=$TOOLS/krew-$KREW
KUBE_STATE_METRICS_ROOT=$TOOLS/kube-state-metrics-$KUBE_STATE_METRICS
BROWSER_ROOT=$TOOLS/puppeteer-$PUPPETEER-axe-$AXE
CYCLONEDX_ROOT=$TOOLS/cargo-cyclonedx-$CYCLONEDX
SCHEMAS_VENV=$TOOLS/kubernetes-validate-$KUBERNETES_VALIDATE
TARGET=${CARGO_TARGET_DIR:-target}
BUILT_FOR_TESTS=$TARGET/x86_64-unknown-linux-gnu/debug/osd-migrate
BINARY=$TARGET/x86_64-unknown-linux-gnu/lab/osd-migrate # for the lab, with the failpoints of the tests
RELEASED=$TARGET/x86_64-unknown-linux-gnu/release/osd-migrate
ARCHITECTURES="amd64 arm64" # of the image
INSTALLER=osd-migrate-install # next to each program: image/install.rs

machine_of() { # ARCHITECTURE -> its name for Rust and for the kernel
  case $1 in
    amd64) echo x86_64 ;;
    arm64) echo aarch64 ;;
    *) die "unknown architecture: $1. Known: $ARCHITECTURES" ;;
  esac
}
version_of_sources() { sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml; }
released() { echo "$TARGET/$(machine_of "$1")-unknown-linux-gnu/release/osd-migrate"; } # ARCHITECTURE -> path of the program

# cargo-zigbuild finds zig through this python. The target has the glibc in its name.
zig_cargo() { # COMMAND TARGET OPTIONS...
  build/install zig
  CARGO_ZIGBUILD_PYTHON_PATH=$ZIG_VENV/bin/python "$ZIG_VENV/bin/cargo-zigbuild" "$1" --target "$2" "${@:3}"
}

# Compiles the project's own packages with clippy's compiler, which is rustc and lints. Otherwise the lints would need each
# dependency a second time. A release is compiled by rustc itself.
with_lints() { export RUSTC_WORKSPACE_WRAPPER=clippy-driver; }

die() { echo "${0##*/}: $*" >&2; exit 1; }
