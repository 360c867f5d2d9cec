"""`puppet db`: archives leave a server and enter one, and a server says how it is."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from bunraku.stores.access import StoreClient, StoreServers
from bunraku.stores.archives import Importer
from httpd.tls.trust import TrustFiles
from shared.errors import PeerUnreachable
from store.archive.reading import ArchiveReader
from store.commands.submission import Submission
from tests.support.command_line import Puppet, Said
from tests.support.fake_server import Ask, FakeMaster, Reply

NODE = {"certname": "web1.example.com", "deactivated": None, "expires_facts": True, "expires_facts_updated": None}
FACTSET = {
    "certname": "web1.example.com",
    "environment": "production",
    "producer": None,
    "producer_timestamp": "2025-11-10T08:00:00.000Z",
    "facts": {"href": "", "data": [{"name": "big", "value": 9007199254740993}]},
}
STATUS = {"service_version": "7.12.1", "state": "running", "status": {"queue_depth": 3, "write_db_up?": True}}


class PuppetDb:
    """A server that holds the facts of a node, and takes commands unless a test says otherwise."""

    def __init__(self) -> None:
        self.refusals: list[Reply] = []
        self.server = FakeMaster(None, self.answer)

    def answer(self, ask: Ask) -> Reply:
        if ask.method == "POST":
            return self.refusals.pop(0) if self.refusals else Reply(body=b'{"uuid": "x"}')
        if ask.path == "/status/v1/services/puppetdb-status":
            return Reply(body=json.dumps(STATUS).encode())
        rows = {"nodes": [NODE], "factsets": [FACTSET]}.get(ask.path.rpartition("/")[2], [])
        return Reply(body=json.dumps(rows).encode())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def commands(self) -> list[tuple[str, str, bytes]]:
        """Return the command, the certname and the payload of each request that submitted one."""
        submitted = [(parse_qs(ask.query), gzip.decompress(ask.body)) for ask in self.server.asked if ask.method == "POST"]
        return [(parameters["command"][0], parameters["certname"][0], payload) for parameters, payload in submitted]


async def run(puppet: Puppet, database: PuppetDb, *words: str) -> Said:
    async with database.server.running():
        return await asyncio.to_thread(puppet, "db", *words, "--url", database.url)


async def exported(puppet: Puppet, path: Path) -> Path:
    assert (await run(puppet, PuppetDb(), "export", str(path))).code == 0
    return path


async def test_an_export_is_an_archive_that_only_its_owner_reads(puppet: Puppet, tmp_path: Path) -> None:
    path = await exported(puppet, tmp_path / "all.tgz")
    (submission,) = ArchiveReader(lambda name, reason: None).feed(path.read_bytes())
    assert (submission.command, submission.certname) == ("replace facts", "web1.example.com")
    assert b"9007199254740993" in submission.payload
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(found.name for found in tmp_path.glob("*all.tgz*")) == ["all.tgz"]


async def test_an_export_replaces_no_file(puppet: Puppet, tmp_path: Path) -> None:
    path = tmp_path / "all.tgz"
    path.write_text("precious")
    said = await run(puppet, PuppetDb(), "export", str(path))
    assert said.code == 1 and "exists already" in said.err and path.read_text() == "precious"


async def test_an_export_that_fails_leaves_no_file(puppet: Puppet, tmp_path: Path) -> None:
    database = PuppetDb()
    database.server.answer = lambda ask: database.answer(ask) if "nodes" in ask.path else Reply(500, b"broken")
    said = await run(puppet, database, "export", str(tmp_path / "all.tgz"))
    assert said.code == 1 and "broken" in said.err and list(tmp_path.glob("*all.tgz*")) == []


async def test_an_import_submits_what_was_exported(puppet: Puppet, tmp_path: Path) -> None:
    database = PuppetDb()
    said = await run(puppet, database, "import", str(await exported(puppet, tmp_path / "all.tgz")))
    assert (said.code, said.err) == (0, "Submitted 1 commands\n")
    ((command, certname, payload),) = database.commands()
    assert (command, certname, json.loads(payload)["values"]) == ("replace_facts", "web1.example.com", {"big": 9007199254740993})


async def test_commands_that_are_refused_are_listed(puppet: Puppet, tmp_path: Path) -> None:
    database = PuppetDb()
    database.refusals = [Reply(400, b'{"error": "Version 3 is retired."}')]
    said = await run(puppet, database, "import", str(await exported(puppet, tmp_path / "all.tgz")))
    assert said.code == 1 and "replace facts of web1.example.com" in said.err and "retired" in said.err


async def test_PDB_10_each_file_that_is_not_imported_is_printed_and_the_exit_code_is_1(puppet: Puppet, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tgz", "w:gz") as tar:
        metadata = b'{"command_versions": {"replace facts": 5}}'
        files = {"export-metadata.json": metadata, **{f"facts/n{number}.json": b"" for number in range(30)}}
        for name, content in files.items():
            info = tarfile.TarInfo(f"puppetdb-bak/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    database = PuppetDb()
    said = await run(puppet, database, "import", str(tmp_path / "all.tgz"))
    assert said.code == 1 and database.commands() == []
    *lines, last = said.err.splitlines()
    assert [line.partition(".json: ")[0] for line in lines] == [f"Error: Refused: puppetdb-bak/facts/n{number}" for number in range(30)]
    assert last == "Submitted 0 commands, and refused 30"


async def submit(refusals: list[Reply], sleep: Callable[[float], Awaitable[None]]) -> Importer:
    """Submit one command to a server that first answers otherwise."""
    database = PuppetDb()
    database.refusals = refusals
    none = Path("/nonexistent")
    async with database.server.running(), StoreClient(StoreServers([database.url], TrustFiles(none, none, none, none))) as client:
        importer = Importer(client, sleep)
        await importer.submit_all(iter([Submission("replace facts", 5, "web1.example.com", None, None, b"{}", "identity")]))
    return importer


async def test_a_server_that_is_busy_is_asked_again_ever_later() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    importer = await submit([Reply(503, b"full"), Reply(body=b"{}", cut=1), Reply(503, b"full")], sleep)
    assert (importer.submitted, waits) == (1, [1.0, 2.0, 4.0])


async def test_a_server_that_stays_busy_ends_the_import() -> None:
    async def sleep(seconds: float) -> None:
        assert seconds <= 30

    with pytest.raises(PeerUnreachable, match=r"closed the connection|did not answer"):
        await submit([Reply(503, b"full")] * 7 + [Reply(cut=0, headers={"Content-Length": "9"})], sleep)


WRONG = {
    "no store": (["--store", "none"], "There is no store with 'store = none'"),
    "another action": (["exprot", "x"], "has no 'exprot' action"),
    "no file": (["export"], "takes 1 argument"),
    "a file that is not there": (["import", "/nonexistent", "--url", "http://127.0.0.1:1"], "Could not read /nonexistent"),
}


@pytest.mark.parametrize("words, message", WRONG.values(), ids=WRONG)
def test_a_call_that_cannot_succeed_is_an_error(puppet: Puppet, words: list[str], message: str) -> None:
    said = puppet("db", *words)
    assert said.code == 1 and message in said.err


async def test_a_file_that_is_no_archive_is_an_error(puppet: Puppet, tmp_path: Path) -> None:
    (tmp_path / "all.tgz").write_text("no archive")
    database = PuppetDb()
    said = await run(puppet, database, "import", str(tmp_path / "all.tgz"))
    assert said.code == 1 and "not gzip data" in said.err and database.commands() == []


async def test_the_status_of_a_server(puppet: Puppet) -> None:
    said = await run(puppet, PuppetDb(), "status")
    lines = {line[:21].strip(): line[22:] for line in said.out.splitlines()}
    assert said.code == 0
    assert (
        lines.items()
        >= {"state": "running", "compatible with": "PuppetDB 7.12.1", "commands that wait": "3", "database is writable": "yes"}.items()
    )
    assert json.loads((await run(puppet, PuppetDb(), "status", "--json")).out) == STATUS
