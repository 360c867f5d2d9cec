#!/bin/sh
# A base for the images where no registry is reachable: a small Debian with Python, PostgreSQL and HAProxy, and all wheels that the images
# install, which are those of the lock.
#
#   sh base.sh FOLDER          # needs root and debootstrap; takes MIRROR, Debian's, and PYTHON, a 3.11 with pip
#
# FOLDER gets base.tar, for `docker import`. Its /etc/pip.conf makes pip take the wheels inside it and ask nobody else.
set -eu
target=$1
making=$target.making # has its name only once it is complete
source=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
rm -rf "$making"
mkdir -p "$making"
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$version" != 3.11 ]; then
  echo "base.sh: $python is $version, that of the base is 3.11: compiled wheels would not load; name another with PYTHON" >&2
  exit 1
fi
debootstrap --variant=minbase --include=python3,python3-venv bookworm "$making/root" ${MIRROR:+"$MIRROR"}
printf '#!/bin/sh\nexit 101\n' > "$making/root/usr/sbin/policy-rc.d"
chmod +x "$making/root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$making/root/etc/resolv.conf"
install -d "$making/root/etc/postgresql-common"
echo 'create_main_cluster = false' > "$making/root/etc/postgresql-common/createcluster.conf"
chroot "$making/root" apt-get update -qq
DEBIAN_FRONTEND=noninteractive chroot "$making/root" apt-get install -qq -y --no-install-recommends postgresql haproxy
rm "$making/root/usr/sbin/policy-rc.d" "$making/root/etc/resolv.conf"
download() {
  "$python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --dest "$making/root/opt/wheels" "$@"
}
for lock in release build; do
  download --no-deps --require-hashes --requirement "$source/requirements/$lock.txt"
done
# One of Puppetboard's packages has no wheel; it is built in the image.
download --no-binary flask-apscheduler --no-deps --require-hashes --requirement "$source/requirements/puppetboard.txt"
download setuptools wheel
printf '[global]\nno-index = true\nfind-links = /opt/wheels\n' > "$making/root/etc/pip.conf"
rm -rf "$making"/root/var/cache/apt/archives/*.deb "$making"/root/var/lib/apt/lists/*
tar -C "$making/root" --one-file-system -cf "$making/base.tar" .
rm -rf "$making/root" "$target"
mv "$making" "$target"
echo "made $target/base.tar"
