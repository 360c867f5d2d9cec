"""The site that real peers are tried with, agents of it, and the master that tests share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from shared.data import plainyaml
from tests.support.processes import MasterProcess, RealAgent

SITE = {
    "manifests/site.pp": """
        node default {
          class { 'stage': root => $facts['stage_root'] }
        }
    """,
    "modules/stage/manifests/init.pp": """
        class stage (String[1] $root) {
          file { $root: ensure => directory }
          file { "${root}/plain":
            source => 'puppet:///modules/stage/plain.txt',
            mode   => '0640',
          }
          file { "${root}/tree":
            ensure  => directory,
            source  => 'puppet:///modules/stage/tree',
            recurse => true,
            purge   => true,
          }
          file { "${root}/facts":
            content => epp('stage/facts.epp', { ruby => $facts['from_ruby'] }),
            notify  => Exec["/bin/sh -c 'date > ${root}/refreshed'"],
          }
          exec { "/bin/sh -c 'date > ${root}/refreshed'": refreshonly => true }
          notify { "certname ${trusted['certname']}": noop => true }
        }
    """,
    "modules/stage/files/plain.txt": "plain text\n",
    "modules/stage/files/tree/a": "a\n",
    "modules/stage/files/tree/deep/b": "b\n",
    "modules/stage/templates/facts.epp": "<%- | String $ruby | -%>\nruby says <%= $ruby %>\n",
    "modules/stage/lib/facter/from_ruby.rb": "Facter.add(:from_ruby) { setcode { 'hello' } }\n",
    "modules/stage/facts.d/external.txt": "external_fact=yes\n",
}

TESTING = "../testing/"
ENC = """#!/bin/sh
case "$1" in
  web1.*) cat <<END
environment: testing
classes:
  from_enc: {word: hello}
parameters: {rack: r7}
END
  ;;
  web2.*) echo '{classes: [from_enc], parameters: {rack: r8}}';;
  *) echo "no such node $1" >&2; exit 1;;
esac
"""
FROM_ENC = """
class from_enc (String $word = 'nothing') {
  notify { "in ${server_facts['environment']}: ${word}, rack ${rack}": }
}
"""
CLASSIFIED = {
    **{f"{place}modules/from_enc/manifests/init.pp": FROM_ENC for place in ("", TESTING)},
    **{f"{place}manifests/site.pp": "notice('compiled')\n" for place in ("", TESTING)},
    f"{TESTING}modules/from_enc/lib/facter/only_testing.rb": "Facter.add(:only_testing) { setcode { 'yes' } }\n",
}


class Master(Protocol):
    """A master below a folder."""

    root: Path


@dataclass(kw_only=True)
class Shared:
    """
    A running master that the tests of a worker share, as one test has it: with an environment and names of nodes of its own.

    `folder` is where the test's agents live; `logged_before` how much of the log is not the test's.
    """

    environment: str
    folder: Path
    logged_before: int

    @property
    def site(self) -> Path:
        """The test's environment."""
        return super().site.with_name(self.environment)

    @property
    def testing(self) -> str:
        """The name of the test's second environment."""
        return f"{self.environment}_testing"

    @property
    def log(self) -> str:
        """What was logged since the test began."""
        return super().log[self.logged_before :]

    def named(self, name: str) -> str:
        """Return the certname that a host such as `web1.example.com` has in this test."""
        return name.replace(".example.com", f".{self.environment}.example.com")

    def stop(self) -> int:
        raise AssertionError("other tests need this master, too")

    kill = stop


@dataclass
class SharedMaster(Shared, MasterProcess):
    """Our master."""


def own_name(running: Master, name: str) -> str:
    """Return the certname of a host beside this master."""
    return running.named(name) if isinstance(running, Shared) else name


def own_folder(running: Master, name: str) -> Path:
    """Make the folder of an agent beside a master, whose own environment a configuration file names."""
    if not isinstance(running, Shared):
        root = running.root.parent / name
        root.mkdir()
        return root
    root = running.folder / name
    for part in ("confdir", f"environments/{running.environment}"):  # some tools insist that it is here, too
        (root / part).mkdir(parents=True)
    (root / "confdir/puppet.conf").write_text(f"[main]\nenvironment = {running.environment}\nenvironmentpath = {root}/environments\n")
    return root


class AgentOf(Protocol):
    """Makes an agent beside a master, with folders of its own: below `folder`, or one with its name."""

    def __call__(self, running: MasterProcess, name: str = "web1.example.com", folder: str = "") -> RealAgent: ...


def agent_of(running: MasterProcess, name: str = "web1.example.com", folder: str = "") -> RealAgent:
    """An agent of this machine's Puppet beside a master."""
    root = own_folder(running, folder or name)
    return RealAgent(root, running.port, own_name(running, name), {"stage_root": str(root / "stage")})


def stage_of(agent: RealAgent) -> Path:
    """Where the site puts its files on this agent."""
    return agent.root / "stage"


def reports_of(running: MasterProcess, name: str = "web1.example.com") -> list[dict[str, Any]]:
    """The stored reports, oldest first."""
    paths = sorted((running.reports / own_name(running, name)).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return [plainyaml.loads(path.read_bytes(), aliases=True) for path in paths]
