#!/usr/bin/env bash
# Does one thing to a control plane that up.sh made. The commands in its state folder call it.
#   ctl.sh STATE start | start-apiserver [--no-wait] | stop-apiserver | compact | save | restore | down
set -euo pipefail
state=$1 command=$2
shift 2
cd "$state"
. ./cluster.env # bin, port, etcd_port, owner, apiserver_flags, controllers

fail() {
  echo "$state: $*" >&2
  exit 1
}

# alive NAME: does the process of NAME.pid live and is it ours? Every process works in the state folder; a later one that
# got the number does not, and a dead one that nobody has reaped works nowhere.
alive() {
  local pid
  pid=$(cat "$1.pid" 2>/dev/null) && [ "$(readlink "/proc/$pid/cwd")" = "$state" ]
}

# spawn NAME COMMAND...: in a session of its own, so that no signal to the caller's group reaches it and it holds no pipe
spawn() {
  local name=$1
  shift
  setsid "$@" >>"$name.log" 2>&1 </dev/null &
  echo $! >"$name.pid"
}

# destroy NAME: SIGKILL, and back only when the process is gone and its port is free
destroy() {
  while alive "$1"; do
    kill -KILL -- "-$(cat "$1.pid")" 2>/dev/null || true
    sleep 0.02
  done
  rm -f "$1.pid"
}

api() {
  curl --silent --show-error --fail --max-time 10 --cacert ca.crt -H "Authorization: Bearer admintoken" -H "Content-Type: application/json" \
    "$@" 2>&1
}

etcd_post() { curl --silent --show-error --fail --max-time 30 "http://127.0.0.1:$etcd_port/v3/kv/$1" -d "$2"; }

start_etcd() {
  spawn etcd "$bin/etcd" --data-dir="$state/etcd" --unsafe-no-fsync \
    --listen-client-urls="http://127.0.0.1:$etcd_port" --advertise-client-urls="http://127.0.0.1:$etcd_port" \
    --listen-peer-urls=unix://peer:0 --initial-advertise-peer-urls=unix://peer:0 --initial-cluster=default=unix://peer:0
}

start_apiserver() {
  alive apiserver && fail "kube-apiserver already runs"
  spawn apiserver "$bin/kube-apiserver" --bind-address=127.0.0.1 --secure-port="$port" \
    --tls-cert-file=server.crt --tls-private-key-file=server.key \
    --etcd-servers="http://127.0.0.1:$etcd_port" --etcd-compaction-interval=0 \
    --token-auth-file=tokens.csv --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount --allow-privileged=true \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file=sa.pub --service-account-signing-key-file=sa.key \
    --service-cluster-ip-range=10.0.0.0/24 --advertise-address=127.0.0.1 --endpoint-reconciler-type=none \
    --audit-policy-file=audit-policy.yaml --audit-log-path=audit.log --audit-log-format=json --audit-log-mode=blocking \
    --audit-log-maxsize=4096 "${apiserver_flags[@]}"
}

start_controller_manager() {
  spawn controller-manager "$bin/kube-controller-manager" --kubeconfig="$state/controller-manager.kubeconfig" --leader-elect=false \
    "${controller_manager_ports[@]}" --service-account-private-key-file=sa.key --root-ca-file=ca.crt --controllers="$controllers" \
    --kube-api-qps=200 --kube-api-burst=400
}

wait_until_ready() {
  local answer=
  for _ in $(seq 600); do
    alive etcd || fail "etcd ended: $(tail -n 3 etcd.log)"
    alive apiserver || fail "kube-apiserver ended: $(tail -n 3 apiserver.log)"
    answer=$(api "https://127.0.0.1:$port/readyz") && return
    sleep 0.2
  done
  fail "kube-apiserver is not ready after two minutes: $answer"
}

# /readyz alone proves little: a server with a broken encoder says ok and dies of the first object that has labels.
prove_it_stores() {
  local configmaps=https://127.0.0.1:$port/api/v1/namespaces/default/configmaps answer
  for _ in $(seq 150); do
    answer=$(api "$configmaps" -d '{"metadata":{"name":"proof","labels":{"proof":"yes"}},"data":{"a":"b"}}') &&
      answer=$(api -X DELETE "$configmaps/proof") && return
    sleep 0.2 # the namespace default comes a moment after readiness
  done
  fail "kube-apiserver does not keep a labelled ConfigMap: $answer"
}

case $command in
  start)
    [ -z "$owner" ] || spawn owner bash -c "tail --pid=$owner -f /dev/null; exec $(printf '%q %q' "$0" "$state") down"
    start_etcd
    start_apiserver
    wait_until_ready
    prove_it_stores
    [ -z "$controllers" ] || start_controller_manager
    ;;
  start-apiserver)
    start_apiserver
    [ "${1:-}" = --no-wait ] || wait_until_ready
    ;;
  stop-apiserver)
    alive apiserver || fail "kube-apiserver does not run"
    destroy apiserver
    ;;
  compact)
    answer=$(etcd_post range '{"key":"AA==","count_only":true}')
    revision=$(sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p' <<<"$answer")
    [ -n "$revision" ] || fail "etcd did not tell its revision: $answer"
    etcd_post compaction "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null
    echo "$revision"
    ;;
  save)
    # stopped for a moment: its files are then as a crash would leave them, which etcd recovers from
    kill -STOP -- "-$(cat etcd.pid)"
    rm -rf etcd.saved
    cp -r --sparse=always etcd etcd.saved || copied=no
    kill -CONT -- "-$(cat etcd.pid)"
    [ "${copied:-yes}" = yes ] || fail "etcd's files could not be copied"
    ;;
  restore)
    [ -d etcd.saved ] || fail "nothing was saved"
    destroy apiserver
    destroy etcd
    rm -rf etcd
    cp -r --sparse=always etcd.saved etcd
    start_etcd
    start_apiserver
    wait_until_ready
    ;;
  down)
    destroy controller-manager
    destroy apiserver
    destroy etcd
    [ "$(cat owner.pid 2>/dev/null)" = $$ ] || destroy owner
    rm -f owner.pid
    ;;
  *) fail "no command \"$command\"" ;;
esac
