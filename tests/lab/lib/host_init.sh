#!/bin/bash
# Pid 1 of a lab host, in new mount, UTS and PID namespaces. Creates the host's own /etc, /var, /run, /dev and view of
# /sys/block, then waits. It is bash, because pid 1 must reap. When it ends, the kernel ends all processes of the host.
set -e
name=$1 base=$2 role=$3 number=$4
hostname "$name"

# copy-on-write, so that changes of a host do not reach the computer
for d in etc var; do
  mkdir -p "$base/cow/$d/up" "$base/cow/$d/work"
  mount -t overlay overlay -o "lowerdir=/$d,upperdir=$base/cow/$d/up,workdir=$base/cow/$d/work" "/$d"
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/{ceph,udev,lock,lvm,netns,containerd}
chown ceph:ceph /run/ceph

# directories that are useful outside of the host, or that cannot be on an overlay
own() { mkdir -p "$base/$1" "$2"; mount --bind "$base/$1" "$2"; }
own etc-ceph /etc/ceph
own ceph /var/lib/ceph
own log/ceph /var/log/ceph
own rook /var/lib/rook
mkdir /var/storage
mkdir -p /var/lib/ceph/{osd,bootstrap-osd,mon,mgr,crash,tmp}
chown ceph:ceph /etc/ceph /var/lib/ceph /var/lib/ceph/* /var/log/ceph

dev=$base/dev
mkdir -p "$dev"
mount -t tmpfs -o mode=755 tmpfs "$dev"
for n in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r f a b <<< "$n"
  mknod -m 666 "$dev/$f" c "$a" "$b"
done
mknod -m 600 "$dev/loop-control" c 10 237
mknod -m 600 "$dev/kmsg" c 1 11 # kubelet does not start without it
mkdir "$dev"/{shm,pts,mapper,disk}
ln -s /proc/self/fd "$dev/fd"
ln -s fd/0 "$dev/stdin"
ln -s fd/1 "$dev/stdout"
ln -s fd/2 "$dev/stderr"
mount -t devpts -o ptmxmode=666,newinstance devpts "$dev/pts"
ln -s pts/ptmx "$dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$dev/shm"
mount --rbind "$dev" /dev

# the only visible block devices are the system disk and, later, the host's own
system=$(readlink -e "/sys/dev/block/$(stat -c %Hd:%Ld "$base")" || true)
for n in block class/block dev/block; do mount -t tmpfs -o mode=755 tmpfs "/sys/$n"; done
if [ -n "$system" ]; then
  ln -s "../${system#/sys/}" "/sys/block/${system##*/}"
  ln -s "../../${system#/sys/}" "/sys/class/block/${system##*/}"
  ln -s "../../${system#/sys/}" "/sys/dev/block/$(cat "$system/dev")"
fi

if [ "$role" = node ]; then
  own containerd /var/lib/containerd
  own kubelet /var/lib/kubelet
  own log/pods /var/log/pods
  # kubelet would set these sysctls, of the whole computer, if they differ: provide files with its values
  for s in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 \
    kernel/keys/root_maxbytes=25000000; do
    f=$base/sysctl.${s%%=*}
    mkdir -p "${f%/*}"
    echo "${s#*=}" > "$f"
    [ ! -e "/proc/sys/${s%%=*}" ] || mount --bind "$f" "/proc/sys/${s%%=*}"
  done
  mkdir -p /etc/cni/net.d
  cat > /etc/cni/net.d/10-lab.conflist << C
{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "bridge", "bridge": "cni$number", "isGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [[{"subnet": "10.97.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
C
  mount --make-rshared / # for pods with mount propagation; only in this namespace
fi

trap 'exit 0' TERM
touch "$base/ready"
while :; do
  sleep 3600 &
  wait $!
done
