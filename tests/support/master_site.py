"""Fixtures: a master over TLS with shelves behind it, to be attacked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from master.endpoints.limits import MasterLimits
from shared.indirector.core import Binding, Indirector
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT, FileContent
from shared.models.node import NODE, Node
from shared.models.report import REPORT
from shared.testing import Shelf, pieces
from tests.support.fakes import KnownEnvironments
from tests.support.raw_master import CaFolder, RawClient, RunningMaster, master_server, running


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """TLS is where the two loops differ: its rows run on both."""
    both = item.path.name == "test_tls_rows.py"
    return {"asyncio": asyncio.new_event_loop} | ({"uvloop": uvloop.new_event_loop} if both else {})


async def still_alive(master: RunningMaster) -> None:
    """The master answers strangers and agents on new connections."""
    fresh = await master.client("agent1")
    assert (await fresh.ask("GET", "/status/v1/simple")).text == "running"
    assert (await fresh.ask("GET", "/puppet/v3/node/agent1?environment=production")).status == 200


Start = Callable[..., AbstractAsyncContextManager[RunningMaster]]


class Shelves(dict[str, Shelf[Any]]):
    """The termini by indirection; `asked` is everything that reached one of them."""

    @property
    def asked(self) -> list[tuple[str, str, str]]:
        return [(name, *question) for name, shelf in self.items() for question in shelf.asked]


@pytest.fixture
def ca(tmp_path: Path) -> CaFolder:
    made = CaFolder(tmp_path / "ca")
    for name in ("puppet", "agent1", "agent2"):
        made.issue(name)
    return made


@pytest.fixture
def shelves() -> Shelves:
    return Shelves(
        node=Shelf(Node(name="agent1"), Node(name="agent2", parameters={"secret": "canary"})),
        catalog=Shelf(Catalog(name="agent1"), Catalog(name="agent2", classes=["canary"])),
        facts=Shelf(result="ok"),
        report=Shelf(result=["store"]),
        file_content=Shelf(FileContent(name="modules/m/a", size=3, chunks=lambda: pieces(b"abc"))),
        file_bucket_file=Shelf(result=None),
    )


@pytest.fixture
def start(ca: CaFolder, shelves: Shelves) -> Start:
    """Starts a server: `limits` as a dict, everything else as `master_server` takes it."""
    known = {each.name: each for each in (NODE, CATALOG, FACTS, REPORT, FILE_CONTENT, FILE_BUCKET_FILE)}

    def start(limits: dict[str, Any] | None = None, **options: Any) -> AbstractAsyncContextManager[RunningMaster]:
        bindings = [Binding(known[name], shelf) for name, shelf in shelves.items()]
        defaults: dict[str, Any] = {"environments": KnownEnvironments(["production", "secret"]), "trust": ca.trust("puppet")}
        return running(master_server(indirector=Indirector(bindings), limits=MasterLimits(**(limits or {})), **(defaults | options)), ca)

    return start


@pytest.fixture
async def master(start: Start) -> AsyncIterator[RunningMaster]:
    async with start() as started:
        yield started


@pytest.fixture
async def agent1(master: RunningMaster) -> RawClient:
    return await master.client("agent1")


@pytest.fixture
async def stranger(master: RunningMaster) -> RawClient:
    return await master.client()
