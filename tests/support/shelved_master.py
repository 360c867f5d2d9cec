"""Fixtures: a master over TLS with shelves behind it, for the tests of its endpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from httpd.server import HttpServer
from master.endpoints.limits import MasterLimits
from shared.indirector.core import Binding, Indirector
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT, FileContent
from shared.models.node import NODE, Node
from shared.models.status import STATUS, Status
from shared.testing import Shelf, pieces
from tests.support.fakes import KnownEnvironments
from tests.support.raw_master import CaFolder, RunningMaster, master_server, running

SHELVES = {
    NODE: lambda: Shelf(Node(name="agent1", parameters={"role": "web"}, environment="production"), Node(name="agent2")),
    CATALOG: lambda: Shelf(Catalog(name="agent1", version=1, environment="production")),
    FACTS: lambda: Shelf(result="/var/facts/agent1.yaml"),
    STATUS: lambda: Shelf(Status(name="x")),
    FILE_CONTENT: lambda: Shelf(FileContent(name="modules/m/a.txt", size=6, chunks=lambda: pieces(b"abc", b"def"))),
    FILE_BUCKET_FILE: lambda: Shelf(),
}


def shelves() -> dict[str, Shelf[Any]]:
    return {indirection.name: make() for indirection, make in SHELVES.items()}


def server_of(ca: CaFolder, termini: dict[str, Shelf[Any]], **options: Any) -> HttpServer:
    """A server over shelves; `limits` and everything else as `master_server` takes it."""
    by_name = {indirection.name: indirection for indirection in SHELVES}
    bindings = [Binding(by_name[name], terminus) for name, terminus in termini.items()]
    defaults: dict[str, Any] = {"environments": KnownEnvironments(), "limits": MasterLimits(), "trust": ca.trust("puppet")}
    return master_server(indirector=Indirector(bindings), **(defaults | options))


@pytest.fixture
def serve(ca: CaFolder, termini: dict[str, Shelf[Any]]) -> Callable[..., AbstractAsyncContextManager[RunningMaster]]:
    """Starts a server over the shelves, with options as `master_server` takes them."""
    return lambda **options: running(server_of(ca, termini, **options), ca)


@pytest.fixture
def ca(tmp_path: Path) -> CaFolder:
    made = CaFolder(tmp_path / "ca")
    made.issue("puppet")
    return made


@pytest.fixture
def termini() -> dict[str, Shelf[Any]]:
    return shelves()


@pytest.fixture
async def master(ca: CaFolder, termini: dict[str, Shelf[Any]]) -> AsyncIterator[RunningMaster]:
    async with running(server_of(ca, termini), ca) as started:
        yield started
