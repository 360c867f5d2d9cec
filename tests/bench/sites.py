"""The sites that compiles are measured with, as files; both sides compile the same."""

from __future__ import annotations

from pathlib import Path

MODULES = 60
KEYS = 500
MANY = 20_000
SERVICES = 60

FACTS = {
    "os": {"name": "Debian", "family": "Debian", "release": {"full": "12.5", "major": "12"}, "architecture": "amd64"},
    "networking": {"hostname": "bench", "domain": "example.com", "fqdn": "bench.example.com", "ip": "192.0.2.10"},
    "kernel": "Linux",
    "osfamily": "Debian",
    "hostname": "bench",
    "fqdn": "bench.example.com",
    "processors": {"count": 4},
    "role": "web",
    "zone": "eu",
    "rack": "r7",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "environments" / "production" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def modules_site() -> dict[str, str]:
    """Sixty modules as sites have them: typed parameters, data, three classes each, a define, templates, loops; some 1,300 resources."""
    files = {
        "environment.conf": "environment_timeout = unlimited\n",
        "hiera.yaml": """---
version: 5
hierarchy:
  - name: node
    path: "nodes/%{facts.networking.fqdn}.yaml"
  - name: os
    path: "os/%{facts.os.family}.yaml"
  - name: common
    path: common.yaml
""",
        "data/common.yaml": "---\n" + "".join(f"m{i}::port: {8000 + i}\n" for i in range(MODULES)),
        "data/os/Debian.yaml": "---\n" + "".join(f"m{i}::user: user{i}\n" for i in range(0, MODULES, 2)),
        "data/nodes/bench.example.com.yaml": "---\nm1::options:\n  - fast\n  - loud\n",
        "manifests/site.pp": "node default {\n" + "".join(f"  include m{i}\n" for i in range(MODULES)) + "}\n",
    }
    for number in range(MODULES):
        files |= {f"modules/m{number}/{path}": text.replace("MOD", f"m{number}") for path, text in _MODULE.items()}
    return files


_MODULE = {
    "manifests/init.pp": """# One service.
class MOD (
  String[1] $package = 'MOD-server',
  Integer[1, 65535] $port = 80,
  String[1] $user = 'nobody',
  Array[String] $options = ['quiet'],
  Hash[String, Hash] $sites = {
    'one'   => { 'port' => 1001, 'tags' => ['a', 'b'] },
    'two'   => { 'port' => 1002 },
    'three' => { 'port' => 1003, 'ensure' => 'absent' },
  },
  Optional[Enum['low', 'high']] $level = undef,
) {
  contain MOD::install
  contain MOD::config
  contain MOD::service
  Class['MOD::install'] -> Class['MOD::config'] ~> Class['MOD::service']
  $sites.each |$name, $site| {
    MOD::site { $name:
      * => $site,
    }
  }
}
""",
    "manifests/install.pp": """class MOD::install {
  package { $MOD::package:
    ensure => installed,
  }
  $extra = $facts['os']['family'] ? {
    'Debian' => ['MOD-doc', 'MOD-utils'],
    /RedHat|Suse/ => ['MOD-devel'],
    default  => [],
  }
  package { $extra:
    ensure  => present,
    require => Package[$MOD::package],
  }
}
""",
    "manifests/config.pp": """class MOD::config {
  File {
    owner => 'root',
    group => 'root',
    mode  => '0644',
  }
  $workers = $facts['processors']['count'] * 2 + 1
  file { '/etc/MOD':
    ensure => directory,
    mode   => '0755',
  }
  file { '/etc/MOD/MOD.conf':
    content => epp('MOD/main.epp', {
      'port'    => $MOD::port,
      'workers' => $workers,
      'options' => $MOD::options,
    }),
  }
  $parts = Integer[1, 4].map |$i| { "part-${i}" }
  $parts.each |$index, $part| {
    file { "/etc/MOD/${part}.conf":
      content => "# ${part} of ${facts['networking']['fqdn']}\\nnumber = ${index}\\n",
    }
  }
  if $MOD::level == 'high' and $facts['kernel'] =~ /^Linux/ {
    file { '/etc/MOD/high':
      ensure => file,
    }
  } elsif $facts['role'] in ['web', 'db'] {
    file { '/etc/MOD/role':
      content => "role=${facts['role']}",
    }
  }
}
""",
    "manifests/service.pp": """class MOD::service {
  service { 'MOD':
    ensure     => running,
    enable     => true,
    hasrestart => true,
  }
  $quiet = $MOD::options.filter |$option| { $option == 'quiet' }
  unless empty($quiet) {
    exec { 'MOD reload':
      command     => "/usr/bin/MOD reload ${join($quiet, ' ')}",
      refreshonly => true,
      subscribe   => File['/etc/MOD/MOD.conf'],
    }
  }
}
""",
    "manifests/site.pp": """define MOD::site (
  Integer $port,
  Enum['present', 'absent'] $ensure = 'present',
  Array[String] $tags = [],
) {
  $file = "/etc/MOD/sites/${title}"
  file { $file:
    ensure  => $ensure,
    content => epp('MOD/site.epp', { 'title' => $title, 'port' => $port, 'tags' => $tags }),
    notify  => Service['MOD'],
  }
}
""",
    "templates/main.epp": """<%- | Integer $port, Integer $workers, Array[String] $options | -%>
# managed
port = <%= $port %>
workers = <%= $workers %>
<% $options.each |$option| { -%>
option <%= $option %>
<% } -%>
<% if $facts['os']['name'] == 'Debian' { -%>
family = debian
<% } -%>
""",
    "templates/site.epp": """<%- | String $title, Integer $port, Array $tags | -%>
[<%= $title %>]
port: <%= $port %>
<% unless empty($tags) { -%>
tags: <%= $tags.join(', ') %>
<% } -%>
""",
}


def data_site() -> dict[str, str]:
    """Five hundred keys over six levels, merged deeply, interpolated; looked up one by one and by a class with parameters."""
    levels = (
        ("node", "nodes/%{facts.networking.fqdn}.yaml"),
        ("rack", "racks/%{facts.rack}.yaml"),
        ("role", "roles/%{facts.role}.yaml"),
        ("zone", "zones/%{facts.zone}.yaml"),
        ("os", "os/%{facts.os.family}.yaml"),
        ("common", "common.yaml"),
    )
    places = ("nodes/bench.example.com", "racks/r7", "roles/web", "zones/eu", "os/Debian", "common")
    files = {
        "environment.conf": "environment_timeout = unlimited\n",
        "hiera.yaml": "---\nversion: 5\nhierarchy:\n" + "".join(f'  - name: {name}\n    path: "{path}"\n' for name, path in levels),
    }
    for depth, place in enumerate(places):
        lines = ["---"]
        if place == "common":
            lines += ["lookup_options:", '  "^key":', "    merge:", "      strategy: deep"]
        for number in range(KEYS):
            if place != "common" and (number + depth) % 3:
                continue
            lines += [
                f"key{number}:",
                f"  name: 'value {number} of %{{facts.hostname}}'",
                f"  level{depth}: {depth}",
                "  nested:",
                f"    from_{depth}: true",
                "    list:",
                f"      - item-{depth}",
                f"      - item-{number}",
                "    both: [1, 2, 3]",
            ]
        lines += [f"wanted::p{number}: '{place}-{number}'" for number in range(depth, 60, 6)]
        files[f"data/{place}.yaml"] = "\n".join(lines) + "\n"
    parameters = "".join(f"  String $p{number},\n" for number in range(60))
    files["modules/wanted/manifests/init.pp"] = f"class wanted (\n{parameters}) {{\n  notify {{ 'wanted': message => $p59 }}\n}}\n"
    files["manifests/site.pp"] = f"""include wanted
Integer[0, {KEYS - 1}].each |$i| {{
  $data = lookup("key${{i}}", Hash)
  notify {{ "key${{i}}": message => $data['nested'] }}
}}
"""
    return files


def loop_site() -> dict[str, str]:
    """Twenty thousand resources from one loop."""
    return {
        "environment.conf": "environment_timeout = unlimited\n",
        "manifests/site.pp": f"""Integer[1, {MANY}].each |$i| {{
  notify {{ "n${{i}}":
    message  => "number ${{i}}",
    withpath => false,
  }}
}}
""",
    }


def ruby_site() -> dict[str, str]:
    """A site that has its functions in Ruby, as large ones do: data by patterns of names, a role that sets a variable, secrets, the DNS."""
    files = {f"modules/site/lib/puppet/{path}": text for path, text in _RUBY.items()}
    files |= {f"modules/site/secrets/service{number}": f"secret {number}\n" for number in range(SERVICES)}
    files |= {
        "environment.conf": "environment_timeout = unlimited\n",
        "hiera.yaml": """---
version: 5
defaults: {lookup_key: site::patterns, options: {node: "%{trusted.certname}"}}
hierarchy:
  - {name: nodes, path: nodes.yaml}
  - {name: common, path: common.yaml}
""",
        "data/nodes.yaml": "---\n" + "".join(f"'^bench{number}\\.': {{site::port1: {number}}}\n" for number in range(200)),
        "data/common.yaml": "---\n'.*':\n" + "".join(f"  site::port{number}: {8000 + number}\n" for number in range(SERVICES)),
        "manifests/site.pp": "node default {\n  role('web')\n}\n",
        "modules/role/manifests/web.pp": f"""class role::web {{
  Integer[0, {SERVICES - 1}].each |$i| {{
    site::service {{ "service${{i}}": port => lookup("site::port${{i}}", Integer) }}
  }}
}}
""",
        "modules/site/manifests/service.pp": """define site::service (Integer $port) {
  $address = site::address("${title}.example.com", $facts['bench_dns'])
  file { "/etc/${title}.conf":
    content => template('site/service.erb'),
  }
  file { "/etc/${title}.secret":
    content => secret($title),
    mode    => '0400',
  }
}
""",
        "modules/site/templates/service.erb": "<%= @title %> of <%= scope['_role'] %>\nlisten <%= @address %>:<%= @port %>\n",
    }
    return files


_RUBY = {
    "functions/site/patterns.rb": """# Finds data in files whose keys are patterns of certnames.
Puppet::Functions.create_function(:'site::patterns') do
  dispatch :find do
    param 'String', :key
    param 'Hash', :options
    param 'Puppet::LookupContext', :context
  end

  def find(key, options, context)
    known = context.cached_file_data(options['path']) { |text| YAML.safe_load(text) }
    _, data = known.find { |pattern, values| values.key?(key) && Regexp.new(pattern).match?(options['node']) }
    context.not_found if data.nil?
    context.interpolate(data[key])
  end
end
""",
    "functions/site/address.rb": """require 'resolv'

# Returns the address of a name.
Puppet::Functions.create_function(:'site::address') do
  def address(name, port)
    Resolv::DNS.open(nameserver_port: [['127.0.0.1', port]]) { |dns| dns.getaddress(name).to_s }
  end
end
""",
    "parser/functions/role.rb": """Puppet::Parser::Functions.newfunction(:role) do |args|
  setvar('_role', args[0])
  call_function('include', ["role::#{args[0]}"])
end
""",
    "parser/functions/secret.rb": """require 'pathname'

Puppet::Parser::Functions.newfunction(:secret, type: :rvalue) do |args|
  Pathname.new(Puppet::Module.find('site').path).join('secrets', args[0]).read
end
""",
}
