#!/bin/bash
# Runs inside a host, once: BASE/tree becomes the tree of another Ceph release, copy-on-write, in which everything but programs
# and /etc is the host's own, by the same path; BASE/bin gets a command for each of Ceph's programs that runs it there.
set -e
base=$1 lower=$2
tree=$base/tree
mkdir -p "$base"/cow/tree/{up,work} "$base/bin" "$tree"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$base/cow/tree/up,workdir=$base/cow/tree/work" "$tree"

# what containers mount below /run later is none of its business
for d in /dev /proc /sys /run; do
  mount --rbind "$d" "$tree$d"
  mount --make-rprivate "$tree$d"
done
# mounts made in here are to be seen outside, as that of `raw prepare`: on a node these stay shared
for d in /* /etc/ceph /var/lib/ceph /var/lib/rook /var/log/ceph /var/storage; do
  case $d in /usr | /etc | /var | /dev | /proc | /sys | /run) continue ;; esac
  [ -d "$d" ] && [ ! -L "$d" ] || continue
  mkdir -p "$tree$d"
  mount --bind "$d" "$tree$d"
done

cat > "$base/bin/in-release" << S
#!/bin/bash
# CMD ARGS...; or, by the name of a link to it, that program
name=\${0##*/}
[ "\$name" = in-release ] || set -- "\$name" "\$@"
exec chroot "$tree" /usr/bin/env -C "\$PWD" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "\$@"
S
chmod 755 "$base/bin/in-release"
shopt -s nullglob
for program in "$tree"/usr/{bin,sbin}/{ceph,ceph-*,rados,monmaptool,osdmaptool,crushtool}; do
  ln -sf in-release "$base/bin/${program##*/}"
done
