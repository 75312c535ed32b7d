#!/usr/bin/env bash
# Builds the binaries of a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) into the cache.
#   build.sh [1.20|1.36|all]       builds what is missing or out of date; all is the default
#   build.sh --where 1.20|1.36     prints the folder; exits 1 when it is not built
# The cache is ${BOATSWAIN_CLUSTER_CACHE:-~/.cache/boatswain}, one folder per version.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Kubernetes 1.20.2 and etcd from Debian 12's packages. Compiler and libraries are unpacked beside the source, not
# installed: the machine gets no second Go and no etcd service.
build_1.20() {
  local work=$1 out=$2 arch list apt
  need make:make rsync:rsync
  arch=$(dpkg --print-architecture)
  mkdir -p "$work"/{sources,lists/partial,archives/partial,debs,root,src,gocache}
  for list in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [ -s "$list" ] || continue
    case $list in
      *.sources) sed 's/^Types:.*/Types: deb deb-src/' "$list" ;;
      *) sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' "$list" ;;
    esac >"$work/sources/debian.${list##*.}"
  done
  apt=(apt-get -qq -oDir::Etc::sourcelist=/dev/null -oDir::Etc::sourceparts="$work/sources" -oDir::State::Lists="$work/lists"
    -oDir::Cache="$work" -oDir::Cache::archives="$work/archives" -oAPT::Sandbox::User=)
  "${apt[@]}" update
  (cd "$work/debs" && "${apt[@]}" download etcd-server golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev)
  (cd "$work" && "${apt[@]}" source --download-only kubernetes)
  compgen -G "$work/kubernetes_*1.20.2.orig.tar.gz" >/dev/null ||
    die "this system's Kubernetes package is not 1.20.2, which Debian 12 (bookworm) has: $(cd "$work" && echo kubernetes_*.dsc)"
  for list in "$work"/debs/*.deb; do dpkg -x "$list" "$work/root"; done
  tar xzf "$work"/kubernetes_*.orig.tar.gz -C "$work/src" --strip-components=1
  # The vendored reflect2 1.0.1 crashes under Go >= 1.18 on the first object with labels; Debian's newer one does not.
  local reflect2=github.com/modern-go/reflect2
  rm -rf "$work/src/vendor/$reflect2"
  cp -r "$work/root/usr/share/gocode/src/$reflect2" "$work/src/vendor/$reflect2"
  rm -rf "$work/src/vendor/$reflect2"/{*_test.go,tests}
  env PATH="$work/root/usr/lib/go-1.19/bin:$PATH" GOROOT="$work/root/usr/lib/go-1.19" GOCACHE="$work/gocache" GOFLAGS= \
    GOTOOLCHAIN=local CGO_ENABLED=0 \
    make -C "$work/src" WHAT="cmd/kube-apiserver cmd/kube-controller-manager" KUBE_BUILD_PLATFORMS="linux/$arch" \
    KUBE_GIT_VERSION=v1.20.2 GOLDFLAGS="-s -w"
  cp "$work"/src/_output/local/go/bin/kube-{apiserver,controller-manager} "$work/root/usr/bin/etcd" "$out/"
}

# Kubernetes 1.36 and its etcd from the published Go modules: one binary under three names.
build_1.36() {
  local work=$1 out=$2 version name
  version=$(full_version 1.36)
  command -v go >/dev/null || die "Kubernetes $version is built with Go 1.26 or newer, and there is no go on the PATH"
  name=k8s.io/component-base/version
  (cd "$here/k8s-current" && GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -o "$out/kube-apiserver" \
    -ldflags "-s -w -X $name.gitVersion=v$version -X $name.gitMajor=1 -X $name.gitMinor=36" .)
  ln "$out/kube-apiserver" "$out/kube-controller-manager"
  ln "$out/kube-apiserver" "$out/etcd"
}

# What a folder was built from: a change of the recipe or of the module makes it out of date.
recipe() {
  declare -f "build_$1"
  [ "$1" = 1.20 ] || cat "$here"/k8s-current/{go.mod,go.sum,main.go}
}

built() {
  [ "$(cat "$cache/$(full_version "$1")/built-from" 2>/dev/null)" = "$(recipe "$1" | sha256sum)" ]
}

# Builds beside the final folder and renames, so that a folder under its final name is always whole.
build() {
  local short=$1 version work lock
  version=$(full_version "$short")
  mkdir -p "$cache"
  exec {lock}>"$cache/.lock-$version"
  flock "$lock"
  if ! built "$short"; then
    work=$cache/.building-$version
    rm -rf "$work"
    mkdir -p "$work/out"
    echo "building Kubernetes $version" >&2
    "build_$short" "$work/work" "$work/out" >&2
    recipe "$short" | sha256sum >"$work/out/built-from"
    rm -rf "${cache:?}/$version"
    mv "$work/out" "$cache/$version"
    rm -rf "$work"
  fi
  exec {lock}>&-
  echo "$cache/$version"
}

case ${1:-all} in
  --where)
    echo "$cache/$(full_version "${2:?usage: build.sh --where 1.20|1.36}")"
    built "$2"
    ;;
  all)
    need openssl:openssl curl:curl kubernetes-client:kubectl util-linux:unshare iproute2:ip
    build 1.20
    build 1.36
    ;;
  1.20 | 1.36)
    need openssl:openssl curl:curl kubernetes-client:kubectl
    build "$1"
    ;;
  *) die "usage: build.sh [1.20|1.36|all] or build.sh --where 1.20|1.36" ;;
esac
