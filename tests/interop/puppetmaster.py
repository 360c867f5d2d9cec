"""The real puppetmaster 3.8.5 (WEBrick) with a site of its own, and the agents that speak to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.peers import PUPPET_3, OtherAgent, Release
from tests.interop.puppetserver import AUTOSIGN
from tests.interop.ruby_master import RubyMaster
from tests.interop.stage import SITE
from tests.support.ports import reserved_port
from tests.support.processes import OurAgent, clean_environment

# Loaded by the master's own ruby, it only looks: every request and its answer as they go over the wire, one JSON object a line.
RECORDER = r"""
require 'webrick'
require 'json'
WEBrick::HTTPServer.class_eval do
  alias_method :unrecorded_service, :service
  def service(request, response)
    body = request.body
    unrecorded_service(request, response)
  rescue WEBrick::HTTPStatus::Status => status
    response.status = status.code
    raise
  ensure
    headers = {}
    request.each { |name, value| headers[name] = value }
    answered = {}
    response.each { |name, value| answered[name.downcase] = value }
    sent = response.body
    sent = '' unless sent.is_a?(String)
    entry = { 'method' => request.request_method, 'target' => request.unparsed_uri, 'headers' => headers, 'body' => [body.to_s].pack('m0'),
              'status' => response.status, 'answered' => answered, 'answer' => [sent].pack('m0') }
    File.open(ENV['RECORD'], 'a') { |file| file.puts(JSON.generate(entry)) }
  end
end
"""

FROM_ENC = 'class from_enc ($word) { notify { "in ${environment}: ${word}, rack ${::rack}": } }\n'
# The site in words that a parser of 3.x knows.
SITE_38: dict[str, str | bytes] = {
    **SITE,
    "manifests/site.pp": """
node default { class { 'stage': root => $::stage_root } }
node /^(classified|reader|unknown)/ { notify { "here is ${environment}": } }
node /^failing/ {
  include nosuch
}
node /^tagged/ {
  file { $::stage_root: ensure => directory, tag => 'wanted' }
  file { "${::stage_root}/a": content => 'a', tag => 'wanted' }
  file { "${::stage_root}/b": content => 'b', tag => 'other' }
}
node /^breaking/ {
  file { $::stage_root: ensure => directory }
  if $::broken == 'yes' { fail('broken by a fact') }
  file { "${::stage_root}/kept": content => 'kept' }
}
node /^bytes/ {
  file { $::stage_root: ensure => directory }
  file { "${::stage_root}/latin": content => file('stage/latin') }
  file { "${::stage_root}/fact": content => "grüße ${::greeting}" }
  file { "${::stage_root}/binary": source => ['puppet:///modules/stage/none', 'puppet:///modules/stage/binary'] }
  file { "${::stage_root}/managed": ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, links => manage }
  file { "${::stage_root}/followed": ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, links => follow }
  file { "${::stage_root}/ignored":
    ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, ignore => ['*.bak'], purge => true, force => true,
  }
  @file { "${::stage_root}/virtual": content => 'not me' }
  @file { "${::stage_root}/realized": content => 'me' }
  realize File["${::stage_root}/realized"]
}
node /^backing/ {
  filebucket { 'main': server => 'localhost', port => $::master_port, path => false }
  file { $::stage_root: ensure => directory }
  file { "${::stage_root}/a": content => "new\n", backup => 'main' }
}
""",
    "modules/stage/manifests/init.pp": SITE["modules/stage/manifests/init.pp"]
    .replace("String[1] ", "")
    .replace("epp('stage/facts.epp', { ruby => $facts['from_ruby'] })", "template('stage/facts.erb')")
    .replace("${trusted['certname']}", "${::clientcert}"),
    "modules/stage/templates/facts.erb": "<%= @kernel %> says hello\n",
    "modules/stage/files/binary": bytes(range(256)),
    "modules/stage/files/latin": "ümläut\n".encode("latin-1"),
    "modules/stage/files/linked/real": "real\n",
    "modules/stage/files/linked/old.bak": "old\n",
    "modules/from_enc/manifests/init.pp": FROM_ENC,
    "../testing/modules/from_enc/manifests/init.pp": FROM_ENC,
    "../testing/manifests/site.pp": 'notify { "here is ${environment}": }\n',
    "../testing/modules/from_enc/facts.d/only_testing.txt": "only_testing=yes\n",
}
ENC = """#!/bin/sh
case "$1" in
  classified*) echo "{environment: testing, classes: {from_enc: {word: hello}}, parameters: {rack: r7}}";;
  unknown*) echo "no such node $1" >&2; exit 1;;
  *) echo "{}";;
esac
"""


@dataclass(slots=True)
class Puppetmaster(RubyMaster):
    """`puppet master` 3.8.5 below `root`; `settings` are its options."""

    release: Release = PUPPET_3

    @property
    def environ(self) -> dict[str, str]:
        return clean_environment(HOME=str(self.root), RUBYOPT=f"-r{self.root}/recorder.rb", RECORD=str(self.root / "record"))

    @property
    def recorded(self) -> list[dict[str, Any]]:
        """Every exchange so far, oldest first; bodies in base64."""
        path = self.root / "record"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def with_site(self) -> Puppetmaster:
        """The site above, a program that classifies, and one that signs all but `manual*`."""
        self.write(SITE_38)
        (self.site / "modules/stage/files/linked/link").symlink_to("real")
        for name, text in (("autosign", AUTOSIGN), ("node_enc", ENC)):
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        self.settings |= {"autosign": str(self.root / "autosign"), "node_terminus": "exec", "external_nodes": str(self.root / "node_enc")}
        return self

    def agent(self, root: Path, name: str, facts: Mapping[str, str] | None = None) -> OurAgent:
        """Our agent of this master; `name` without its domain."""
        root = root / name
        root.mkdir()
        given = {"stage_root": str(root / "stage"), **(facts or {})}
        return OurAgent(root, self.port, f"{name}.example.com", facts=given)

    def its_agent(self, root: Path, name: str, facts: Mapping[str, str] | None = None) -> OtherAgent:
        """The agent that belongs to it, 3.8.5 too."""
        root = root / name
        root.mkdir()
        given = {"stage_root": str(root / "stage"), **(facts or {})}
        return OtherAgent(root, self.port, f"{name}.example.com", given, PUPPET_3)


@contextmanager
def puppetmaster(root: Path, **settings: str) -> Iterator[Puppetmaster]:
    """A puppetmaster below `root`, which `start()` starts; it is ended whatever happens."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "recorder.rb").write_text(RECORDER)
    with reserved_port() as port:
        process = Puppetmaster(root, settings, port=port)
        try:
            yield process
        finally:
            process.stop()
