"""A fake PuppetDB for tests: TLS servers that answer as the test says, and clients of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from httpd.tls.trust import TrustFiles
from master.puppetdb.client import PuppetDbClient
from master.puppetdb.commands import PATH
from master.puppetdb.configuration import PuppetDbConfiguration
from master.puppetdb.sessions import TlsSessions
from tests.support.codings import decode
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import turns

UUID = "93327094-7b41-4c22-935f-817b34141705"
TAKEN = Reply(body=b'{"uuid" : "%s"}' % UUID.encode(), headers={"Content-Type": "application/json"})
ROWS = Reply(body=b"[]")
ANSWERS = {
    "ok": TAKEN,
    "503": Reply(503, b"PuppetDB is currently down. Try again later."),
    "404": Reply(404, b"<html>no such page</html>"),
    "404 of it": Reply(404, b'{"error" : "No information is known about node n"}'),
    "400": Reply(400, b"Can't parse\r\nthat"),
    "silent": Reply(hang=True),
}


def _answer(behaviour: str, ask: Ask) -> Reply:
    return ANSWERS.get(behaviour, TAKEN)


def body_of(ask: Ask) -> Any:
    """The JSON of a request, unpacked."""
    return json.loads(decode(ask.body, ask.headers))


@dataclass
class FakePuppetDb:
    """A CA, and servers of a PuppetDB with its certificates, which are all called localhost."""

    root: Path
    ca: ThrowAwayCa = field(default_factory=ThrowAwayCa.new)
    servers: list[FakeMaster] = field(default_factory=list)

    def trust(self, name: str = "master.example.com") -> TrustFiles:
        """The files of a master with a certificate of this CA."""
        layout = self.ca.ssldir(self.root / name, name)
        return TrustFiles(layout.hostcert, layout.hostprivkey, layout.localcacert, layout.hostcrl)

    @asynccontextmanager
    async def serving(self, answers: Sequence[str | Callable[[Ask], Reply]]) -> AsyncIterator[list[str]]:
        """Run one server for each answer; `refused`: none listens. The URLs, in order."""
        context = self.ca.serving(self.root)
        async with AsyncExitStack() as stack:
            urls = []
            for answer in answers:
                server = FakeMaster(context, answer if callable(answer) else partial(_answer, answer))
                async with AsyncExitStack() as closing:
                    await closing.enter_async_context(server.running())
                    if answer != "refused":
                        stack.push_async_callback(closing.pop_all().aclose)
                urls.append(f"https://localhost:{server.port}")
                self.servers.append(server)
            yield urls
            await turns(20)  # connections that were cut are gone before the loop ends

    def client(self, urls: Sequence[str], *, max_answer: int = 1 << 20, keep_alive: bool = True, **options: Any) -> PuppetDbClient:
        """A client of the servers at `urls`; `options` as in puppetdb.conf."""
        configuration = PuppetDbConfiguration(server_urls=tuple(urls), **options)
        shown = configuration.verify_client_certificate
        sessions = TlsSessions(self.trust(), with_certificate=shown, keep_alive=keep_alive, connections=4)
        return PuppetDbClient(configuration, sessions, producer="master.example.com", max_answer=max_answer)

    @property
    def paths(self) -> list[list[str]]:
        """The paths that each server was asked for."""
        return [[ask.path for ask in server.asked] for server in self.servers]


@dataclass
class MemoryPuppetDb:
    """A PuppetDB in memory, as what a server answers: it keeps commands, and finds exported resources; any other query gives the nodes."""

    commands: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    queries: list[Any] = field(default_factory=list)
    broken: tuple[str, ...] = ()  # commands, or `query`, that are answered with 503

    def __call__(self, ask: Ask) -> Reply:
        if ask.path == PATH:
            name = parse_qs(ask.query)["command"][0]
            if name in self.broken:
                return ANSWERS["503"]
            self.commands.append((name, body_of(ask)))
            return TAKEN
        if ask.path.endswith("/facts"):
            return ANSWERS["404 of it"]
        query = json.loads(parse_qs(ask.query)["query"][0]) if ask.query else body_of(ask)["query"]
        self.queries.append(query)
        if "query" in self.broken:
            return ANSWERS["503"]
        return Reply(body=json.dumps(self._exported(query) if ask.query else self._nodes()).encode())

    def _nodes(self) -> list[dict[str, Any]]:
        return [{"certname": name} for name in sorted({body["certname"] for _, body in self.commands})]

    def _exported(self, query: list[Any]) -> list[dict[str, Any]]:
        catalogs = {body["certname"]: body for name, body in self.commands if name == "replace_catalog"}
        rows = [resource | {"certname": name} for name, catalog in sorted(catalogs.items()) for resource in catalog["resources"]]
        return [row for row in rows if _is_true(query, row)]


def _is_true(query: list[Any], resource: dict[str, Any]) -> bool:
    """Whether a query of a collector is true for an exported resource."""
    operator, *operands = query
    if operator in ("and", "or"):
        results = [_is_true(operand, resource) for operand in operands]
        return all(results) if operator == "and" else any(results)
    if operator == "not":
        return not _is_true(operands[0], resource)
    name, value = operands
    if name == "tag":
        return value in resource["tags"]
    actual = resource["parameters"].get(name[1]) if isinstance(name, list) else resource[name]
    return bool(actual == value)


@contextmanager
def in_a_thread(server: FakeMaster) -> Iterator[None]:
    """Run a server beside programs that the test waits for."""
    started, loop = threading.Event(), asyncio.new_event_loop()

    async def serve(ended: asyncio.Event) -> None:
        async with server.running():
            started.set()
            await ended.wait()
        await turns(20)  # connections that were cut are gone before the loop ends

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(ended),), daemon=True)
    thread.start()
    try:
        assert started.wait(20)
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
