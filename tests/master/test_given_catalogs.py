"""Catalogs of given facts: what is compiled, what is trusted, what is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from master.catalogs.v4 import V4Catalogs
from master.catalogs.v4_request import CatalogRequest
from master.pools.compiled_catalog import CompiledCatalog
from master.pools.jobs import CompileJob, CompileLogEntry
from master.puppetdb.termini import PuppetDbCatalogs
from master.termini.node import Plain, WithFacts
from shared.errors import BadName, CompileError, NotFound, PuppetError
from shared.indirector import Binding
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.testing import Shelf
from shared.wire.packed_catalogs import PackedCatalog
from tests.support.fake_puppetdb import FakePuppetDb, body_of

NOW = datetime(2026, 11, 20, 1, 2, 3, 4, tzinfo=UTC)
SAID = (
    CompileLogEntry("debug", "fine", "", None, None, NOW),
    CompileLogEntry("notice", "told", "Scope(Class[main])", None, None, NOW),
    CompileLogEntry("warning", "odd (file: /a.pp, line: 3)", "", "/a.pp", 3, NOW),
)


class Master:
    """Given catalogs with fakes around them; `cached` keeps catalogs, `nodes` cached ones."""

    def __init__(self, *nodes: Node, cache: bool = True) -> None:
        self.jobs: list[CompileJob] = []
        self.facts: Shelf[Facts] = Shelf()
        self.nodes: Shelf[Node] = Shelf(Node(name="n", parameters={"stale": 1}))
        self.cached: Shelf[Catalog] = Shelf()
        self.fail: PuppetError | None = None
        facts = Binding(FACTS, self.facts)
        self.given = V4Catalogs(
            facts=facts,
            nodes=Binding(NODE, WithFacts(Shelf(*nodes) if nodes else Plain(), facts), cache=self.nodes),
            catalogs=Binding(CATALOG, Shelf(), cache=self.cached if cache else None),
            compile=self.compile,
            server_facts={"servername": "m"},
            environments=lambda name: name in ("production", "test"),
            code_id=self.code_id,
            version_for=lambda client, environment: "",
            now=lambda: NOW,
        )

    async def compile(self, job: CompileJob, heard: list[CompileLogEntry] | None = None) -> CompiledCatalog:
        self.jobs.append(job)
        if self.fail is not None:
            raise self.fail
        if heard is not None:
            heard.extend(SAID)
        stored = PackedCatalog.of({"certname": job.certname, "resources": [], "edges": []}).pack() if job.is_stored else b""
        return CompiledCatalog.of(
            b'{"name":"%s","environment":"%s","resources":[]}' % (job.certname.encode(), job.environment.encode()), stored
        )

    async def code_id(self, environment: str) -> str | None:
        return f"{environment}-1"

    async def ask(self, environment: str = "production", certname: str = "n", **wanted: Any) -> Any:
        return json.loads(await self.given.find(CatalogRequest(certname, environment, **wanted)))


async def test_a_catalog_is_compiled_of_the_facts_that_are_given_and_nothing_is_kept() -> None:
    master = Master(Node(name="n", classes=["web"], parameters={"rack": "r7"}))
    master.facts.instances["n"] = Facts(name="n", values={"role": "old"})
    answer = await master.ask(facts={"role": "new"}, trusted={"certname": "t"})
    assert answer == {"catalog": {"name": "n", "environment": "production", "resources": []}}
    assert master.jobs == [
        CompileJob(
            "n",
            "production",
            facts={"role": "new"},
            parameters={"role": "new", "rack": "r7"},
            classes={"web": None},
            trusted={"certname": "t"},
            server_facts={"servername": "m"},
            code_id="production-1",
            exported=True,
        )
    ]
    assert master.facts.instances["n"].values == {"role": "old"} and master.facts.asked == [] and master.cached.asked == []
    assert master.nodes.asked == []  # a node of these facts is nobody else's


async def test_without_facts_those_that_are_stored_are_used() -> None:
    master = Master()
    assert (await master.ask(), master.jobs[0].facts) == ({"catalog": master_catalog("n")}, {})
    master.facts.instances["n"] = Facts(name="n", values={"role": "stored"})
    await master.ask()
    assert (master.jobs[1].facts, master.jobs[1].parameters) == ({"role": "stored"}, {"role": "stored"})


def master_catalog(name: str) -> dict[str, Any]:
    return {"name": name, "environment": "production", "resources": []}


@pytest.mark.parametrize(
    ("wanted", "trusted"),
    [
        ({"facts": {}}, {}),
        ({"facts": {"trusted": {"a": 1}}}, {"a": 1}),
        ({"facts": {"trusted": {"a": 1}}, "trusted": {"b": 2}}, {"b": 2}),
        ({"facts": {"trusted": {"a": 1}}, "trusted": {}}, {}),
        ({"facts": {"trusted": "text"}}, {}),
        ({"trusted": {"b": 2}}, {"b": 2}),
        ({}, {}),
    ],
)
async def test_what_is_trusted_is_what_the_asker_says_and_never_what_a_node_stored(wanted: dict[str, Any], trusted: dict[str, Any]) -> None:
    master = Master()
    master.facts.instances["n"] = Facts(name="n", values={"trusted": {"forged": True}})
    await master.ask(**wanted)
    assert master.jobs[0].trusted == trusted
    assert "trusted" not in master.jobs[0].facts and "trusted" not in master.jobs[0].parameters


async def test_facts_are_saved_before_the_compile_and_make_the_cached_node_stale() -> None:
    master = Master()
    master.fail = CompileError("broken")
    with pytest.raises(CompileError, match="broken"):
        await master.ask(facts={"role": "new", "trusted": {}}, save_facts=True, save_catalog=True)
    assert master.facts.instances["n"] == Facts(name="n", values={"role": "new"}, timestamp=NOW.isoformat()).with_trusted({})
    expiration = master.nodes.instances["n"].expiration
    assert expiration is not None and expiration < datetime.now(UTC)
    assert master.cached.instances == {}


async def test_a_catalog_is_saved_in_the_cache_where_there_is_one() -> None:
    master = Master()
    await master.ask(save_catalog=True)
    assert list(master.cached.instances) == ["n"] and master.facts.instances == {}
    without = Master(cache=False)
    assert await without.ask(save_catalog=True) == {"catalog": master_catalog("n")}


async def test_the_classifiers_environment_wins_unless_the_asked_one_is_preferred() -> None:
    master = Master(Node(name="n", environment="test"))
    assert (await master.ask())["catalog"]["environment"] == "test"
    assert master.jobs[0].environment == "test" and master.jobs[0].code_id == "test-1"
    assert (await master.ask(prefer_environment=True))["catalog"]["environment"] == "production"
    assert master.jobs[1].environment == "production"


LINES = {
    "notice": {"level": "notice", "message": "told", "source": "Scope(Class[main])", "tags": ["notice"], "file": None, "line": None},
    "info": {
        "level": "info",
        "message": "Compiled catalog for n in environment production using the v4 catalog endpoint",
        "source": "Puppet",
        "tags": ["info"],
        "file": None,
        "line": None,
    },
    "debug": {"level": "debug", "message": "fine", "source": "Puppet", "tags": ["debug"], "file": None, "line": None},
    "warning": {
        "level": "warning",
        "message": "odd (file: /a.pp, line: 3)",
        "source": "Puppet",
        "tags": ["warning"],
        "file": "/a.pp",
        "line": 3,
    },
}


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        ("debug", ["debug", "notice", "warning", "info"]),
        ("info", ["notice", "warning", "info"]),
        ("warning", ["warning"]),
        ("err", []),
    ],
)
async def test_lines_of_the_log_come_with_the_catalog_from_a_level_up(level: str, lines: list[str]) -> None:
    answer = await Master().ask(log_level=level)
    stamp = {"time": "2026-11-20T01:02:03.000004000+00:00"}
    assert answer == {"catalog": master_catalog("n"), "logs": [LINES[each] | stamp for each in lines]}


@pytest.mark.parametrize(
    ("node", "wanted", "error", "message"),
    [
        (None, {"certname": "../x"}, BadName, "has an empty label"),
        (None, {"certname": ""}, BadName, "A certname may not be empty"),
        (None, {"environment": "nope"}, NotFound, "Could not find environment 'nope'"),
        (Node(name="n", environment="nope"), {}, NotFound, "Could not find environment 'nope'"),
        (Node(name="other"), {}, PuppetError, "Could not find node 'n'; cannot compile"),
    ],
)
async def test_what_cannot_be_compiled_is_said_and_nothing_is_saved(
    node: Node | None, wanted: dict[str, Any], error: type[PuppetError], message: str
) -> None:
    master = Master(*([node] if node else []))
    with pytest.raises(error, match=message):
        await master.ask(facts={"role": "x"}, save_facts=True, **wanted)
    assert master.facts.instances == {} and master.jobs == []


async def test_a_puppetdb_gets_a_catalog_only_when_it_is_to_be_saved(tmp_path: Path) -> None:
    puppetdb = FakePuppetDb(tmp_path)
    async with puppetdb.serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        master = Master()
        master.given.catalogs.cache = PuppetDbCatalogs(client)
        await master.ask()
        await master.ask(save_catalog=True, transaction_uuid="t", job_id="7")
        await client.close()
    assert [job.is_stored for job in master.jobs] == [False, True]
    (ask,) = puppetdb.servers[0].asked
    sent = body_of(ask)
    assert (sent["certname"], sent["transaction_uuid"], sent["job_id"]) == ("n", "t", "7")
