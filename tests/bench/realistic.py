"""
The site of a realistic node: a role of profiles, Hiera with data for the node, Debian's packaged modules with their ERB templates.

`make debian-modules` brings the modules. A catalog has Apache with VHOSTS virtual hosts, NTP and files from templates.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.gate import caches

PACKAGED = caches.folder("debian-modules") / "modules"
MODULES = ("apache", "concat", "ntp", "stdlib")
VHOSTS = 20
FACTS_FILE = Path(__file__).parent.parent / "modules" / "facts.yaml"

_VHOST = """\
  $vhosts.each |String $site, Hash $options| {
    apache::vhost { $site:
      docroot       => "/var/www/${site}",
      directories   => [{ path => "/var/www/${site}", options => ['Indexes'], require => 'all granted' }],
      proxy_pass    => [{ path => '/x', url => 'http://backend/' }],
      rewrites      => [{ rewrite_rule => ['^a b'] }],
      setenv        => ['A b'],
      *             => $options,
    }
    file { "/var/www/${site}/release.txt": content => "${site} ${facts['bench_round']}\\n", mode => '0644' }
  }
"""


def site(certname: str) -> dict[str, str]:
    """Return the files of the environment, beside the packaged modules."""
    vhosts = {
        f"site{number}.example.com": {"port": 8000 + number, "serveraliases": [f"a{number}", f"b{number}"]} for number in range(VHOSTS)
    }
    hierarchy = [
        {"name": "node", "path": "nodes/%{trusted.certname}.yaml"},
        {"name": "system", "path": "os/%{facts.os.family}.yaml"},
        {"name": "all", "path": "common.yaml"},
    ]
    return {
        "hiera.yaml": yaml.safe_dump({"version": 5, "defaults": {"datadir": "data", "data_hash": "yaml_data"}, "hierarchy": hierarchy}),
        f"data/nodes/{certname}.yaml": yaml.safe_dump({"profile::web::vhosts": vhosts}),
        "data/os/Debian.yaml": yaml.safe_dump({"profile::base::packages": ["less", "rsync", "tmux", "vim"]}),
        "data/common.yaml": yaml.safe_dump(
            {
                "profile::base::packages": [],
                "profile::base::administrators": {f"admin{number}": 2000 + number for number in range(10)},
                "profile::web::vhosts": {},
                "ntp::servers": ["0.ntp.example.com", "1.ntp.example.com"],
                "lookup_options": {"profile::base::packages": {"merge": "unique"}},
            }
        ),
        "modules/role/manifests/web.pp": "class role::web {\n  include profile::base\n  include profile::web\n}\n",
        "modules/profile/manifests/base.pp": """
            class profile::base (Array[String] $packages, Hash[String, Integer] $administrators) {
              include ntp
              package { $packages: ensure => installed }
              $administrators.each |String $name, Integer $uid| {
                user { $name: ensure => present, uid => $uid, managehome => true }
                $profile = epp('profile/profile.epp', { name => $name })
                file { "/home/${name}/.profile": content => $profile, owner => $name, require => User[$name] }
              }
              file { '/etc/motd': content => template('profile/motd.erb') }
            }
        """,
        "modules/profile/manifests/web.pp": "class profile::web (Hash[String, Hash] $vhosts) {\n"
        "  class { 'apache': default_vhost => false }\n" + _VHOST + "}\n",
        "modules/profile/templates/profile.epp": "<%- | String $name | -%>\nexport LOGNAME=<%= $name %>\n",
        "modules/profile/templates/motd.erb": (
            "<%= @fqdn %>\n<% @administrators.each do |name, uid| -%>\n<%= name %> <%= uid %>\n<% end -%>\n"
        ),
    }


def why_not() -> str:
    """Return why there are no catalogs of this site; '' when there are."""
    missing = [name for name in MODULES if not (PACKAGED / name).is_dir()]
    return f"no module {', '.join(missing)} in {PACKAGED} (make debian-modules)" if missing else ""


def write(environment: Path, certname: str) -> None:
    """Write the site into an environment, its modules with it."""
    for name in MODULES:
        shutil.copytree(PACKAGED / name, environment / "modules" / name, symlinks=False)
    for name, text in site(certname).items():
        path = environment / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@cache
def _machine() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(yaml.safe_load(FACTS_FILE.read_text()), default=str))
    return data


def facts(certname: str, round_number: int) -> dict[str, Any]:
    """Return the facts of the node; a file of each virtual host says what `round_number` is."""
    return {**_machine(), "clientcert": certname, "bench_role": "web", "bench_round": round_number}
