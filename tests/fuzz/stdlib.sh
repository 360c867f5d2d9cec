#!/bin/sh
# Unpacks Debian's puppetlabs-stdlib for the reference, without installing it: `sh stdlib.sh FOLDER` makes FOLDER/stdlib.
# Installed, it would be on the module path of every other test's puppet.
set -eu
folder=$1
[ ! -e "$folder/stdlib/metadata.json" ] || exit 0
making=$(mktemp -d)
trap 'rm -rf "$making"' EXIT
cd "$making"
apt-get download -qq puppet-module-puppetlabs-stdlib 2>download.log || { cat download.log >&2; exit 1; }
dpkg-deb -x ./*.deb unpacked
mkdir -p "$folder"
cp -R unpacked/usr/share/puppet/modules.available/puppetlabs-stdlib "$folder/stdlib"
