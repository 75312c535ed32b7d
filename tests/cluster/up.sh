#!/usr/bin/env bash
# Starts a real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager, ready in seconds.
#   up.sh --version 1.20|1.36 --state DIR --port P --etcd-port E [options]
#     --no-controller-manager   without it: no ReplicaSets, no garbage collector
#     --controllers LIST        which controllers it runs; default '*,-nodelifecycle,-ttl'
#     --apiserver-flag FLAG     one more flag for kube-apiserver; may be repeated
#     --owner PID               take everything down when this process ends, however it ends
# Prints KUBECONFIG=DIR/kubeconfig. README.md tells what else is in DIR.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() { die "$1; usage: up.sh --version 1.20|1.36 --state DIR --port P --etcd-port E [options, see the script's head]"; }

version= state= port= etcd_port= owner= controllers='*,-nodelifecycle,-ttl' apiserver_flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-controller-manager)
      controllers=
      shift
      continue
      ;;
    --version | --state | --port | --etcd-port | --owner | --controllers | --apiserver-flag) [ $# -ge 2 ] || usage "$1 needs a value" ;;
    *) usage "unknown argument \"$1\"" ;;
  esac
  case $1 in
    --version) version=$(full_version "$2") ;;
    --state) state=$2 ;;
    --port) port=$2 ;;
    --etcd-port) etcd_port=$2 ;;
    --owner) owner=$2 ;;
    --controllers) controllers=$2 ;;
    --apiserver-flag) apiserver_flags+=("$2") ;;
  esac
  shift 2
done
[ -n "$version" ] && [ -n "$state" ] || usage "--version and --state are needed"
for number in "$port" "$etcd_port" "${owner:-1}"; do
  [[ $number =~ ^[0-9]+$ ]] || usage "--port, --etcd-port and --owner take numbers"
done

bin=$cache/$version
[ -e "$bin/built-from" ] || die "Kubernetes $version is not built: run $here/build.sh ${version%.*}"

# Only a folder that is empty or was made here is emptied.
mkdir -p "$state"
state=$(cd "$state" && pwd -P)
if [ -e "$state/cluster.env" ]; then
  "$here/ctl.sh" "$state" down
  rm -rf "${state:?}"/*
fi
[ -z "$(ls -A "$state")" ] || die "$state is neither empty nor the state of an earlier run"
umask 077
cd "$state"

controller_manager_ports=(--secure-port=0)
[ "$version" != 1.20.2 ] || controller_manager_ports+=(--port=0)
declare -p bin port etcd_port owner controllers apiserver_flags controller_manager_ports >cluster.env
cp "$here/audit-policy.yaml" .
for command in start-apiserver stop-apiserver compact save restore down; do
  printf '#!/bin/sh\nexec %q %q %s "$@"\n' "$here/ctl.sh" "$state" "$command" >"$command"
  chmod +x "$command"
done

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
key ca.key
openssl req -x509 -new -key ca.key -days 3650 -subj /CN=boatswain-test-ca -out ca.crt \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
key server.key
openssl req -new -key server.key -subj /CN=kube-apiserver | openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 \
  -out server.crt -extfile <(printf '%s\n' basicConstraints=critical,CA:FALSE keyUsage=critical,digitalSignature \
    extendedKeyUsage=serverAuth subjectAltName=IP:127.0.0.1,DNS:localhost) 2>/dev/null
key sa.key
openssl ec -in sa.key -pubout -out sa.pub 2>/dev/null

: >tokens.csv
# identity FILE TOKEN USER [GROUP]: a token, and a kubeconfig that carries it
identity() {
  echo "$2,$3,$3${4:+,\"$4\"}" >>tokens.csv
  cat >"$1" <<K
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $3, user: {token: $2}}]
contexts: [{name: test, context: {cluster: test, user: "$3", namespace: default}}]
current-context: test
K
}
identity kubeconfig admintoken admin system:masters
identity viewer.kubeconfig viewertoken viewer
for number in 1 2 3 4; do identity "replica-$number.kubeconfig" "replica-$number-token" "replica-$number" system:masters; done
identity controller-manager.kubeconfig managertoken system:kube-controller-manager system:masters

"$here/ctl.sh" "$state" start || {
  "$here/ctl.sh" "$state" down
  die "Kubernetes $version did not start; its logs are in $state"
}
echo "KUBECONFIG=$state/kubeconfig"
