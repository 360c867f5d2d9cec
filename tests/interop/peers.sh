#!/bin/sh
# Makes the systems in folders that other releases of Puppet are started in, each with its packages unmodified:
#
#   sh peers.sh FOLDER          # needs root and debootstrap; takes MIRROR, or this machine's own apt mirror, and UBUNTU_MIRROR
#
# FOLDER/puppet8: agent 8.10, puppetserver 8.7, its CA tool and PuppetDB's terminus, g10k (Debian 13); FOLDER/puppet5: agent and master 5.5 (Debian 11);
# FOLDER/puppet3: agent and master 3.8 (Ubuntu 16.04, whose keys come with Debian 13's ubuntu-keyring). Tests start them on an
# overlay and never write into them. What is there already is kept; one that cannot be made does not keep the others from being made.
set -u
peers=$1
mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)}
log=$peers/log
mkdir -p "$peers"

inside() { # image command...; with /proc, which Java's packages want while they are installed
  # shellcheck disable=SC2016
  unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$@"
}

peer() ( # name suite components mirror keyring packages...; not in a condition, where -e has no effect
  set -eu
  name=$1 suite=$2 components=$3 from=$4 keys=$5
  shift 5
  [ ! -d "$peers/$name" ] || exit 0
  image=$peers/$name.making # has its name only once it is complete
  rm -rf "$image"
  # shellcheck disable=SC2086  # no mirror: debootstrap's own
  debootstrap --variant=minbase --components="$components" ${keys:+"--keyring=$keys"} "$suite" "$image" $from
  printf '#!/bin/sh\nexit 101\n' > "$image/usr/sbin/policy-rc.d"
  chmod +x "$image/usr/sbin/policy-rc.d"
  cp /etc/resolv.conf "$image/etc/resolv.conf"
  inside "$image" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive inside "$image" apt-get install -qq -y --no-install-recommends "$@"
  rm -rf "$image/usr/sbin/policy-rc.d" "$image/etc/resolv.conf" "$image"/var/lib/apt/lists/* "$image"/var/cache/apt/archives/*.deb
  echo "127.0.0.1 localhost" > "$image/etc/hosts"
  mv "$image" "$peers/$name"
)

failed=0
make_one() {
  peer "$@" > "$log.$1" 2>&1
  if [ $? -eq 0 ]; then # shellcheck disable=SC2181
    echo "$1 is in $peers/$1"
  else
    echo "$1 could not be made; $log.$1 ends with:" >&2
    tail -n 5 "$log.$1" >&2
    failed=1
  fi
}
make_one puppet8 trixie main "$mirror" "" puppet-agent puppetserver puppet-terminus-puppetdb ruby-puppetserver-ca-cli g10k git ubuntu-keyring
make_one puppet5 bullseye main "$mirror" "" puppet puppet-master
make_one puppet3 xenial main,universe "${UBUNTU_MIRROR:-}" "$peers/puppet8/usr/share/keyrings/ubuntu-archive-keyring.gpg" puppet puppetmaster
exit $failed
