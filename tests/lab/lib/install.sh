# shellcheck shell=bash
# Requirements of the computer: checks that exit with 3 and a message, and the Debian packages.
SUITE=bookworm
PACKAGES="ceph-mon ceph-mgr ceph-osd ceph-common python3-rados lvm2 udev gdisk xfsprogs cryptsetup-bin iproute2 fdisk procps
  containerd runc containernetworking-plugins iptables jq mmdebstrap openssl util-linux gcc libc6-dev tmux curl git skopeo"

check_computer() {
  local codename
  [ "$(id -u)" = 0 ] || cannot "the lab needs root"
  # shellcheck disable=SC1091
  codename=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_CODENAME:-}")
  [ "$codename" = "debian $SUITE" ] || cannot "the lab needs Debian 12 ($SUITE), this is '$codename'"
  [ "$(uname -m)" = x86_64 ] || cannot "the lab needs x86_64"
  losetup -f >/dev/null 2>&1 || cannot "there are no loop devices"
  grep -qw overlay /proc/filesystems || cannot "the kernel has no overlayfs"
  [ -d /sys/fs/cgroup/pids ] && [ -d /sys/fs/cgroup/cpuset ] || cannot "the lab needs cgroup v1 hierarchies below /sys/fs/cgroup"
  unshare -m -u -p -n --fork true 2>/dev/null || cannot "namespaces cannot be created"
  case $DIR/ in /var/* | /etc/* | /run/* | /dev/* | /sys/* | /proc/*) cannot "LAB_DIR must not be below /var, /etc or /run (every host has its own)" ;; esac
}

# A monitor does not start on a full disk, and says so only in its own log. A lab of nine OSDs has 1.6 GiB after its start.
SPACE_MIB=4096
check_space() {
  local parent free
  parent=$(dirname "$DIR")
  free=$(df -Pm "$parent" | awk 'NR == 2 {print $4}')
  [ "$free" -ge $SPACE_MIB ] || cannot "the file system of $parent has $free MiB left, and a lab needs $SPACE_MIB. Free some, or set LAB_DIR to another file system"
}

# Sets, permanently and for the whole computer, what Ceph's own package sets with systemd (30-ceph-osd.conf). The kernel's
# default of 65,536 is enough for 35 OSDs of all labs together; the next OSD does not start: "io_setup(2) failed".
raise_limits() {
  local want=1048576
  [ "$(sysctl -n fs.aio-max-nr)" -ge $want ] || sysctl -qw fs.aio-max-nr=$want || note "fs.aio-max-nr stays at $(sysctl -n fs.aio-max-nr)"
}

missing_packages() { # the status line of a package that is not or partly installed is not "install ok installed"
  local have p
  # shellcheck disable=SC2086
  have=$(dpkg-query -W -f '${Status} ${Package}\n' $PACKAGES 2>/dev/null | sed -n 's/^install ok installed //p')
  for p in $PACKAGES; do grep -qx "$p" <<< "$have" || echo "$p"; done
}

cmd_install() {
  local want
  want=$(missing_packages)
  [ -n "$want" ] || return 0
  note "installing $(wc -w <<< "$want") Debian packages"
  export DEBIAN_FRONTEND=noninteractive
  # a mirror may fail for a moment; apt's own user cannot verify a signature if it cannot open /dev/null
  local apt=(-o Acquire::Retries=3 -o APT::Sandbox::User=root -o DPkg::Lock::Timeout=600)
  # shellcheck disable=SC2086
  { apt-get update -qq "${apt[@]}" &&
    apt-get install -y -qq --no-install-recommends "${apt[@]}" $want; } > /dev/null 2>&1
  want=$(missing_packages)
  [ -z "$want" ] || cannot "apt-get could not install: $(tr '\n' ' ' <<< "$want")"
  note "packages installed"
}
