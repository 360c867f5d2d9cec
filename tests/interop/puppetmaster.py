"""The real puppetmaster 3.8.5 (WEBrick) with a site of its own, and the agents that speak to it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.peers import PUPPET_3, OtherAgent
from tests.interop.puppetserver import AUTOSIGN
from tests.interop.stage import SITE
from tests.processes import Done, OurAgent, clean_environment, free_port, run

START = 120.0  # seconds for a puppetmaster to listen
ENVIRONMENTS = "conf/environments"

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
class Puppetmaster:
    """`puppet master` 3.8.5 below `root`; `settings` are its options."""

    root: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> list[str]:
        """The options that put everything below `root`; for `puppet cert` too."""
        base = {
            "confdir": str(self.root / "conf"),
            "vardir": str(self.root / "var"),
            "rundir": str(self.root / "run"),
            "logdir": str(self.root / "log"),
            "ssldir": str(self.ssl),
            "environmentpath": str(self.root / ENVIRONMENTS),
            "certname": "localhost",
            "dns_alt_names": "localhost",
            "keylength": "2048",
            "user": "root",
            "group": "root",
            "autosign": "true",
            "color": "false",
            **self.settings,
        }
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    @property
    def ssl(self) -> Path:
        return self.root / "conf" / "ssl"

    @property
    def ca(self) -> Path:
        return self.ssl / "ca"

    @property
    def reports(self) -> Path:
        return self.root / "var" / "reports"

    @property
    def log(self) -> str:
        return (self.root / "master.log").read_text("utf-8", "replace")

    @property
    def recorded(self) -> list[dict[str, Any]]:
        """Every exchange so far, oldest first; bodies in base64."""
        path = self.root / "record"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Put files into the environment `production`, or by `../` into another."""
        for name, content in files.items():
            path = self.root / ENVIRONMENTS / "production" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def with_site(self) -> Puppetmaster:
        """The site above, a program that classifies, and one that signs all but `manual*`."""
        self.write(SITE_38)
        (self.root / ENVIRONMENTS / "production/modules/stage/files/linked/link").symlink_to("real")
        for name, text in (("autosign", AUTOSIGN), ("node_enc", ENC)):
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        self.settings |= {"autosign": str(self.root / "autosign"), "node_terminus": "exec", "external_nodes": str(self.root / "node_enc")}
        return self

    def start(self) -> Puppetmaster:
        self.write({})
        (self.root / ENVIRONMENTS / "production" / "manifests").mkdir(parents=True, exist_ok=True)
        (self.root / "recorder.rb").write_text(RECORDER)
        self.port = self.port or free_port()
        words = ["puppet", "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", str(self.port)]
        environ = clean_environment(HOME=str(self.root), RUBYOPT=f"-r{self.root}/recorder.rb", RECORD=str(self.root / "record"))
        with (self.root / "master.log").open("ab") as output:
            self._process = subprocess.Popen(
                PUPPET_3.command(self.root, *words, *self.options),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environ, cwd="/",
            )  # fmt: skip
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the puppetmaster ended with {self._process.returncode}:\n{self.log}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.2)
        self.kill()
        raise RuntimeError(f"the puppetmaster did not listen within {START} seconds:\n{self.log}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
                self._process = None
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def puppet(self, *words: str) -> Done:
        """`puppet …` of 3.8.5 with this master's settings."""
        return run(PUPPET_3.command(self.root, "puppet", *words, *self.options), clean_environment(HOME=str(self.root)))

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
    process = Puppetmaster(root, settings)
    try:
        yield process
    finally:
        process.stop()
