#!/bin/sh
# Lays packages of init systems and package managers into the image that image.sh builds, which calls it:
#
#   sh packages.sh FOLDER       # needs root; takes MIRROR, Debian's
#
# FOLDER/srv/more/NAME/ holds what `apt-get install` would fetch for NAME. Nothing of it is installed in the image: a test
# that is about one of them installs it into its own copy, without a network.
set -eu
image=$1
if [ -z "${BUNRAKU_APART:-}" ]; then
  BUNRAKU_APART=1 exec unshare --mount --propagation private sh "$0" "$image"
fi
work=$(mktemp -d /var/tmp/packages-XXXXXX)
mkdir "$work/tree"
mount -t tmpfs -o mode=755 tmpfs "$work/tree"
trap 'cd /; umount -R "$work/tree"; rmdir "$work/tree" "$work"; rm -rf "$image/srv/more.making"' EXIT
mkdir "$work/tree/upper" "$work/tree/work" "$work/tree/root"
root=$work/tree/root
mount -t overlay overlay -o "lowerdir=$image,upperdir=$work/tree/upper,workdir=$work/tree/work" "$root"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "deb ${MIRROR:?is unknown: name a mirror of Debian} bookworm main" > "$root/etc/apt/sources.list"
chroot "$root" apt-get update -qq
rm -rf "$image/srv/more.making"
fetch() { # name packages
  name=$1
  shift
  chroot "$root" apt-get clean
  chroot "$root" apt-get install -qq -y --no-install-recommends --download-only "$@" > /dev/null
  mkdir -p "$image/srv/more.making/$name"
  cp "$root"/var/cache/apt/archives/*.deb "$image/srv/more.making/$name/"
}
fetch systemd systemd
fetch openrc openrc
fetch rpm rpm
fetch dnf dnf rpm createrepo-c
fetch zypper zypper rpm createrepo-c
fetch pacman pacman-package-manager makepkg libarchive-tools
fetch libuser libuser
fetch selinux policycoreutils selinux-utils selinux-policy-default checkpolicy semodule-utils \
  puppet-module-puppetlabs-selinux-core
rm -rf "$image/srv/more"
mv "$image/srv/more.making" "$image/srv/more"
echo "packages for tests are in $image/srv/more"
