#!/bin/sh
# Makes a plain Debian in a folder, in which packages and the first commands of README are tried:
#
#   sh image.sh FOLDER [RELEASE [PACKAGE,...]]      # needs root and debootstrap; takes MIRROR, Debian's
#
# Its /etc/hosts is as Debian's installer writes it.
set -eu
target=$1
release=${2:-bookworm}
packages=${3:-python3,python3-venv,adduser}
image=$target.making   # has its name only once it is complete
rm -rf "$image"
scripts=/usr/share/debootstrap/scripts
[ -e "$scripts/$release" ] || newer=sid   # the release is newer than this debootstrap
debootstrap --variant=minbase --include="$packages" "$release" "$image" "${MIRROR:-}" "$scripts/${newer:-$release}"
rm -rf "$image"/var/cache/apt/archives/*.deb "$image"/var/lib/apt/lists/*
cat > "$image/etc/hosts" <<'HOSTS'
127.0.0.1	localhost
127.0.1.1	debian

# The following lines are desirable for IPv6 capable hosts
::1     localhost ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
HOSTS
mv "$image" "$target"
