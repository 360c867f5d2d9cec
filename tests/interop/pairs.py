"""Pairs of an agent and a master of which at least one is another release's, so that one test says what all of them do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data import plainyaml
from tests.interop import stage
from tests.interop.peers import PUPPET_5, OtherAgent
from tests.interop.ruby_master import RubyMaster, ruby_master
from tests.interop.stage import SITE, Shared, SharedMaster
from tests.support.processes import Done, MasterProcess, OurAgent, RealAgent, master

NAME = "web1.example.com"


@dataclass
class SharedRubyMaster(Shared, RubyMaster):
    """The real one of 5.5."""


def part_of(master: MasterProcess | RubyMaster, folder: Path) -> SharedMaster | SharedRubyMaster:
    """Return what a test has of a shared master: the site in an environment of its own; the test's agents live in `folder`."""
    environment = f"t{len(list(master.site.parent.iterdir()))}"
    shared = SharedMaster if isinstance(master, MasterProcess) else SharedRubyMaster
    own = shared(master.root, master.settings, port=master.port, environment=environment, folder=folder, logged_before=len(master.log))
    own.write(SITE)
    return own


@dataclass(frozen=True, slots=True)
class Pair:
    """A master that runs, and agents for it."""

    master: MasterProcess | RubyMaster
    our_agent: bool

    @property
    def our_master(self) -> bool:
        return isinstance(self.master, MasterProcess)

    @property
    def name(self) -> str:
        """The certname of the agent that there is first of all."""
        return stage.own_name(self.master, NAME)

    def write(self, files: Mapping[str, str]) -> None:
        """Files of the environment `production`, or by `../` of another."""
        self.master.write(files)

    def agent(self, name: str = NAME, **facts: str) -> OurAgent | RealAgent:
        """An agent with folders of its own."""
        root, name = stage.own_folder(self.master, name), stage.own_name(self.master, name)
        given = {"stage_root": str(root / "stage"), **facts}
        if self.our_agent:
            return OurAgent(root, self.master.port, name, facts=given)
        return OtherAgent(root, self.master.port, name, given, PUPPET_5)

    def reports(self, name: str = NAME) -> list[dict[str, Any]]:
        """The stored reports, oldest first."""
        paths = sorted((self.master.reports / stage.own_name(self.master, name)).iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return [plainyaml.loads(path.read_bytes(), aliases=True) for path in paths]

    def cert(self, *words: str) -> Done:
        """`puppet cert …` where the CA is."""
        return self.master.puppet("cert", *words)


def stage_of(agent: OurAgent | RealAgent) -> Path:
    return Path(agent.facts["stage_root"])


def said(done: Done) -> str:
    """What was printed, without facter's complaints about the machine."""
    return "\n".join(line for line in done.text.splitlines() if "Facter" not in line)


@contextmanager
def pair(kind: str, root: Path, **settings: str) -> Iterator[Pair]:
    """
    A pair of that kind, with its master below `root`, which is started by whoever has written its site.

    Args:
        kind: whose agent and whose master, such as `5.5 with ours`; ours is the other one of the two.
    """
    agent, _, of_master = kind.partition(" with ")
    settings = {"autosign": "true", **settings}
    making = master(root, **settings) if of_master == "ours" else ruby_master(root, **settings)
    with making as running:
        yield Pair(running, agent == "ours")


def program(path: Path, text: str) -> str:
    """A script at that place; its path as a setting takes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def older(path: Path, seconds: float) -> None:
    """Let a file have been written earlier."""
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))
