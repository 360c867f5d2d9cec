#!/bin/sh
# Makes the system in a folder that another release of Puppet is started in, with its packages unmodified:
#
#   sh peer.sh FOLDER NAME [PUPPET8]     # needs root and debootstrap; takes MIRROR, Debian's, and UBUNTU_MIRROR
#
# NAME is puppet8: agent 8.10, puppetserver 8.7, its CA tool and PuppetDB's terminus, g10k (Debian 13); puppet5: agent and master 5.5 (Debian 11); or
# puppet3: agent and master 3.8 (Ubuntu 16.04, whose keys come with Debian 13's ubuntu-keyring in the folder PUPPET8). Tests start
# them on an overlay and never write into them.
set -eu
target=$1 name=$2
keys= components=main suite= from=${MIRROR:-}
case $name in
  puppet8)
    suite=trixie
    packages="puppet-agent puppetserver puppet-terminus-puppetdb ruby-puppetserver-ca-cli g10k git ubuntu-keyring" ;;
  puppet5)
    suite=bullseye
    packages="puppet puppet-master" ;;
  puppet3)
    suite=xenial components=main,universe from=${UBUNTU_MIRROR:-} keys=$3/usr/share/keyrings/ubuntu-archive-keyring.gpg
    packages="puppet puppetmaster" ;;
  *)
    echo "peer.sh: there is no peer $name" >&2
    exit 2 ;;
esac
image=$target.making # has its name only once it is complete
rm -rf "$image"

inside() { # command...; with /proc, which Java's packages want while they are installed
  # shellcheck disable=SC2016
  unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$image" "$@"
}

# shellcheck disable=SC2086  # no mirror: debootstrap's own
debootstrap --variant=minbase --components="$components" ${keys:+"--keyring=$keys"} "$suite" "$image" $from
printf '#!/bin/sh\nexit 101\n' > "$image/usr/sbin/policy-rc.d"
chmod +x "$image/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$image/etc/resolv.conf"
inside apt-get update -qq
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive inside apt-get install -qq -y --no-install-recommends $packages
rm -rf "$image/usr/sbin/policy-rc.d" "$image/etc/resolv.conf" "$image"/var/lib/apt/lists/* "$image"/var/cache/apt/archives/*.deb
echo "127.0.0.1 localhost" > "$image/etc/hosts"
mv "$image" "$target"
