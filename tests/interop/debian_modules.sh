#!/bin/sh
# Unpacks all of Debian's puppet-module-* packages into a folder, without installing them: FOLDER/modules is a modulepath.
#
#   sh debian_modules.sh FOLDER          # needs apt's lists
set -eu
place=$1
[ ! -d "$place/modules" ] || exit 0
making=$place.making # has its name only once it is complete
rm -rf "$making"
mkdir -p "$making/packages" "$making/modules"
(
  cd "$making/packages"
  # shellcheck disable=SC2046  # a word a package
  apt-get download -qq -o APT::Sandbox::User=root $(apt-cache search --names-only '^puppet-module-' | cut -d ' ' -f 1)
)
for package in "$making"/packages/*.deb; do
  dpkg-deb --extract "$package" "$making"
  # What the package would have dpkg's alternatives link: name and folder.
  dpkg-deb --info "$package" postinst 2> /dev/null |
    sed -n -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' -e 's,.*--install /usr/share/puppet/modules/\([a-z0-9_-]*\) *[^ ]* */\([^ ]*\).*,\1 ../\2,p' |
    while read -r name folder; do ln -sfn "$folder" "$making/modules/$name"; done
done
rm -r "$making/packages"
mv "$making" "$place"
