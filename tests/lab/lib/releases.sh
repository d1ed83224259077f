# shellcheck shell=bash
# Releases of Ceph. RELEASE is that of mon, mgr, the ceph command and the image of the runner. OSD_RELEASE is that of the OSDs and of
# all native programs on the nodes. If they differ, the cluster is partly upgraded. The computer itself has 16.2.15. For
# another release, the hosts get the tree of its image (release_tree.sh), whose programs precede those of the computer.
# Programs that need its librados, like the scripts in py/, are run by the host's command in-release.
NATIVE_RELEASE=16.2.15
RELEASE=$NATIVE_RELEASE OSD_RELEASE=
CEPH_PACKAGES=ceph-osd,ceph-common,ceph-mon,ceph-mgr,python3-rados,lvm2,udev,gdisk,xfsprogs,cryptsetup-bin,procps,iproute2,util-linux,curl,ca-certificates

suite_of() { # RELEASE -> the Debian suite that has it
  case $1 in
    16.2.15) echo bookworm ;;
    18.2) echo trixie ;;
    20.2) echo sid ;;
    *) return 1 ;;
  esac
}
packages_of() { # RELEASE -> its packages; since 17 ceph-volume is a separate package
  if [ "${1%%.*}" -ge 17 ]; then echo "$CEPH_PACKAGES,ceph-volume"; else echo "$CEPH_PACKAGES"; fi
}

release_option() { # --release|--osd-release RELEASE
  suite_of "${2:-}" > /dev/null || usage "$1 16.2.15, $1 18.2 or $1 20.2"
  if [ "$1" = --release ]; then RELEASE=$2; else OSD_RELEASE=$2; fi
}
check_releases() { # once all options are read
  OSD_RELEASE=${OSD_RELEASE:-$RELEASE}
  # 20.2.4 creates keys that older releases cannot read, not even those from which an upgrade is supported
  case "$RELEASE $OSD_RELEASE" in
    "$RELEASE $RELEASE" | "18.2 16.2.15") ;;
    *) usage "--osd-release is for --release 18.2 --osd-release 16.2.15" ;;
  esac
  [ -z "${UML:-}" ] || [ "$RELEASE $OSD_RELEASE" = "$NATIVE_RELEASE $NATIVE_RELEASE" ] || usage "--uml goes with $NATIVE_RELEASE only"
}
releases() { printf '%s\n' "$RELEASE" "$OSD_RELEASE" | sort -u; }
version_of() { cat "$CACHE/img/ceph-$1.version"; } # RELEASE -> its complete version in Debian
ceph_image() { echo "lab.local/ceph:$(version_of "$1")"; } # RELEASE

# A new cluster requires OSDs of the mon's own release, unless these options disable it for each later release.
mon_release_settings() {
  [ "$RELEASE" = "$OSD_RELEASE" ] || printf 'mon_debug_no_require_%s = true\n' quincy reef
}

give_release() { # HOST: provides the programs of the host's release
  local release=$OSD_RELEASE lower bin="$DIR/h/$1/bin"
  [ "$1" != adm ] || release=$RELEASE
  if [ "$1" = cp ] || [ "$release" = $NATIVE_RELEASE ]; then
    mkdir "$bin" && install -m 755 /dev/stdin "$bin/in-release" <<< $'#!/bin/bash\nexec "$@"'
    return
  fi
  lower=$(sed "s,[^ ]*,$CACHE/ctrd/$SNAPSHOTS/&/fs,g; s/ /:/g" "$CACHE/ctrd/.made-$release") || return 1
  on "$1" bash "$SRC/lib/release_tree.sh" "$DIR/h/$1" "$lower"
}
