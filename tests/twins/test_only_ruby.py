"""A machine with a `ruby` and neither Puppet nor Facter: our agent applies roles with types in Ruby from our master."""

from __future__ import annotations

import os
import sys

import pytest

from tests.conformance.booted import OURS, Booted
from tests.twins.twin import HOSTS, IMAGE, LAYER, THEIR_PROGRAMS, why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.alone,
    pytest.mark.skipif("BUNRAKU_TWINS" not in os.environ, reason="BUNRAKU_TWINS=yes runs this, with the machine for itself"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

PRODUCTION = "/etc/puppet/code/environments/production"
SITE = {
    "environment.conf": "modulepath = modules:/usr/share/puppet/modules\n",
    "manifests/site.pp": "node default { lookup('roles').each |$role| { include \"role::${role}\" } }\n",
    "hiera.yaml": "version: 5\nhierarchy: [{name: common, path: common.yaml}]\n",
    "data/common.yaml": "roles: [web, database]\nprofile::database::password: secret\n",
    "modules/role/manifests/web.pp": "class role::web { include profile::web }\n",
    "modules/role/manifests/database.pp": "class role::database { include profile::database }\n",
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


def test_roles_with_types_in_ruby_are_applied_from_our_master_and_the_second_run_changes_nothing() -> None:
    with Booted(LAYER, IMAGE) as machine:
        machine.path("/etc/hosts").write_text(HOSTS)
        machine.shell(f"rm -r {THEIR_PROGRAMS}; apt-get install -qq -y --no-install-recommends openssl > /dev/null 2>&1")
        for name, text in SITE.items():
            path = machine.path(f"{PRODUCTION}/{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        machine.shell(MASTER.format(path=OURS["PYTHONPATH"], python=sys.executable))
        words = (sys.executable, "-m", "bunraku.puppet", "agent", "--test", "--server", "localhost", "--certname", "node1.example.com")
        first = machine.run(*words, env=OURS, seconds=600)
        assert first.returncode == 2, first.stdout[-4000:]
        second = machine.run(*words, env=OURS, seconds=600)
        assert second.returncode == 0, second.stdout[-4000:]
        assert "app@localhost" in machine.shell("mysql -N -e \"select concat(user, '@', host) from mysql.user\"")
        machine.shell("openssl x509 -in /srv/www.crt -noout && apache2ctl configtest 2>&1")
