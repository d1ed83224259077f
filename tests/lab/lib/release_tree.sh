#!/bin/bash
# Runs inside a host, once. Creates BASE/tree, the copy-on-write tree of another Ceph release. Everything in it except the
# programs and /etc is the host's own, under the same path. BASE/bin gets a command for each of Ceph's programs, which runs
# the program in the tree.
set -e
base=$1 lower=$2
tree=$base/tree
mkdir -p "$base"/cow/tree/{up,work} "$base/bin" "$tree"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$base/cow/tree/up,workdir=$base/cow/tree/work" "$tree"

# the tree does not need what containers mount below /run later
for d in /dev /proc /sys /run; do
  mount --rbind "$d" "$tree$d"
  mount --make-rprivate "$tree$d"
done
# mounts that are created in the tree, like that of `raw prepare`, must be visible outside: on a node these stay shared
for d in /* /etc/ceph /var/lib/ceph /var/lib/rook /var/log/ceph /var/storage; do
  case $d in /usr | /etc | /var | /dev | /proc | /sys | /run) continue ;; esac
  [ -d "$d" ] && [ ! -L "$d" ] || continue
  mkdir -p "$tree$d"
  mount --bind "$d" "$tree$d"
done

cat > "$base/bin/in-release" << S
#!/bin/bash
# CMD ARGS...: runs CMD in the tree; a link to this script runs the program with the name of the link
name=\${0##*/}
[ "\$name" = in-release ] || set -- "\$name" "\$@"
exec chroot "$tree" /usr/bin/env -C "\$PWD" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "\$@"
S
chmod 755 "$base/bin/in-release"
shopt -s nullglob
for program in "$tree"/usr/{bin,sbin}/{ceph,ceph-*,rados,monmaptool,osdmaptool,crushtool}; do
  ln -sf in-release "$base/bin/${program##*/}"
done
