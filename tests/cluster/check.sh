#!/usr/bin/env bash
# Tries on a real control plane everything the end-to-end tests take for granted about it, so that a failure there is ours.
#   check.sh [1.20|1.36]...     default: both; BOATSWAIN_CLUSTER_PORT (18443) and the port after it are used
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need jq:jq
port=${BOATSWAIN_CLUSTER_PORT:-18443}
passed=0 failed=0 state=

# expect WHAT COMMAND...: counts whether the command succeeds
expect() {
  local what=$1
  shift
  if "$@" >"$state.out" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $version: $what"
  else
    failed=$((failed + 1))
    echo "FAILED: $version: $what"
    sed 's/^/    /' "$state.out"
  fi
}

# soon COMMAND...: tries for a minute
soon() {
  local end=$((SECONDS + 60))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

k() { kubectl --kubeconfig "$state/kubeconfig" "$@"; }
not() { ! "$@"; }
gone() { ! k get "$@" >/dev/null 2>&1; }
field_is() { [ "$(k get "$1" "$2" -o "jsonpath={$3}")" = "$4" ]; }
audited() { jq -se "$1" "$state/audit.log" >/dev/null; }
version_now() { k get --raw /api/v1/configmaps | jq -r .metadata.resourceVersion; }

# watch_answers VERSION TEXT: does a watch of ConfigMaps from that version say this within two seconds?
watch_answers() { k get --raw "/api/v1/configmaps?watch=1&timeoutSeconds=2&resourceVersion=$1" | tee /dev/stderr | grep -q "$2"; }

# history_is_gone VERSION: a list at exactly that version is answered out of etcd's history, if there is any
history_is_gone() {
  { k get --raw "/api/v1/configmaps?resourceVersionMatch=Exact&resourceVersion=$1" 2>&1 || true; } | tee /dev/stderr | grep -q "too old"
}

scale() { # scale REPLICAS RESOURCE_VERSION: by PUT of the subresource
  printf '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default","resourceVersion":"%s"},"spec":{"replicas":%d}}' \
    "$2" "$1" | k replace --raw /apis/apps/v1/namespaces/default/deployments/web/scale -f -
}

no_process_works_in() { ! readlink /proc/[0-9]*/cwd | grep -x "$1"; }

forbidden() {
  local answer
  answer=$(kubectl --kubeconfig "$state/viewer.kubeconfig" get configmaps 2>&1) && return 1
  grep -q 'configmaps is forbidden: User "viewer" cannot list' <<<"$answer"
}

deployment_version() { k get deployment web -o 'jsonpath={.metadata.resourceVersion}'; }
scale_current() { scale "$1" "$(deployment_version)"; }

owner_and_owned() {
  k create -f - <<Y
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: owners.example.com}
spec:
  group: example.com
  names: {kind: Owner, plural: owners, singular: owner}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
Y
  k wait --for=condition=Established --timeout=30s crd/owners.example.com
  printf '{"apiVersion":"example.com/v1","kind":"Owner","metadata":{"name":"o"}}' >"$state/owner.json"
  soon k create -f "$state/owner.json"
  k create -f - <<Y
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  ownerReferences: [{apiVersion: example.com/v1, kind: Owner, name: o, uid: $(k get owner o -o 'jsonpath={.metadata.uid}')}]
Y
}

check() {
  local before
  version=$1
  state=$(mktemp -d)/state
  expect "it starts" "$here/up.sh" --version "$version" --state "$state" --port "$port" --etcd-port $((port + 1)) --owner $$

  k create deployment web --image=none --replicas=2 >/dev/null
  expect "a Deployment gets its ReplicaSet and Pods" soon field_is deployment web .status.replicas 2
  before=$(deployment_version)
  expect "a scale PUT with the current version is accepted" soon scale_current 3
  expect "one with a stale version is refused" not scale 4 "$before"
  expect "the replicas follow" soon field_is deployment web .status.replicas 3
  # 1.20 leaves the request body of a scale PUT out; the answer and the precondition are there on both.
  expect "the audit log has the accepted scale PUT, once, with its precondition and its answer" audited '[.[] | select(.stage == "ResponseComplete" and .verb == "update"
    and .objectRef.subresource == "scale" and .responseStatus.code == 200)]
    | length == 1 and (.[0].objectRef.resourceVersion | length > 0) and .[0].responseObject.spec.replicas == 3'
  expect "and the refused one" audited 'any(.objectRef.subresource == "scale" and .responseStatus.code == 409)'

  expect "the viewer may not list" forbidden
  expect "a custom resource can own a ConfigMap" owner_and_owned
  k delete owner o >/dev/null
  expect "which the garbage collector deletes after its owner" soon gone configmap owned
  expect "and the audit log tells who did" audited 'any(.verb == "delete" and .objectRef.name == "owned"
    and .user.username == "system:kube-controller-manager")'

  before=$(version_now)
  k create configmap later >/dev/null
  k create configmap latest >/dev/null
  expect "compaction tells a revision" "$state/compact"
  expect "a watch from before it still works out of the server's memory" watch_answers "$before" later
  expect "kube-apiserver is killed" "$state/stop-apiserver"
  expect "and answers no more" not k get configmap later
  expect "and is started again over the same data" "$state/start-apiserver"
  expect "which are all there" k get configmap later latest
  expect "now a watch from before the kill has expired" soon watch_answers "$before" '"code":410'
  expect "and compaction took the history away" history_is_gone "$before"

  expect "it is taken down" "$state/down"
  expect "and leaves no process" no_process_works_in "$state"
  rm -rf "${state%/state}"
}

[ $# -gt 0 ] || set -- 1.20 1.36
for version; do check "$version"; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
