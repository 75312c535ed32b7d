#!/usr/bin/env bash
# What deploy/ holds, read by the tools it is for: promtool, kubectl's kustomize and helm. Fetches promtool and helm once, into the cache of the clusters.
# That the files say what the binary does is the tests' of the podautoscaler.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
cd "$here/../.."
tools=$cache/tools
helm_version=v3.19.2

# promtool alone, from Debian's package of Prometheus: the machine gets no service
promtool() {
  if [ ! -x "$tools/promtool" ]; then
    local work
    work=$(mktemp -d)
    (cd "$work" && apt-get -qq -oAPT::Sandbox::User= download prometheus && dpkg -x prometheus_*.deb .)
    mkdir -p "$tools"
    mv "$work/usr/bin/promtool" "$tools/"
    rm -rf "$work"
  fi
  "$tools/promtool" "$@"
}

helm() {
  if [ ! -x "$tools/helm-$helm_version" ]; then
    command -v go >/dev/null || die "helm is built with Go, and there is no go on the PATH"
    mkdir -p "$tools"
    GOBIN=$tools GOTOOLCHAIN=local CGO_ENABLED=0 go install "helm.sh/helm/v3/cmd/helm@$helm_version"
    mv "$tools/helm" "$tools/helm-$helm_version"
  fi
  "$tools/helm-$helm_version" "$@"
}

# kinds: how many objects of each kind a stream of YAML holds
kinds() { sed -n 's/^kind: //p' | sort | uniq -c | awk '{ printf "%s%s:%s", sep, $2, $1; sep = " " }'; }
# same WHAT WANTED FOUND
same() { [ "$2" = "$3" ] || die "$1: wanted \"$2\", found \"$3\""; }

need kubernetes-client:kubectl
promtool check rules deploy/prometheus/rules.yaml
promtool test rules deploy/prometheus/tests.yaml

everywhere="ClusterRole:1 ClusterRoleBinding:1 Deployment:1 PodDisruptionBudget:1 Role:1 RoleBinding:1 ServiceAccount:1"
chosen="Deployment:1 PodDisruptionBudget:1 Role:3 RoleBinding:3 ServiceAccount:1"
found=$(kubectl kustomize deploy/kustomize | grep -v '^kind: \(Namespace\|CustomResourceDefinition\)$' | kinds)
same "the Kustomize base" "$everywhere" "$found"

chart=deploy/helm/podautoscaler
helm lint --strict "$chart"
# release NAME-VALUE...: the chart as it would be installed
release() { helm template test "$chart" --namespace ops "$@"; }
same "the chart" "$everywhere" "$(release | kinds)"
# in its own namespace and in another
same "the chart in chosen namespaces" "$chosen" "$(release --set 'namespaces={shop,ops}' | kinds)"
release --set 'namespaces={shop,ops}' | grep -q -- '- --namespace=shop,ops$' || die "the chart does not name its namespaces"
release --kube-version 1.20 | grep -q 'policy/v1beta1$' || die "the chart's PodDisruptionBudget is not for 1.20"
release --kube-version 1.21 | grep -q 'policy/v1$' || die "the chart's PodDisruptionBudget is not for 1.21"
release --set image.repository=example.com/pa | grep -q 'image: "example.com/pa:0.1.0"' || die "the chart does not take its image"
echo "1 passed, 0 failed"
