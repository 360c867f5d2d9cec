"""An environment whose nodes use code of every kind, and edits that may or may not change their catalogs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PYTHON_FUNCTION = """
from typing import Any

from language.functions import Context, function


@function("{0}", "Any x", pure=True)
def own(context: Context, x: Any) -> Any:
    return {1}
"""
BASE: Mapping[str, str] = {
    "environment.conf": "modulepath = site:modules\n",
    "manifests/site.pp": """
node default {
  include profile::base
  case $facts['role'] {
    'web': { include profile::web }
    'db': { include profile::db }
    default: { }
  }
}
""",
    "hiera.yaml": """
version: 5
hierarchy:
  - name: all
    paths: ['nodes/%{trusted.certname}.yaml', 'roles/%{facts.role}.yaml', 'common.yaml']
""",
    "data/common.yaml": "profile::base::text: common\nport: 1\n",
    "data/roles/web.yaml": "port: 80\n",
    "site/profile/manifests/base.pp": 'class profile::base(Text $text) {\n  notify { "base ${text}": }\n}\n',
    "types/text.pp": "type Text = String[1]\n",
    "site/profile/manifests/web.pp": """
class profile::web inherits profile::params {
  web::vhost { 'main': port => lookup('port'), mode => $profile::params::mode }
  file { '/page': source => 'puppet:///modules/web/page' }
  notify { web::name('x'): }
  notify { "${web::size('abc')} ${to_json([1])}": }
  notify { file('web/banner', 'web/text'): }
  web_site { 'main': docroot => '/srv' }
}
""",
    "site/profile/manifests/params.pp": "class profile::params { $mode = 'a' }\n",
    "site/profile/manifests/db.pp": """
class profile::db {
  notify { template('profile/db.erb'): }
  if defined('extra') { include extra }
  if defined('profile::spare') { notify { 'spare': } }
  if find_file('later/page') { notify { 'later': } }
}
""",
    "site/profile/templates/db.erb": "db <%= @facts['role'] %>\n",
    "modules/web/manifests/vhost.pp": """
