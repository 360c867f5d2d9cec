#!/bin/sh
# Builds the layer that both twins boot from, over the image that `make image` builds:
#
#   sh image.sh FOLDER IMAGE     # needs root; takes MIRROR, Debian's
#
# FOLDER becomes what is added to IMAGE: systemd, Debian's puppet modules, and in /srv/twins/repo an apt repository of the packages
# that packages.txt names, with all that they depend on. The twins have no network.
set -eu
layer=$1 image=$2 packages=$(dirname "$0")/packages.txt
if [ -z "${BUNRAKU_APART:-}" ]; then
  BUNRAKU_APART=1 exec unshare --mount --propagation private sh "$0" "$@"
fi
making=$layer.making
rm -rf "$making"
mkdir -p "$making/upper" "$making/work" "$making/root"
root=$making/root
mount -t overlay overlay -o "lowerdir=$image,upperdir=$making/upper,workdir=$making/work" "$root"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
cp "$root/etc/apt/sources.list" "$making/sources.list"
echo "deb ${MIRROR:?is unknown: name a mirror of Debian} bookworm main" > "$root/etc/apt/sources.list"
chroot "$root" apt-get update -qq
export DEBIAN_FRONTEND=noninteractive
modules=$(chroot "$root" apt-cache search --names-only '^puppet-module-' | cut -d' ' -f1)
chroot "$root" apt-get install -qq -y --no-install-recommends systemd dbus iproute2 $modules > /dev/null
chroot "$root" apt-get clean
# One after the other: some of them cannot be installed beside each other.
for name in $(grep -v '^#' "$packages"); do
  chroot "$root" apt-get install -qq -y --no-install-recommends --download-only "$name" > /dev/null
done
mkdir -p "$root/srv/twins/repo"
mv "$root"/var/cache/apt/archives/*.deb "$root/srv/twins/repo/"
( cd "$root/srv/twins/repo"
  for deb in *.deb; do
    dpkg-deb -f "$deb"
    echo "Filename: ./$deb"
    echo "Size: $(stat -c %s "$deb")"
    echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"
    echo
  done > Packages )
rm -rf "$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf" "$root"/var/lib/apt/lists/*
cp "$making/sources.list" "$root/etc/apt/sources.list"
echo "deb [trusted=yes] file:/srv/twins/repo ./" >> "$root/etc/apt/sources.list"
chroot "$root" apt-get update -qq
umount -R "$root"
cp "$packages" "$making/upper/srv/twins/packages.txt"
rm -rf "$layer"
mv "$making/upper" "$layer"
rm -rf "$making"
echo "built $layer"
