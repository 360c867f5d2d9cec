"""A master of recorded answers for our agent: fast, and it can lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.process.agent import Agent, RunOptions
from shared.data import plainjson
from shared.settings import AgentSettings, Conf, load
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa

NAME = "agent.test"
JSON = {"Content-Type": "application/json", "X-Puppet-Version": "7.23.0"}


def reply(data: Any, **headers: str) -> Reply:
    """`data` as a JSON answer."""
    return Reply(body=plainjson.dumps(data), headers={**JSON, **headers})


def catalog(*resources: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A catalog as a master sends it, with these resources in its main class."""
    main: list[dict[str, Any]] = [
        {"type": "Stage", "title": "main", "tags": ["stage"], "exported": False, "parameters": {"name": "main"}},
        {"type": "Class", "title": "main", "tags": ["class"], "exported": False, "parameters": {"name": "main"}},
    ]
    edges = [{"source": "Stage[main]", "target": "Class[main]"}]
    edges += [{"source": "Class[main]", "target": f"{each['type']}[{each['title']}]"} for each in resources]
    data = {
        "name": NAME,
        "version": 1,
        "environment": "production",
        "classes": [],
        "tags": [],
        "resources": [*main, *resources],
        "edges": edges,
    }
    return {**data, **changes}


def file(path: Path, content: str, **parameters: Any) -> dict[str, Any]:
    """A file resource."""
    given = {"ensure": "file", "content": content, **parameters}
    return {"type": "File", "title": str(path), "tags": ["file"], "exported": False, "parameters": given}


def root_entry(**changes: Any) -> dict[str, Any]:
    """The entry `.` of a search for metadata, or with changes another one."""
    entry = {
        "path": "/e/modules",
        "relative_path": ".",
        "links": "follow",
        "owner": 0,
        "group": 0,
        "mode": 493,
        "type": "directory",
        "destination": None,
        "checksum": {"type": "ctime", "value": "{ctime}2026-11-20 21:48:43 +0000"},
    }
    return {**entry, **changes}


@dataclass
class Scripted:
    """An agent that has its certificate, and the master it talks to. `answers`: by a part of the target, the first that fits."""

    root: Path
    answers: dict[str, Callable[[Ask], Reply] | Reply] = field(default_factory=dict)
    ca: ThrowAwayCa = field(default_factory=ThrowAwayCa.new)
    certified: bool = True

    def __post_init__(self) -> None:
        self.master = FakeMaster(self.ca.serving(self.root), self._answer)
        self.agent_root = self.root / "agent"
        if self.certified:
            self.ca.ssldir(self.agent_root / "ssl", NAME)

    def _answer(self, ask: Ask) -> Reply:
        for part, answer in (*self.answers.items(), *DEFAULTS.items()):
            if part in ask.target:
                return answer if isinstance(answer, Reply) else answer(ask)
        return Reply(404, b"not scripted")

    def settings(self, **more: Any) -> AgentSettings:
        flags = {
            "confdir": str(self.agent_root),
            "vardir": str(self.agent_root / "var"),
            "logdir": str(self.agent_root / "log"),
            "rundir": str(self.agent_root / "run"),
            "server": "localhost",
            "masterport": self.master.port,
            "certname": NAME,
            "key_type": "ec",
            "onetime": True,
            "detailed_exitcodes": True,
            "scheme": "b",
            "crl_refresh_interval": 0,
            "ca_refresh_interval": 0,
            "verbose": True,
            **more,
        }
        return load(AgentSettings, section="agent", flags=flags, conf=Conf())

    def agent(self, **more: Any) -> Agent:
        """An agent for one run; the master is listening by now."""
        return Agent(self.settings(**more), RunOptions(), tell=lambda text: None)

    async def run(self, **more: Any) -> int:
        """One run, the master listening meanwhile; the exit code."""
        async with self.master.running():
            return await self.agent(**more).run_once()

    @property
    def state(self) -> Path:
        return self.agent_root / "var" / "state"

    @property
    def public(self) -> Path:
        return self.agent_root / "var" / "public"

    @property
    def cached(self) -> Path:
        return self.agent_root / "var" / "client_data" / "catalog" / f"{NAME}.json"

    def asked(self) -> list[str]:
        """`METHOD path` of all requests so far."""
        return [f"{ask.method} {ask.path}" for ask in self.master.asked]


DEFAULTS: dict[str, Callable[[Ask], Reply] | Reply] = {
    "/node/": reply({"name": NAME, "environment": "production", "parameters": {}}),
    "/file_metadatas/": reply([root_entry()]),
    "/catalog/": reply(catalog()),
    "/report/": reply(["store"]),
}
