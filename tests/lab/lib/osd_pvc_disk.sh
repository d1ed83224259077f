# shellcheck shell=bash
# DEVICE, in a pod that has the devices of its node: limits LVM to the disk of a volume, as Rook's program does, and prints the
# path of the disk. Otherwise LVM finds the disk twice: a kubelet's loop device lies on it.
set -e
disk=/dev/$(basename "$(readlink -f "/sys/dev/block/$(stat -c %Hr:%Lr "$1")")")
sed -i "s/^devices {/&\n\tglobal_filter = [ \"a|^${disk//\//\\/}\$|\", \"r|.*|\" ]/" /etc/lvm/lvm.conf
echo "$disk"