define web::vhost(Web::Port $port, String $mode) {
  notify { epp('web/vhost.epp', { 'port' => $port }): message => $mode }
}
""",
    "modules/web/templates/vhost.epp": "<%- | $port | -%>\nport <%= $port %>\n",
    "modules/web/types/port.pp": "type Web::Port = Integer[1, 1000]\n",
    "modules/web/functions/name.pp": 'function web::name(String $text) { "named ${text}" }\n',
    "modules/web/files/page": "page\n",
    "modules/web/files/text": "text\n",
    "modules/web/lib/puppet/functions/web/size.py": PYTHON_FUNCTION.format("web::size", "len(x)"),
    "modules/web/lib/puppet/type/web_site.rb": "Puppet::Type.newtype(:web_site) do\n  newparam(:name)\n  newproperty(:docroot)\nend\n",
}
EDITS: tuple[tuple[str, str | None], ...] = (
    ("environment.conf", "modulepath = modules:site\n"),
    ("environment.conf", None),
    ("manifests/site.pp", "include profile::base\n"),
    ("manifests/other.pp", "notify { 'from another manifest': }\n"),
    ("hiera.yaml", "version: 5\nhierarchy:\n  - name: one\n    path: 'common.yaml'\n"),
    ("hiera.yaml", "version: 5\nhierarchy:\n  - name: globs\n    globs: ['more/*.yaml', 'common.yaml']\n"),
    ("data/common.yaml", "profile::base::text: changed\nport: 2\n"),
    ("data/common.yaml", "# only a comment\nprofile::base::text: common\nport: 1\n"),
    ("data/nodes/web1.yaml", "port: 8080\n"),
    ("data/roles/db.yaml", "profile::base::text: of databases\n"),
    ("data/roles/web.yaml", None),
    ("data/more/x.yaml", "port: 5\n"),
    ("site/profile/manifests/base.pp", 'class profile::base(String $text) {\n  notify { "other ${text}": }\n}\n'),
    ("site/profile/manifests/params.pp", "class profile::params { $mode = 'b' }\n"),
    ("site/profile/manifests/web.pp", "class profile::web { notify { 'no vhosts': } }\n"),
    ("site/profile/manifests/web.pp", None),
    ("site/profile/manifests/init.pp", "class profile { }\n"),
    ("site/profile/templates/db.erb", "database\n"),
    ("site/profile/data/common.yaml", "port: 7\n"),
    ("site/profile/hiera.yaml", "version: 5\nhierarchy:\n  - name: module\n    path: 'common.yaml'\n"),
    ("site/web/manifests/vhost.pp", "define web::vhost(Integer $port, String $mode) { notify { 'shadowed': } }\n"),
    ("site/web/files/page", "another page\n"),
    ("modules/web/files/page", "changed page\n"),
    ("modules/web/files/banner", "a banner\n"),
    ("modules/web/files/text", None),
    ("modules/later/files/page", "a page\n"),
    ("modules/web/templates/vhost.epp", "<%- | $port | -%>\nat <%= $port %>\n"),
    ("modules/web/types/port.pp", "type Web::Port = Integer[1, 50]\n"),
    ("modules/web/manifests/port.pp", "define web::port { }\n"),
    ("modules/web/manifests/vhost.pp", "define web::vhost(Web::Port $port, String $mode) { notify { 'no port': } }\n"),
    ("modules/web/functions/name.pp", 'function web::name(String $text) { "called ${text}" }\n'),
    ("modules/web/lib/puppet/functions/web/name.rb", "Puppet::Functions.create_function(:'web::name') { }\n"),
    ("modules/web/lib/puppet/functions/web/size.py", PYTHON_FUNCTION.format("web::size", "-len(x)")),
    ("modules/web/lib/puppet/functions/web/size.py", None),
    ("modules/web/functions/size.pp", "function web::size($x) { 'in the language' }\n"),
    ("modules/unused/lib/puppet/functions/to_json.py", PYTHON_FUNCTION.format("to_json", "'own'")),
    ("functions/to_json.pp", "function to_json($x) { 'of the environment' }\n"),
    ("modules/web/lib/puppet/type/web_site.rb", "Puppet::Type.newtype(:web_site) do\n  newparam(:name)\nend\n"),
    ("modules/web/lib/puppet/type/web_site.rb", None),
    ("modules/unused/lib/puppet/type/extra.rb", "Puppet::Type.newtype(:extra) do\n  newparam(:name)\nend\n"),
    ("modules/web/manifests/init.pp", "class web { is wrong {\n"),
    ("modules/web/manifests/name.pp", "class web::name { }\n"),
    ("modules/extra/manifests/init.pp", "class extra { notify { 'extra': } }\n"),
    ("modules/extra/README", "a module\n"),
    ("site/profile/manifests/spare.pp", "class profile::spare { }\n"),
    ("modules/unused/manifests/init.pp", "class unused { }\n"),
    ("modules/unused/lib/puppet/type/notify.rb", "Puppet::Type.newtype(:notify) { newparam(:name) }\n"),
    ("functions/template.pp", "function template(String $x) { 'own' }\n"),
    ("functions/environment_own.pp", "function environment_own() { 1 }\n"),
    (".resource_types/notify.pp", "# generated\n"),
    ("types/port.pp", "type Port = Integer\n"),
    ("types/text.pp", "type Text = Enum['other']\n"),
    ("modules/web/metadata.json", '{"name": "x-web", "version": "1.0.0", "dependencies": [], "data_provider": "none"}\n'),
)
NODES = (("web1", "web"), ("web2", "web"), ("db1", "db"), ("plain1", "plain"))


def write(root: Path, files: Iterable[tuple[str, str | None]]) -> None:
    for name, content in files:
        path = root / name
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


def node(name: str, role: str) -> dict[str, Any]:
    facts = {"role": role, "hostname": name}
    return {"certname": name, "facts": facts, "parameters": facts, "classes": {}, "trusted": {"certname": name}, "server_facts": {}}
