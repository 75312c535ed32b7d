# Sourced by build.sh and up.sh: which versions there are and where their binaries are kept.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${BOATSWAIN_CLUSTER_CACHE:-$HOME/.cache/boatswain}

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# full_version 1.20|1.36: the exact version behind the short name
full_version() {
  case $1 in
    1.20 | 1.20.2) echo 1.20.2 ;;
    1.36 | 1.36.*) sed -n 's,^\tk8s.io/kubernetes v,,p' "$here/k8s-current/go.mod" ;;
    *) die "no version \"$1\": there are 1.20 and 1.36" ;;
  esac
}

# need PACKAGE:COMMAND ...: installs the Debian packages whose command is missing
need() {
  local pair root=() missing=()
  for pair; do
    command -v "${pair#*:}" >/dev/null || missing+=("${pair%%:*}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "needs the commands of these Debian packages: ${missing[*]}"
  [ "$(id -u)" = 0 ] || root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  "${root[@]}" apt-get -qq -oDPkg::Lock::Timeout=300 update >&2
  "${root[@]}" apt-get -qq -oDPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >&2
}
