"""
Package managers, init scripts and account programs of other systems, for real on a Debian that has them: by their own word,
and beside what Debian's puppet does on the same machine.

Their packages are laid into the image by `make image`; repositories are made here, nothing comes from a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.conformance.booted import Booted, why_not

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.skipif(bool(why_not()), reason=why_not())]

RPMS = """
mkdir -p /etc/rpm; echo '%_dbpath /var/lib/rpm' > /etc/rpm/macros  # Debian's own is below the home of who runs it
mkdir -p /srv/rpms; cd /srv/rpms
cat > /srv/pc.spec <<'SPEC'
Name: %{called}
Version: %{wanted}
Release: 1
Summary: a package for tests
License: none
BuildArch: noarch
%description
%{summary}
%install
mkdir -p %{buildroot}/usr/share/%{called}
echo %{wanted} > %{buildroot}/usr/share/%{called}/version
%files
/usr/share/%{called}
SPEC
for each in pc-alpha-1.0 pc-alpha-1.1 pc-alpha-2.0 pc-other-1.0; do
  rpmbuild --quiet -bb --define '_topdir /srv/build' --define '_rpmdir /srv/rpms' \\
    --define "called ${each%-*}" --define "wanted ${each##*-}" /srv/pc.spec
done
rpm -q pc-other || rpm --install --force-debian noarch/pc-other-1.0-1.noarch.rpm
"""
REPOSITORY = (
    RPMS
    + """
