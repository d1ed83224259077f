#!/bin/bash
# Pid 1 of u1, a User-Mode Linux whose root file system is this machine's own, read through hostfs: puts a throw-away overlay
# over it, makes it a node for a kubelet with cgroup v2, starts a real udevd, then answers `lab on u1`.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root TERM=dumb PYTHONDONTWRITEBYTECODE=1 LVM_SUPPRESS_FD_WARNINGS=1
dir=$1 src=$2 net=$3 number=$4 mark=$5 base=$1/h/u1
must() { "$@" || { echo "u1: failed: $*"; exit 1; }; } # the end of pid 1 is the end of u1; this is its last line on the console

# Modules are where this machine's kernel has none. The kernel's own calls of modprobe (dm-crypt asks for ciphers) look there too.
modules() {
  mount -t tmpfs tmpfs "$1/lib/modules"
  ln -s "/usr/lib/uml/modules/$(uname -r)" "$1/lib/modules/"
}
mount -t proc proc /proc
modules ""
must modprobe overlay
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/{up,work,root}
r=/run/root
must mount -t overlay overlay -o lowerdir=/,upperdir=/run/up,workdir=/run/work $r
mount -t proc proc $r/proc
mount -t sysfs sysfs $r/sys
mount -t devtmpfs dev $r/dev
mkdir -p $r/dev/pts $r/dev/shm
mount -t devpts -o ptmxmode=666 devpts $r/dev/pts
mount -t tmpfs -o mode=1777 tmpfs $r/dev/shm
mount -t tmpfs -o mode=755 tmpfs $r/run
mount -t tmpfs -o mode=1777 tmpfs $r/tmp
modules $r
mkdir -p $r/run/{ceph,udev/rules.d,lock,lvm,netns,containerd,disk} $r/oldroot
chown ceph:ceph $r/run/ceph
# LAB_DIR itself and not its shadow in the overlay: what is written later is seen on both sides
must mount --bind "$dir" "$r$dir"
cd $r && must pivot_root . oldroot # chroot is not enough: "Running in chroot, ignoring request", says udevadm
cd /
mount --make-rshared / # pods with mount propagation need it
hostname u1
ip link set lo up
ip link set vec0 up
ip addr add "$net.$((10 + number))/24" dev vec0
ip route add default via "$net.1" # "kubernetes" is 10.96.0.1 there (hosts.sh)
sysctl -qw net.ipv4.ip_forward=1
modprobe -a dm-mod dm-crypt veth bridge

# A disk has no serial number here. The lab writes its name beside its image before it plugs it in, and this makes of it the
# link that any disk has, /dev/disk/by-id/lab-NAME; the rest is udev's own, Debian's rules as they are.
cat > /run/udev/rules.d/61-lab.rules << R
SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="ubd*", IMPORT{file}="$base/disks/%k"
SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{LAB_NAME}=="?*", SYMLINK+="disk/by-id/lab-\$env{LAB_NAME}"
SUBSYSTEM=="block", ENV{DEVTYPE}=="partition", KERNEL=="ubd*", IMPORT{parent}="LAB_NAME"
SUBSYSTEM=="block", ENV{DEVTYPE}=="partition", ENV{LAB_NAME}=="?*", SYMLINK+="disk/by-id/lab-\$env{LAB_NAME}-part%n"
R
must /lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add --subsystem-match=block --subsystem-match=misc
udevadm settle

# The last of 16 possible disks holds containerd's root with the images unpacked, and all that pods write: memory is dear here
must mount -o noatime,noinit_itable /dev/ubdp /run/disk
own() { # FROM TO: directories that can't be on an overlay, or that are worth a look from outside
  mkdir -p "$1" "$2"
  must mount --bind "$1" "$2"
}
own /run/disk /var/lib/containerd
for d in lib/kubelet lib/rook lib/cni log/pods log/containers; do own "/run/disk/.lab/$d" "/var/$d"; done
own "$base/etc-ceph" /etc/ceph
own "$base/ceph" /var/lib/ceph
own "$base/log/ceph" /var/log/ceph
mkdir -p /var/lib/ceph/{osd,bootstrap-osd,crash,tmp} /etc/cni/net.d
chown ceph:ceph /etc/ceph /var/lib/ceph /var/lib/ceph/* /var/log/ceph
cat > /etc/cni/net.d/10-lab.conflist << C
{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "bridge", "bridge": "cni$number", "isGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [[{"subnet": "10.97.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
C

# cgroup v2: of v1 the kernel has no cpuset, without which a kubelet does not start
must mount -t cgroup2 cgroup2 /sys/fs/cgroup
for d in . "$mark" "$mark/u1"; do
  mkdir -p "/sys/fs/cgroup/$d"
  echo "+cpu +io +memory +pids" > "/sys/fs/cgroup/$d/cgroup.subtree_control"
done
mkdir -p "/sys/fs/cgroup/$mark/u1/daemons"
# the kubelet dies where /proc/cpuinfo names no clock speed
sed 's/^fpu\t/cpu MHz\t\t: 1000.000\n&/' /proc/cpuinfo > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo

while :; do
  /usr/bin/python3 "$src/py/uml_server.py" "$net.$((10 + number))" "$base/token"
  sleep 1
done
