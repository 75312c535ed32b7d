#!/usr/bin/env bash
# Installs what the browser tests need: Chromium and its driver, from Debian.
set -euo pipefail
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "the browser tests need chromium and chromedriver in PATH; on Debian: apt-get install chromium chromium-driver" >&2
  exit 1
fi
apt-get update -qq
apt-get install -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null
