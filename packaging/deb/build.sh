#!/bin/sh
# Builds a Debian package from a wheel of this project:
#
#   sh build.sh WHEEL FOLDER [PYTHON]     # PYTHON has pip, and is of Debian's python3's version, 3.x
#
# Everything, dependencies included, goes to /usr/lib/bunraku: a virtual environment of the system's python3 that is made
# by hand, so that nothing in it names the place where it was built. The command is /usr/bin/bunraku-puppet; postinst
# makes it `puppet` through Debian's alternatives, where no other package has put a program of that name.
set -eu
umask 022
wheel=$1
folder=$2
python=${3:-python3}
here=$(cd "$(dirname "$0")" && pwd)
packaging=$(dirname "$here")
project=$(dirname "$packaging")

for tool in dpkg-deb dpkg /usr/bin/python3; do
  command -v "$tool" > /dev/null || { echo "build.sh: $tool is missing: build the package on Debian" >&2; exit 1; }
done
minor() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
version=$(minor /usr/bin/python3)
if [ "$(minor "$python")" != "$version" ]; then
  echo "build.sh: $python is $(minor "$python"), Debian's python3 is $version: compiled dependencies would not load" >&2
  exit 1
fi

# The day of the release, as CHANGELOG says it, dates every file: the same sources make the same package, byte for byte.
made=$(sed -n 's/^## .* (\(.*\))$/\1/p' "$project/CHANGELOG.md" | head -n 1)
SOURCE_DATE_EPOCH=$(date -u -d "$made" +%s)
export SOURCE_DATE_EPOCH

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
place=usr/lib/bunraku
packages=$place/lib/python$version/site-packages
mkdir -p "$tree/$packages" "$tree/$place/bin" "$tree/usr/bin" "$tree/usr/share/doc/bunraku" "$tree/DEBIAN"
packages_into_tree() { "$python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --target "$tree/$packages" "$@"; }
# What a release is made of, each file by its hash; then the wheel, which nobody has a hash of yet.
packages_into_tree --require-hashes --requirement "$project/requirements/release.txt"
rm -rf "${tree:?}/$packages/bin"
packages_into_tree "$wheel"
rm -rf "${tree:?}/$packages/bin"
# What names the place of the wheel, and the programs removed above, which began with the path of this interpreter.
rm "$tree/$packages"/bunraku-*.dist-info/direct_url.json
sed -i '\|^\.\./\.\./bin/|d; \|/direct_url\.json,|d' "$tree/$packages"/*.dist-info/RECORD
# What completes commands in shells, and the manual pages; away from the project, which Python would import otherwise.
(cd / && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$tree/$packages" /usr/bin/python3 -m bunraku.commandlines "$tree/usr/share" "$made")
gzip -9n "$tree"/usr/share/man/man*/*
ln -s /usr/bin/python3 "$tree/$place/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$version" > "$tree/$place/pyvenv.cfg"
# Compiled here, so that no run writes below /usr; checked by nobody, so that dates do not matter.
/usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash -s "$tree" -p / "$tree/$packages"

cat > "$tree/usr/bin/bunraku-puppet" <<'COMMAND'
#!/usr/lib/bunraku/bin/python3 -I
import runpy

runpy.run_module("bunraku", run_name="__main__", alter_sys=True)
COMMAND
chmod 755 "$tree/usr/bin/bunraku-puppet"

: > "$tree/DEBIAN/conffiles"
conffile() { # source, absolute place
  mkdir -p "$tree$(dirname "$2")"
  install -m 0644 "$1" "$tree$2"
  echo "$2" >> "$tree/DEBIAN/conffiles"
}
if [ -d "$packaging/systemd" ]; then
  mkdir -p "$tree/lib/systemd/system"
  for unit in "$packaging"/systemd/*.service "$packaging"/systemd/*.timer; do
    [ -e "$unit" ] || continue
    sed 's|/usr/bin/puppet |/usr/bin/bunraku-puppet |' "$unit" > "$tree/lib/systemd/system/$(basename "$unit")"
  done
  for kind in sysusers tmpfiles; do
    [ -e "$packaging/systemd/$kind.conf" ] || continue
    mkdir -p "$tree/usr/lib/$kind.d"
    install -m 0644 "$packaging/systemd/$kind.conf" "$tree/usr/lib/$kind.d/bunraku.conf"
  done
fi
conffile "$packaging/completion.bash" /etc/bash_completion.d/bunraku-puppet
if [ -e "$packaging/logrotate.conf" ]; then conffile "$packaging/logrotate.conf" /etc/logrotate.d/bunraku; fi

documents=$tree/usr/share/doc/bunraku
mkdir -p "$documents/docs" "$documents/packaging/monitoring" "$documents/packaging/systemd"
install -m 0644 "$project/README.md" "$project/CHANGELOG.md" "$project/ARCHITECTURE.md" "$documents/"
# Beside each other as in the project, so that the links of the pages lead somewhere.
install -m 0644 "$project"/docs/*.md "$project"/docs/*.svg "$project"/docs/*.png "$documents/docs/"
install -m 0644 "$packaging"/monitoring/* "$documents/packaging/monitoring/"
install -m 0644 "$packaging"/systemd/* "$documents/packaging/systemd/"
install -m 0644 "$packaging/logrotate.conf" "$documents/packaging/"
{
  echo "This package is $(basename "$wheel") with the packages that it depends on, as their authors publish them."
  echo "Bunraku's own licence follows; those of the others are in their folders NAME.dist-info below /$packages."
  echo
  cat "$project/LICENSE"
} > "$tree/usr/share/doc/bunraku/copyright"

for script in postinst prerm postrm; do install -m 0755 "$here/$script" "$tree/DEBIAN/$script"; done
# With the release of Debian that it is for, whose python3 it needs: one is installed over the other when the system is upgraded.
release=$(basename "$wheel" | cut -d- -f2)+deb$(. /etc/os-release && echo "$VERSION_ID")
next=${version%.*}.$((${version#*.} + 1))
cat > "$tree/DEBIAN/control" <<CONTROL
Package: bunraku
Version: $release
Architecture: $(dpkg --print-architecture)
Maintainer: The Bunraku project <bunraku@example.com>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: python3 (>= $version), python3 (<< $next), adduser
Recommends: ruby
Suggests: facter, libaugeas0, logrotate
Section: admin
Priority: optional
Description: Puppet's agent and master in Python
 A master that compiles catalogs for agents of Puppet 3.8 to 8 and is their
 certificate authority, and an agent that applies catalogs of such a master
 or of a puppetserver. The command is bunraku-puppet, and puppet where no
 other package has one.
CONTROL
find "$tree" -mindepth 1 -maxdepth 1 ! -name DEBIAN -exec chmod -R u=rwX,go=rX {} +
find "$tree" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$folder"
package=$folder/bunraku_${release}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group -Zxz -b "$tree" "$package" > /dev/null
echo "$package"
