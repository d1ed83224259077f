# shellcheck shell=bash
# Lists what a lab of this LAB_DIR has on the computer, without the lab's own files: by the mark in the environment of its
# processes, its cgroup, its bridge, the files behind loop devices, the paths of mounts.
cmd_leftovers() {
  local found
  found=$(left_processes; left_loops; left_mounts; left_networks; left_cgroups; [ ! -e "$DIR" ] || echo "directory $DIR")
  [ -n "$found" ] || { echo "nothing is left behind"; return 0; }
  echo "$found"
  return 1
}
describe() { echo "process $1 $(tr '\0' ' ' < "/proc/$1/cmdline" 2> /dev/null | cut -c1-100)"; }
left_processes() {
  local p mark
  { # processes that the lab started have the mark; processes of pods are in the cgroup
    grep -lszx "OSD_LAB=$LAB_ID" /proc/[0-9]*/environ | cut -d/ -f3
    find /sys/fs/cgroup/*/"$LAB_ID" -name cgroup.procs -exec cat {} + 2> /dev/null
  } | sort -nu | while read -r p; do
    mark=$(cut -d' ' -f3 "/proc/$p/stat" 2> /dev/null)
    [ "$p" = 0 ] || [ -z "$mark" ] || [ "$mark" = Z ] || describe "$p"
  done
}
left_loops() { # those of kubelets have a number of this lab; without the host, the path of their file is "/"
  losetup -n -l -O NAME,BACK-FILE | awk -v d="$DIR/" -v first="$(first_loop)" '{n = substr($1, 10) + 0}
    index($2, d) == 1 || (($2 == "/" || index($2, "/volumeDevices/")) && n >= first && n < first + 64) {print "loop", $1, $2}'
}
left_mounts() { # in the mount namespaces of all processes
  cat /proc/[0-9]*/mountinfo 2> /dev/null | awk -v d="$DIR/" 'index($5, d) == 1 || index($0, "upperdir=" d) {print "mount", $5}' | sort -u
}
left_networks() {
  local p ns seen
  seen=" $(readlink /proc/self/ns/net) "
  for p in /proc/[0-9]*; do
    ns=$(readlink "$p/ns/net" 2> /dev/null) || continue
    case $seen in *" $ns "*) continue ;; esac
    seen+="$ns "
    grep -q "^ *$BRIDGE:" "$p/net/dev" 2> /dev/null && echo "network namespace $ns with $BRIDGE (process ${p#/proc/})"
  done
}
left_cgroups() { for c in /sys/fs/cgroup/*/"$LAB_ID"; do [ ! -d "$c" ] || echo "cgroup $c"; done; }
