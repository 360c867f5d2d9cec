#!/bin/sh
# Makes the plain Debian in a folder that packages are tried in:
#
#   sh image.sh FOLDER          # needs root and debootstrap; takes MIRROR, Debian's
set -eu
target=$1
image=$target.making   # has its name only once it is complete
rm -rf "$image"
debootstrap --variant=minbase --include=python3,python3-venv,adduser bookworm "$image" ${MIRROR:+"$MIRROR"}
rm -rf "$image"/var/cache/apt/archives/*.deb "$image"/var/lib/apt/lists/*
echo "127.0.0.1 localhost" > "$image/etc/hosts"
mv "$image" "$target"
