#!/bin/sh
# Builds the throw-away Debian that apply cases marked `sandbox: true` run in:
#
#   sh image.sh FOLDER          # needs root and debootstrap; takes MIRROR, Debian's
#
# FOLDER becomes a minimal bookworm with Debian's puppet-agent (for its users and its type modules, and to record more cases
# with), Python, a local apt repository of tiny packages and a stand-in for systemd, so that no case needs a network or an
# init system. The runner lays a fresh overlay over it for every case and never writes into it.
set -eu
target=$1
image=$target.making   # has its name only once it is complete
rm -rf "$image"
debootstrap --variant=minbase \
  --include=cron,passwd,adduser,init-system-helpers,procps,python3 \
  bookworm "$image" ${MIRROR:+"$MIRROR"}
cat > "$image/usr/sbin/policy-rc.d" <<'POLICY'
#!/bin/sh
exit 101
POLICY
chmod +x "$image/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$image/etc/resolv.conf"
chroot "$image" apt-get update -qq
DEBIAN_FRONTEND=noninteractive chroot "$image" apt-get install -qq -y --no-install-recommends \
  puppet-agent ruby-shadow ruby-augeas augeas-lenses \
  puppet-module-puppetlabs-cron-core puppet-module-puppetlabs-host-core \
  puppet-module-puppetlabs-mount-core puppet-module-puppetlabs-sshkeys-core \
  puppet-module-puppetlabs-mailalias-core puppet-module-puppetlabs-augeas-core
rm -f "$image/usr/sbin/policy-rc.d" "$image/etc/resolv.conf"

# A repository of packages that hold one file each.
package() { # name version depends [conffile text]
  work=$(mktemp -d)
  mkdir -p "$work/DEBIAN" "$work/usr/share/$1"
  chmod 755 "$work"
  echo "$1 $2" > "$work/usr/share/$1/version"
  {
    echo "Package: $1"
    echo "Version: $2"
    echo "Architecture: all"
    echo "Maintainer: Nobody <nobody@example.com>"
    if [ -n "$3" ]; then echo "Depends: $3"; fi
    echo "Description: a package for tests"
  } > "$work/DEBIAN/control"
  if [ $# -gt 3 ]; then
    mkdir -p "$work/etc"
    echo "$4" > "$work/etc/$1.conf"
    echo "/etc/$1.conf" > "$work/DEBIAN/conffiles"
  fi
  dpkg-deb --root-owner-group -b "$work" "$image/srv/repo/$1_${2}_all.deb" > /dev/null
  rm -r "$work"
}
mkdir -p "$image/srv/repo"
package pc-alpha 1.0-1 ""
package pc-alpha 1.1-1 ""
package pc-alpha 2.0~rc1-1 ""
package pc-beta 1.0-1 "pc-alpha"
package pc-conf 1.0-1 "" "setting = 1"
package pc-conf 1.1-1 "" "setting = 2"
package pc-epoch 1:0.9-1 ""
package pc-broken 1.0-1 "pc-does-not-exist"
( cd "$image/srv/repo"
  for deb in *.deb; do
    dpkg-deb -f "$deb"
    echo "Filename: ./$deb"
    echo "Size: $(stat -c %s "$deb")"
    echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"
    echo
  done > Packages )
# A stand-in for systemd, for cases that copy it to /usr/bin: units are folders below
# /srv/fake/units with a file `active` or `enabled` in them; every call is written down.
mkdir -p "$image/srv/fake/units"
cat > "$image/srv/fake/systemctl" <<'FAKE'
#!/bin/sh
echo "$*" >> /srv/fake/calls
verb=$1
shift
while [ $# -gt 0 ]; do case $1 in -*) shift ;; *) break ;; esac; done
name=${1%.service}
unit=/srv/fake/units/$name
need() { # the unit has to be there
  if [ ! -d "$unit" ]; then echo "Failed to $verb $name.service: Unit $name.service not found." >&2; exit 5; fi
}
act() { # fails where the case says so
  if [ -e "$unit/fail-$verb" ]; then
    echo "Job for $name.service failed because the control process exited with error code." >&2
    exit 1
  fi
}
case $verb in
  is-active)
    if [ -e "$unit/active" ]; then echo active; else echo inactive; exit 3; fi ;;
  is-enabled)
    if [ ! -d "$unit" ]; then
      echo "Failed to get unit file state for $name.service: No such file or directory" >&2; exit 1
    fi
    for state in masked static indirect enabled; do
      if [ -e "$unit/$state" ]; then echo $state; [ $state != masked ]; exit; fi
    done
    echo disabled; exit 1 ;;
  start | restart) need; act; if [ -e "$unit/masked" ]; then
      echo "Failed to $verb $name.service: Unit $name.service is masked." >&2; exit 1; fi
    touch "$unit/active" ;;
  stop) need; act; rm -f "$unit/active" ;;
  enable) need; act; touch "$unit/enabled" ;;
  disable) need; act; rm -f "$unit/enabled" ;;
  mask) mkdir -p "$unit"; touch "$unit/masked" ;;
  unmask) rm -f "$unit/masked" ;;
  cat) [ -d "$unit" ] ;;
  show) if [ -e "$unit/changed" ]; then echo NeedDaemonReload=yes; else echo NeedDaemonReload=no; fi ;;
  daemon-reload) rm -f /srv/fake/units/*/changed ;;
  list-unit-files)
    echo "UNIT FILE STATE VENDOR PRESET"
    for unit in /srv/fake/units/*/; do
      name=$(basename "$unit")
      if [ -e "$unit/enabled" ]; then echo "$name.service enabled enabled"; else echo "$name.service disabled enabled"; fi
    done ;;
  *) echo "Unknown operation $verb." >&2; exit 1 ;;
esac
FAKE
cat > "$image/srv/fake/journalctl" <<'FAKE'
#!/bin/sh
echo "journalctl $*" >> /srv/fake/calls
echo "-- a journal --"
FAKE
chmod +x "$image/srv/fake/systemctl" "$image/srv/fake/journalctl"
rm -rf "$image"/etc/apt/sources.list "$image"/etc/apt/sources.list.d/* "$image"/var/lib/apt/lists/*
echo "deb [trusted=yes] file:/srv/repo ./" > "$image/etc/apt/sources.list"
chroot "$image" apt-get update -qq
chroot "$image" apt-get clean
sh "$(dirname "$0")/packages.sh" "$image"
mv "$image" "$target"
echo "built $target"
