# shellcheck shell=bash
# The Kubernetes cluster's certificates and kubeconfigs.
cert() { # FILE SUBJECT [SAN]: creates a key and a certificate of the lab's CA
  local k="$DIR/pki/$1"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$k.key" -subj "$2" -out "$k.csr" 2> /dev/null &&
    openssl x509 -req -in "$k.csr" -CA "$DIR/pki/ca.crt" -CAkey "$DIR/pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 -out "$k.crt" \
      -extfile <(echo "extendedKeyUsage=clientAuth,serverAuth"; [ -z "${3:-}" ] || echo "subjectAltName=$3") 2> /dev/null || die "certificate $1"
  rm -f "$k.csr"
}
kubeconfig() { # FILE CERT
  render "$SRC/manifests/kubeconfig.yaml" "SERVER=https://$LAB_NET.1:443" "PKI=$DIR/pki" "CERT=$2" > "$DIR/$1"
}
make_keys() {
  local h p="$DIR/pki"
  mkdir -p "$p"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$p/ca.key" -out "$p/ca.crt" -subj /CN=lab-ca -days 3650 2> /dev/null || die "no CA"
  openssl ecparam -name prime256v1 -genkey -noout -out "$p/sa.key" && openssl ec -in "$p/sa.key" -pubout -out "$p/sa.pub" 2> /dev/null
  cert apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,IP:10.96.0.1,IP:$LAB_NET.1"
  cert admin /O=system:masters/CN=admin
  cert kubelet-client /O=system:masters/CN=apiserver-kubelet-client
  cert controller-manager /CN=system:kube-controller-manager
  cert scheduler /CN=system:kube-scheduler
  kubeconfig kubeconfig admin
  kubeconfig controller-manager.conf controller-manager
  kubeconfig scheduler.conf scheduler
  for h in $NODES; do
    cert "kubelet-$h" "/O=system:nodes/CN=system:node:$h"
    kubeconfig "kubelet-$h.conf" "kubelet-$h"
  done
}
