#!/usr/bin/env bash
# The README's first command, as a stranger would try it: scaled within 5 s, kubectl works, a patch is followed, Ctrl-C ends it with 0.
# The times are bounds for people, checked generously: a slow machine must not fail a correct program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v kubectl >/dev/null || { echo "kubectl is needed: tests/cluster/build.sh installs it" >&2; exit 1; }

dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
cargo build --locked --release -p podautoscaler
begin=$(date +%s%N)
cargo run --locked --release -p podautoscaler -- run --embedded >"$dir/out" 2>"$dir/err" &
pid=$!

# until WHAT COMMAND...: waits for a condition, a minute at most
until_() {
  local what=$1
  shift
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "not within a minute: $what" >&2
  tail -n 20 "$dir/err" >&2
  exit 1
}
scaled() { [ "$(grep -c ' scaled ' "$dir/err")" -ge "$1" ]; }
until_ "two Deployments are scaled" scaled 2
echo "both Deployments scaled $((($(date +%s%N) - begin) / 1000000)) ms after the start"

KUBECONFIG=$(sed -n 's/^KUBECONFIG=//p' "$dir/out")
export KUBECONFIG
synced() { [ "$(kubectl get pa --no-headers | awk '$3 == $4 && $5 == "True"' | wc -l)" = 2 ]; }
until_ "kubectl get pa shows desired = current and Synced True" synced
kubectl get pa

replicas() { [ "$(kubectl get deployment web -o 'jsonpath={.spec.replicas}')" = "$1" ]; }
kubectl patch pa web --type merge -p '{"spec":{"replicas":7}}'
begin=$(date +%s%N)
until_ "the patch is followed" replicas 7
echo "followed after $((($(date +%s%N) - begin) / 1000000)) ms, kubectl included"
until_ "kubectl describe tells the story" sh -c 'kubectl describe deployment web | grep -q "replicas changed from 3 to 7 by PodAutoscaler default/web"'

# cargo has become the program it ran
kill -INT "$pid"
wait "$pid" || { echo "the exit code was $?" >&2; exit 1; }
pid=
grep -q ' stopped' "$dir/err" || { echo "it did not stop in order" >&2; cat "$dir/err" >&2; exit 1; }
echo "1 passed, 0 failed"
