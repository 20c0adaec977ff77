#!/bin/sh
# Provides Chromium and ChromeDriver for the tests of the page. Installs the packages of Debian as root.
set -eu

if [ -x /usr/bin/chromium ] && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "The tests of the page need Chromium and ChromeDriver. On Debian: sudo apt-get install chromium chromium-driver" >&2
    exit 1
fi
apt-get update --quiet
DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends chromium chromium-driver
