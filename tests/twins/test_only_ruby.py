"""
A machine with a `ruby` and neither Puppet nor Facter: our agent applies roles with types in Ruby, from our master and from puppetservers.

A puppetserver is on this machine and listens in the other's network. That one has no modules then: what roles need comes by plugin sync.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.data import plainyaml
from tests.conformance.booted import OURS, Booted
from tests.interop.puppetserver import PUPPETSERVER_7, PUPPETSERVER_8, Installed, configured, running
from tests.twins.twin import HOSTS, IMAGE, LAYER, THEIR_PROGRAMS, why_not

pytestmark = [
    pytest.mark.works_with("Ruby in modules, without Puppet", "roles from this master and from puppetservers"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.alone,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

CODE = "/etc/puppet/code"
MODULES = "/usr/share/puppet/modules"
NODE = "node1.example.com"
USED = ("apache", "concat", "firewall", "inifile", "mysql", "openssl", "stdlib", "vcsrepo")  # modules of the roles
ROLES = ("base", "database", "web")
SITE = {
    "manifests/site.pp": "node default { lookup('roles').each |$role| { include \"role::${role}\" } }\n",
    "hiera.yaml": "version: 5\nhierarchy: [{name: common, path: common.yaml}]\n",
    "modules/role/manifests/base.pp": "class role::base { include profile::base }\n",
    "modules/role/manifests/web.pp": "class role::web { include profile::web }\n",
    "modules/role/manifests/database.pp": "class role::database { include profile::database }\n",
    "modules/profile/manifests/base.pp": """
        class profile::base {
          package { ['git', 'iptables']: ensure => present }
          firewall { '100 allow http and https':
            dport => [80, 443], proto => 'tcp', action => 'accept', require => Package['iptables'],
          }
          vcsrepo { '/srv/code': ensure => present, provider => git, require => Package['git'] }
          ini_setting { 'site': path => '/etc/site.ini', section => 'main', setting => 'colour', value => 'red' }
        }
    """,
    "modules/profile/manifests/web.pp": """
        class profile::web {
          class { 'apache': default_vhost => false, mpm_module => 'event' }
          apache::vhost { 'www.example.com': port => 8080, docroot => '/srv/www' }
          Package <| title == 'mime-support' |> { name => 'media-types' }
          openssl::certificate::x509 { 'www':
            country => 'US', organization => 'Example', commonname => 'www.example.com', base_dir => '/srv',
          }
        }
    """,
    "modules/profile/manifests/database.pp": """
        class profile::database (String[1] $password) {
          class { 'mysql::server': package_name => 'mariadb-server', service_name => 'mariadb', root_password => $password }
          mysql::db { 'app':
            user => 'app', password => $password, host => 'localhost', grant => ['SELECT'],
            charset => 'utf8mb3', collate => 'utf8mb3_general_ci',
          }
        }
    """,
}
MASTER = """\
systemd-run --quiet --unit=site-master --setenv=PYTHONPATH={path} --setenv=PYTHONDONTWRITEBYTECODE=1 \
  {python} -m bunraku.puppet master --no-daemonize --certname localhost --autosign true --user root --group root
for second in $(seq 60); do
  journalctl --unit=site-master --no-pager | grep -q 'Serving Puppet on' && exit 0
  sleep 1
done
journalctl --unit=site-master --no-pager; exit 1
"""


@pytest.fixture
def machine() -> Iterator[Booted]:
    with Booted(LAYER, IMAGE) as machine:
        machine.path("/etc/hosts").write_text(HOSTS)
        machine.shell(f"rm -r {THEIR_PROGRAMS}; apt-get install -qq -y --no-install-recommends openssl > /dev/null 2>&1")
        yield machine


def write_site(code: Path, roles: tuple[str, ...] = ROLES) -> None:
    """Write the environment production of a folder of code."""
    for name, text in (SITE | {"data/common.yaml": f"roles: [{', '.join(roles)}]\nprofile::database::password: secret\n"}).items():
        path = code / "environments/production" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextmanager
def puppetserver(installed: Installed, machine: Booted, roles: tuple[str, ...]) -> Iterator[Path]:
    """A puppetserver in the machine's network, which gets the machine's modules that the roles use; returns its folder."""
    root = Path(tempfile.mkdtemp(prefix="puppetserver-"))
    try:
        configured(installed, root, 8140, jrubies=1, programs=False)
        shutil.rmtree(root / "code")
        write_site(root / "code", roles)
        machine.shell(f"mkdir /srv/modules; for name in {' '.join(USED)}; do cp -rL {MODULES}/$name /srv/modules; done")
        shutil.copytree(machine.path("/srv/modules"), root / "code/modules")
        machine.shell(f"rm -r /srv/modules {MODULES} {MODULES}.available")
        with running(root, 8140, installed, network_of=machine.processes()[0]):
            yield root
    finally:
        shutil.rmtree(root)


def apply_twice(machine: Booted, roles: tuple[str, ...] = ROLES, *, after_run: Callable[[], None] = lambda: None) -> None:
    """Run the agent until there is nothing to do: the first run changes things, the second none; then ask what the roles are for."""
    words = (sys.executable, "-m", "bunraku.puppet", "agent", "--test", "--server", "localhost", "--certname", NODE)
    for code in (2, 0):
        ran = machine.run(*words, env=OURS, seconds=900)
        assert ran.returncode == code, ran.stdout[-4000:]
        after_run()
    assert "app@localhost" in machine.shell("mysql -N -e \"select concat(user, '@', host) from mysql.user\"")
    assert "100 allow http and https" in machine.shell("iptables-save")
    machine.shell("git -C /srv/code status && grep red /etc/site.ini")
    if "web" in roles:
        machine.shell("openssl x509 -in /srv/www.crt -noout && apache2ctl configtest 2>&1")


def test_roles_with_types_in_ruby_are_applied_from_our_master_and_the_second_run_changes_nothing(machine: Booted) -> None:
    write_site(machine.path(CODE))
    machine.path(f"{CODE}/environments/production/environment.conf").write_text(f"modulepath = modules:{MODULES}\n")
    machine.shell(MASTER.format(path=OURS["PYTHONPATH"], python=sys.executable))
    apply_twice(machine)


# Debian's module apache, whose role is `web`, is not for Puppet 8: the server refuses a type of it.
@pytest.mark.parametrize(
    ("installed", "roles"),
    [pytest.param(PUPPETSERVER_7, ROLES, id="7.9.5"), pytest.param(PUPPETSERVER_8, ("base", "database"), id="8.7")],
)
def test_the_same_roles_are_applied_from_a_puppetserver_which_gets_both_reports(
    machine: Booted, installed: Installed, roles: tuple[str, ...]
) -> None:
    if reason := installed.why_not():
        pytest.skip(reason)
    with puppetserver(installed, machine, roles) as root:
        reports: list[Any] = []

        def take_report() -> None:
            """Read the last report now: the next one has the same name if it is of the same minute."""
            *_, path = sorted((root / "var/reports" / NODE).iterdir())
            reports.append(plainyaml.loads(path.read_bytes()))

        apply_twice(machine, roles, after_run=take_report)
        assert [report["status"] for report in reports] == ["changed", "unchanged"]
        # Of an unchanged run Puppet 8 stores no resource.
        assert reports[0]["resource_statuses"].keys() >= {"Mysql_user[app@localhost]", "Vcsrepo[/srv/code]"}
