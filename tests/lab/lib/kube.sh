# shellcheck shell=bash
# The Kubernetes cluster: etcd, API server, controller manager, scheduler on host cp; containerd and kubelet on every node.
# There is no kube-proxy and no DNS: all pods are on the host network, and "kubernetes" has its own address (hosts.sh).
K() { # kubectl as cluster-admin
  KUBECONFIG="$DIR/kubeconfig" KUBECACHEDIR="$DIR/kube-cache" net "$CACHE/bin/kubectl" "$@"
}
cmd_kubectl() {
  [ $# -ge 1 ] || usage "kubectl ARGS..."
  K "$@"
}

start_control_plane() {
  local bin="$CACHE/bin" p="$DIR/pki"
  # no fsync: after a crash of the computer the lab is lost anyway
  run_in cp etcd "$bin/etcd" --data-dir "$DIR/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --log-level warn
  make_keys
  run_in cp kube-apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --secure-port=443 \
    --advertise-address="$LAB_NET.1" --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction --allow-privileged=true --anonymous-auth=true --event-ttl=1h \
    --client-ca-file="$p/ca.crt" --tls-cert-file="$p/apiserver.crt" --tls-private-key-file="$p/apiserver.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$p/sa.pub" --service-account-signing-key-file="$p/sa.key" \
    --kubelet-client-certificate="$p/kubelet-client.crt" --kubelet-client-key="$p/kubelet-client.key" --kubelet-preferred-address-types=InternalIP \
    --audit-policy-file="$SRC/manifests/audit-policy.yaml" --audit-log-path="$DIR/audit.log" --audit-log-maxsize=4096
  poll 600 0.1 K get --raw /readyz > /dev/null 2>&1 || { tail -5 "$DIR/h/cp/log/kube-apiserver.log" >&2; die "the API server is not ready"; }
  note "API server ready"
  start_controller scheduler
  start_controller controller-manager --use-service-account-credentials --root-ca-file="$p/ca.crt" --service-account-private-key-file="$p/sa.key" --node-monitor-period=1s
}

start_controller() { # NAME ARGS...: with high limits of requests a second, so that many objects at once are not slow
  local c="$DIR/$1.conf" n="kube-$1"
  shift
  run_in cp "$n" "$CACHE/bin/$n" --kubeconfig="$c" --authentication-kubeconfig="$c" --authorization-kubeconfig="$c" \
    --kube-api-qps=300 --kube-api-burst=500 --bind-address=127.0.0.1 --leader-elect=false "$@"
}

start_container_runtime() { # NODE: needs no API server
  if is_uml "$1"; then start_uml_runtime; return; fi
  local h=$1 b="$DIR/h/$1" c r=$SNAPSHOTS
  # Its root is a copy of the one in the cache: copies of the databases, hard links to the blobs (copies on another file
  # system), and read-only bind mounts of the unpacked layers, ten thousand files. containerd only adds layers to them.
  exec 7< "$CACHE/lock"
  flock -s 7 # so that no image is added meanwhile
  (cd "$CACHE/ctrd" && find . -path "./$r/*/*" -prune -o -type d -print) | while read -r c; do mkdir -p "$b/containerd/$c"; done
  (cd "$CACHE/ctrd" && find . -path "./$r" -prune -o -type f -print) | while read -r c; do
    case $c in */blobs/*) ln "$CACHE/ctrd/$c" "$b/containerd/$c" 2> /dev/null && continue ;; esac
    cp "$CACHE/ctrd/$c" "$b/containerd/$c"
  done
  exec 7<&-
  on "$h" bash -e -c 'for s in "$1"/[0-9]*; do
      t=/var/lib/containerd/$2/${s##*/}; mkdir "$t/fs" "$t/work"; mount --bind "$s/fs" "$t/fs"; mount -o remount,bind,ro "$t/fs"
    done' - "$CACHE/ctrd/$r" "$r" || die "no containerd root for $h"
  for c in $CGROUPS; do mkdir -p "/sys/fs/cgroup/$c/$LAB_ID/$h" 2> /dev/null; done
  containerd_config /run/containerd /var/lib/containerd > "$b/containerd.toml"
  run_in "$h" containerd containerd -c "$b/containerd.toml"
}
# Environment of `lab up`: NO_SHIM=1 starts the kubelets of h1 h2 ... without losetup-kubelet, so that block volumes fail there;
# KUBELET_V is the level of their logs.
start_kubelet() { # NODE
  local h=$1 b="$DIR/h/$1" ip path=$PATH
  ip=$(address_of "$h")
  render "$SRC/manifests/kubelet.yaml" "ADDRESS=$ip" "DIR=$DIR" "CGROUP=$LAB_ID/$h" > "$b/kubelet.yaml"
  if ! is_uml "$h" && [ -z "${NO_SHIM:-}" ]; then # u1 has a udevd and its own /sys
    mkdir "$b/kubelet-bin"
    render "$SRC/lib/losetup-kubelet" "DIR=$DIR" "HOST=$h" "FIRST=$(first_loop)" > "$b/kubelet-bin/losetup"
    chmod 755 "$b/kubelet-bin/losetup"
    path=$b/kubelet-bin:$PATH
  fi
  run_in "$h" kubelet env "PATH=$path" "$CACHE/bin/kubelet" --v="${KUBELET_V:-0}" --config="$b/kubelet.yaml" --kubeconfig="$DIR/kubelet-$h.conf" --hostname-override="$h" --node-ip="$ip"
}

start_kubernetes() {
  local h uml=
  mkdir -m 700 "$DIR/etcd"
  echo "nameserver 10.96.0.10" > "$DIR/resolv.conf"
  for h in $NODES; do
    if is_uml "$h"; then start_container_runtime "$h" & uml=$!; else start_container_runtime "$h"; fi # u1 must boot first
  done
  start_control_plane
  [ -z "$uml" ] || wait_jobs "$uml"
  for h in $NODES; do start_kubelet "$h"; done
  poll 300 0.2 nodes_ready || { K get nodes >&2; die "nodes are not ready (see $DIR/h/*/log)"; }
  note "nodes ready"
}
nodes_ready() { [ "$(K get nodes --no-headers 2> /dev/null | grep -cw Ready)" = "$(wc -w <<< "$NODES")" ]; }

cmd_job() { # applies the manifests of job/ with the lab's images and network, and a short pause before a retry
  local file text
  args_at_most 0 "$@"
  for file in "$SRC"/../../job/*.yaml; do
    text=$(sed -E -e "s|image: \"osd-migrate:[^\"]*\"|image: $TOOL_IMAGE|" -e "s|image: \"[^\"]*/ceph:[^\"]*\"|image: $CEPH_IMAGE|" -e 's|hostNetwork: false|hostNetwork: true|' \
      -e 's|args: \["run"\]|args: ["run", "--agent-retry-pause", "1s"]|' "$file") || die "$file cannot be read"
    K -n rook-ceph apply -f - <<< "$text" || die "$file could not be applied"
  done
}