createrepo_c --quiet /srv/rpms
mkdir -p /etc/yum.repos.d /etc/dnf/vars; echo 12 > /etc/dnf/vars/releasever
rm -f /etc/yum.repos.d/*
"""
)
DNF_KNOWS = "printf '[pc]\\nname=for tests\\nbaseurl=file:///srv/rpms\\ngpgcheck=0\\n' > /etc/yum.repos.d/pc.repo; "
ARCH = """
mkdir -p /srv/arch /srv/build; cd /srv/build
for each in pc-beta-1.0-1 pc-beta-2.0-1 pc-more-1.0-1; do
  name=${each%-*-*} version=${each#$name-}
  rm -rf * .PKGINFO; mkdir -p usr/share/$name; echo $version > usr/share/$name/version
  printf 'pkgname = %s\\npkgver = %s\\npkgdesc = for tests\\nsize = 6\\narch = any\\ngroup = pc-all\\n' $name $version > .PKGINFO
  bsdtar -czf /srv/arch/$each-any.pkg.tar.gz .PKGINFO usr
done
cd /srv/arch; repo-add --quiet pc.db.tar.gz *.pkg.tar.gz
printf '[options]\\nArchitecture = auto\\nSigLevel = Never\\n[pc]\\nServer = file:///srv/arch\\n' > /etc/pacman.conf
pacman -Sy --noprogressbar
"""
GEMS = """
mkdir -p /srv/gems/gems; cd /srv/gems
for version in 1.0 1.1 2.0; do
  echo "Gem::Specification.new { |s| s.name = 'pc-alpha'; s.version = '$version'; s.summary = 'x'; s.authors = ['x'] }" > pc-alpha.gemspec
  gem build --quiet pc-alpha.gemspec 2>/dev/null; mv pc-alpha-$version.gem gems/
done
gem generate_index --quiet
printf -- '---\\n:sources:\\n- file:///srv/gems/\\n' > /etc/gemrc
"""
OPENRC = """
mkdir -p /run/openrc; echo default > /run/openrc/softlevel
cat > /etc/init.d/thing <<'SCRIPT'
#!/sbin/openrc-run
command=/bin/sleep
command_args=1000
command_background=true
pidfile=/run/thing.pid
SCRIPT
chmod 755 /etc/init.d/thing
rc-update --update 2>/dev/null
"""
SCRIPT = """
cat > /etc/init.d/thing <<'SCRIPT'
#!/bin/sh
case $1 in
  start) touch /run/thing ;;
  stop) rm -f /run/thing ;;
  restart) echo again >> /run/thing ;;
  status) test -e /run/thing ;;
esac
SCRIPT
chmod 755 /etc/init.d/thing
"""
POLICY = """
mkdir -p /srv/policy; cd /srv/policy
for name in pc_one pc_two; do
  printf 'module %s 1.2.3;\\nrequire { type unconfined_t; }\\n' $name > $name.te
  checkmodule -M -m -o $name.mod $name.te; semodule_package -o $name.pp -m $name.mod
done
"""


@dataclass(frozen=True)
class System:
    """
    `packages`: what is installed first, see `packages.sh`; `setup`: a script; `os`: what os-release says the machine is;
    `steps`: manifests, each with what `ask` prints after it; `reset` goes before; `alone`: why the real puppet cannot do
    this here.
    """

    setup: str
    ask: str
    reset: str
    steps: tuple[tuple[str, str], ...]
    packages: str = ""
    os: str = 'NAME="Debian GNU/Linux"\nID=debian'
    alone: str = ""


def versions(provider: str, first: str, last: str, *, name: str = "pc-alpha") -> tuple[tuple[str, str], ...]:
    """A package that comes in a version, is brought to the last one, and goes."""

    def manifest(ensure: str) -> str:
        return f"package {{ '{name}': ensure => '{ensure}', provider => {provider} }}"

    return (
        (manifest(first), f"{name} {first}\n"),
        (manifest("present"), f"{name} {first}\n"),
        (manifest("latest"), f"{name} {last}\n"),
        (manifest("absent"), ""),
        (manifest("present"), f"{name} {last}\n"),
        (f"package {{ 'pc-missing': ensure => present, provider => {provider} }}", f"{name} {last}\n"),
    )


RPM_QUERY = "rpm -q --queryformat '%{NAME} %{VERSION}-%{RELEASE}\\n' pc-alpha | grep -v 'not installed'"
RPM_GONE = "rpm --erase --force-debian pc-alpha 2>/dev/null || true"
RUBY = "its prefetch of RPMs fails with this Ruby"


def of_dnf(provider: str, first: str, setup: str) -> System:
    """RPMs by dnf, whatever it is called."""
    return System(
        packages="dnf",
        setup=REPOSITORY + DNF_KNOWS + setup,
        ask=RPM_QUERY,
        reset=RPM_GONE,
        steps=versions(provider, first, "2.0-1"),
        alone=RUBY,
    )


SYSTEMS = {
    "dnf": of_dnf("dnf", "1.0-1", "rm -f /usr/bin/yum"),
    "yum, where it is a link to dnf": of_dnf("yum", "1.1-1", "ln -sf dnf /usr/bin/yum"),
    "repositories of yum and dnf": System(
        packages="dnf",
        setup=REPOSITORY,
        ask="dnf --quiet repolist 2>/dev/null | tail -n 1 | tr -s ' '; " + RPM_QUERY,
        reset=RPM_GONE,
        steps=(
            ("yumrepo { 'pc': descr => 'for tests', baseurl => 'file:///srv/rpms', gpgcheck => '0' }", "pc for tests\n"),
            (
                "yumrepo { 'pc': descr => 'for others' } -> package { 'pc-alpha': ensure => present, provider => dnf }",
                "pc for others\npc-alpha 2.0-1\n",
            ),
            ("yumrepo { 'pc': ensure => absent }", "pc-alpha 2.0-1\n"),
        ),
        alone="the module with the type is no package of Debian",
    ),
    "zypper": System(
        packages="zypper",
        setup=REPOSITORY + "mkdir -p /etc/zypp/repos.d",
        ask=RPM_QUERY,
        reset=RPM_GONE + "; zypper --quiet removerepo --all; zypper --quiet addrepo --no-gpgcheck file:///srv/rpms pc",
        steps=versions("zypper", "1.0-1", "2.0-1"),
        os='NAME="SLES"\nID="sles"',
        alone=RUBY,
    ),
    "rpm": System(
        packages="rpm",
        setup=RPMS,
        ask=RPM_QUERY,
        reset=RPM_GONE,
        steps=tuple(
            (
                f"package {{ 'pc-alpha': ensure => '{ensure}', source => '/srv/rpms/noarch/pc-alpha-{version}-1.noarch.rpm',"
                " provider => rpm, install_options => ['--force-debian'], uninstall_options => ['--force-debian'] }",
                answer,
            )
            for ensure, version, answer in (
                ("present", "1.0", "pc-alpha 1.0-1\n"),
                ("latest", "1.1", "pc-alpha 1.1-1\n"),
                ("2.0-1", "2.0", "pc-alpha 2.0-1\n"),
                ("absent", "2.0", ""),
            )
        ),
        alone=RUBY,
    ),
    "pacman": System(
        packages="pacman",
        setup=ARCH,
        ask="pacman -Q pc-beta 2>/dev/null",
        reset="pacman -U --noconfirm /srv/arch/pc-beta-1.0-1-any.pkg.tar.gz /srv/arch/pc-more-1.0-1-any.pkg.tar.gz",
        steps=versions("pacman", "1.0-1", "2.0-1", name="pc-beta")[1:],
        os='NAME="Arch Linux"\nID=arch',
    ),
    "gem": System(
        setup=GEMS,
        ask="gem list --local pc-alpha | tr -d '()' | grep .",
        reset="gem uninstall --all --executables pc-alpha || true",
        steps=tuple(
            (manifest, answer.replace(" 2.0", " 2.0, 1.0", number == 2))
            for number, (manifest, answer) in enumerate(versions("gem", "1.0", "2.0"))
        ),
    ),
    "openrc": System(
        packages="openrc",
        setup=OPENRC,
        ask="rc-service thing status 2>&1 | grep -o 'started\\|stopped'; rc-update show default | grep -o 'thing'",
        reset="rc-service thing stop > /dev/null 2>&1 || true; rc-update --quiet delete thing default || true",
        steps=(
            ("service { 'thing': ensure => running, enable => true, provider => openrc }", "started\nthing\n"),
            ("service { 'thing': ensure => running, enable => false, provider => openrc }", "started\n"),
            ("service { 'thing': ensure => stopped, provider => openrc }", "stopped\n"),
            ("service { 'missing': ensure => running, provider => openrc }", "stopped\n"),
        ),
    ),
    "init scripts": System(
        setup=SCRIPT,
        ask="cat /run/thing 2>/dev/null && echo up",
        reset="rm -f /run/thing",
        steps=(
            ("service { 'thing': ensure => running, provider => init }", "up\n"),
            (
                "exec { '/bin/true': } ~> service { 'thing': ensure => running, hasrestart => true, provider => init }",
                "again\nup\n",
            ),
            ("service { 'thing': ensure => stopped, provider => init }", ""),
            ("service { 'missing': ensure => running, provider => init }", ""),
        ),
        os="NAME=Slackware\nID=slackware",
    ),
    "libuser": System(
        packages="libuser",
        setup="",
        ask="getent passwd pc | cut -d: -f1,3,4,7; getent group pcs | cut -d: -f1,3,4; getent shadow pc | cut -d: -f2",
        reset="userdel pc 2>/dev/null || true; groupdel pcs 2>/dev/null || true",
        steps=(
            ("group { 'pcs': ensure => present, gid => 4000, forcelocal => true }", "pcs:4000:\n"),
            (
                "user { 'pc': ensure => present, uid => 4001, gid => 4000, shell => '/bin/sh', password => '!x', forcelocal => true }",
                "pc:4001:4000:/bin/sh\npcs:4000:\n!x\n",
            ),
            (
                "user { 'pc': uid => 4002, shell => '/bin/bash', forcelocal => true }"
                " group { 'pcs': members => ['bin', 'daemon'], auth_membership => true, forcelocal => true }",
                "pc:4002:4000:/bin/bash\npcs:4000:bin,daemon\n!x\n",
            ),
            ("user { 'pc': ensure => absent, forcelocal => true } -> group { 'pcs': ensure => absent, forcelocal => true }", ""),
        ),
    ),
    "policy modules": System(
        packages="selinux",
        setup=POLICY,
        ask="semodule -l | grep pc_",
        reset="semodule -r pc_one pc_two 2>/dev/null || true",
        steps=(
            ("selmodule { 'pc_one': ensure => present, selmoduledir => '/srv/policy' }", "pc_one\n"),
            ("selmodule { 'other': name => 'pc_two', ensure => present, selmodulepath => '/srv/policy/pc_two.pp' }", "pc_one\npc_two\n"),
            ("selmodule { 'pc_one': ensure => absent }", "pc_two\n"),
        ),
    ),
}


def walked(machine: Booted, puppet: Any, system: System) -> list[tuple[int, str]]:
    """How the run of each step ended, and what the machine says after it."""
    machine.shell(system.reset)
    found = []
    for manifest, _ in system.steps:
        machine.path("/srv/site.pp").write_text(manifest)
        done = puppet("apply", "--detailed-exitcodes", "--color=false", "--confdir=/srv/conf", "--vardir=/srv/var", "/srv/site.pp")
        print(manifest, done.stdout, sep="\n")  # pytest shows it when the test fails
        found.append((done.returncode, machine.run("sh", "-c", system.ask).stdout))
    return found


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_other_systems_have_is_managed_as_the_real_puppet_does_it(name: str, machine: Booted) -> None:
    system = SYSTEMS[name]
    if system.packages:
        machine.install(system.packages)
    machine.run("rm", "/etc/os-release")
    machine.path("/etc/os-release").write_text(f"{system.os}\nVERSION_ID=12\n")
    machine.shell(system.setup)
    ours = walked(machine, machine.ours, system)
    assert [answer for _, answer in ours] == [answer for _, answer in system.steps]
    for (manifest, _), (code, _) in zip(system.steps, ours, strict=True):
        assert code in ((4,) if "missing" in manifest else (0, 2))
    if not system.alone:
        assert ours == walked(machine, machine.real, system)
    machine.shell(system.reset)
