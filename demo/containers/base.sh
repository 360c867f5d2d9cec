#!/bin/sh
# A base for the images where no registry is reachable: a small Debian with Python, and all wheels that the images install.
#
#   sh base.sh FOLDER          # needs root and debootstrap; takes MIRROR, or this machine's own apt mirror, and PYTHON, a 3.11 with pip
#
# FOLDER gets base.tar, for `docker import`. Its /etc/pip.conf makes pip take the wheels inside it and ask nobody else.
set -eu
target=$1
making=$target.making # has its name only once it is complete
source=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
rm -rf "$making"
mkdir -p "$making"
mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)}
debootstrap --variant=minbase --include=python3,python3-venv bookworm "$making/root" "$mirror"
"${PYTHON:-python3}" -m pip wheel --quiet --wheel-dir "$making/root/opt/wheels" "$source[ldap]" hatchling
rm -f "$making"/root/opt/wheels/bunraku-*
printf '[global]\nno-index = true\nfind-links = /opt/wheels\n' > "$making/root/etc/pip.conf"
rm -rf "$making"/root/var/cache/apt/archives/*.deb "$making"/root/var/lib/apt/lists/*
tar -C "$making/root" --one-file-system -cf "$making/base.tar" .
rm -rf "$making/root" "$target"
mv "$making" "$target"
echo "made $target/base.tar"
