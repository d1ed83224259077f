#!/bin/bash
# Pid 1 of u1, a User-Mode Linux whose root file system is that of the computer, read through hostfs. Mounts a temporary overlay
# over it, prepares it for a kubelet with cgroup v2, starts a real udevd, then serves `lab on u1`.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root TERM=dumb PYTHONDONTWRITEBYTECODE=1 LVM_SUPPRESS_FD_WARNINGS=1
dir=$1 src=$2 net=$3 number=$4 mark=$5 kernel=$6 base=$1/h/u1
power_off='import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)' # LINUX_REBOOT_CMD_POWER_OFF
# An exit of pid 1 would not end u1: the kernel panics and keeps the CPU. This is the last line on the console.
must() { "$@" || { echo "u1: failed: $*"; /usr/bin/python3 -c "$power_off"; }; }

# Mounts the modules where the kernel's own calls of modprobe find them, too (dm-crypt requests ciphers).
modules() {
  mount -t tmpfs tmpfs "$1/lib/modules"
  ln -s "$kernel/usr/lib/uml/modules/$(uname -r)" "$1/lib/modules/"
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
# LAB_DIR itself, not through the overlay, so that later writes are visible on both sides
mkdir -p "$r$dir" # the directory /tmp of u1 is empty
must mount --bind "$dir" "$r$dir"
cd $r && must pivot_root . oldroot # chroot is not enough: udevadm would ignore requests in a chroot
cd /
mount --make-rshared / # pods with mount propagation need it
hostname u1
ip link set lo up
ip link set vec0 up
ip addr add "$net.$((10 + number))/24" dev vec0
ip route add default via "$net.1" # "kubernetes" is 10.96.0.1 there (hosts.sh)
sysctl -qw net.ipv4.ip_forward=1
modprobe -a dm-mod dm-crypt veth bridge loop # kubelets attach loop devices to block volumes

# A disk has no serial number here. The lab stores its name in a file before it attaches the disk. These rules create the
# link /dev/disk/by-id/lab-NAME from it; all other rules are Debian's.
cat > /run/udev/rules.d/61-lab.rules << R
SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="ubd*", IMPORT{file}="$base/disks/%k"
SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{LAB_NAME}=="?*", SYMLINK+="disk/by-id/lab-\$env{LAB_NAME}"
SUBSYSTEM=="block", ENV{DEVTYPE}=="partition", KERNEL=="ubd*", IMPORT{parent}="LAB_NAME"
SUBSYSTEM=="block", ENV{DEVTYPE}=="partition", ENV{LAB_NAME}=="?*", SYMLINK+="disk/by-id/lab-\$env{LAB_NAME}-part%n"
R
must /lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add --subsystem-match=block --subsystem-match=misc
udevadm settle

# The last of 16 possible disks has containerd's root with the unpacked images, and all that pods write, to save memory
must mount -o noatime,noinit_itable /dev/ubdp /run/disk
own() { # FROM TO: directories that cannot be on an overlay, or that are useful outside of u1
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

# cgroup v2: the kernel has no cpuset of v1, without which a kubelet does not start
must mount -t cgroup2 cgroup2 /sys/fs/cgroup
for d in . "$mark" "$mark/u1"; do
  mkdir -p "/sys/fs/cgroup/$d"
  echo "+cpu +io +memory +pids" > "/sys/fs/cgroup/$d/cgroup.subtree_control"
done
mkdir -p "/sys/fs/cgroup/$mark/u1/daemons"
# the kubelet fails if /proc/cpuinfo has no clock speed
sed 's/^fpu\t/cpu MHz\t\t: 1000.000\n&/' /proc/cpuinfo > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo

while :; do
  /usr/bin/python3 "$src/py/uml_server.py" "$net.$((10 + number))" "$base/token"
  sleep 1
done
