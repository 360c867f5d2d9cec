"""How a master takes many commands to its own store at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from master.puppetdb.commands import PuppetDbCommand
from master.puppetdb.own_store import OwnStoreClient, packed_batch
from master.puppetdb.sessions import UnixSessions
from shared.errors import PuppetError, Unavailable
from shared.wire.packed_catalogs import PackedCatalog
from store.commands.payloads import decode_payload
from store.commands.submission import Submission
from tests.store.endpoints.conftest import UUID, FakeReceipt, FakeStore
from tests.support.raw_master import RawClient

WHEN = datetime(2026, 11, 22, 12, 59, 0, 670_000, UTC)
BATCH = "/pdb/cmd/v1/batch"


def command(node: str, payload: bytes = b"{}") -> PuppetDbCommand:
    return PuppetDbCommand.create("replace facts", 5, node, payload, WHEN)


@pytest.fixture
async def own(store: FakeStore, client: RawClient, tmp_path: Path) -> AsyncIterator[OwnStoreClient]:
    made = OwnStoreClient(UnixSessions(tmp_path / "s", keep_alive=True, connections=4), producer="m", max_answer=1000, waiting=3)
    yield made
    await made.close()


def nodes(store: FakeStore) -> list[str]:
    return [submission.certname for submission in store.intake.submissions]


async def test_what_a_master_packs_is_what_a_store_reads(store: FakeStore, client: RawClient) -> None:
    payloads = [b'{"a": 1}', b"", b'["new\\nline"]\n']
    answer = await client.ask("POST", BATCH, packed_batch([command(f"n{index}", payload) for index, payload in enumerate(payloads)]))
    assert (answer.status, json.loads(answer.body)) == (200, {"uuids": [UUID] * 3})
    microseconds = int(WHEN.timestamp() * 1e6)
    assert store.intake.submissions == [
        Submission("replace facts", 5, f"n{index}", microseconds, None, payload, "identity") for index, payload in enumerate(payloads)
    ]


async def test_a_catalog_goes_to_the_store_as_it_is_packed(store: FakeStore, client: RawClient) -> None:
    packed = PackedCatalog.of({"certname": "n", "resources": [{"a": 1}], "edges": []})
    answer = await client.ask("POST", BATCH, packed_batch([PuppetDbCommand("replace catalog", 9, "n", packed, WHEN), command("n")]))
    assert answer.status == 200
    first, second = store.intake.submissions
    assert (first.command, first.coding, second.coding) == ("replace catalog", "packed", "identity")
    assert decode_payload(first.payload, first.coding, 1000) == b'{"certname":"n","resources":[{"a":1}],"edges":[]}'


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"", 200, ""),
        (b"nonsense", 400, "Byte 0 of the batch: there is no line"),
        (b"{}\n", 400, "Byte 0 of the batch: there is no line"),
        (b'["replace facts", 5, "n", "2026-01-01T00:00:00Z", -1]\n', 400, "Byte 0 of the batch: there is no line"),
        (b'["replace facts", 5, "n", "2026-01-01T00:00:00Z", 3]\n{}', 400, "Byte 53 of the batch: the payload has less than 3 bytes"),
        (b'["replace facts", 5, "n", "2026-01-01T00:00:00Z", 2, "packed"]\n{}', 400, "Byte 0 of the batch: there is no line"),
        (b'["replace catalog", 9, "n", "2026-01-01T00:00:00Z", 2, "gzip"]\n{}', 400, "Byte 0 of the batch: there is no line"),
        (b'["replace nothing", 5, "n", "2026-01-01T00:00:00Z", 2]\n{}', 400, "Command must be one of"),
        (b'["replace facts", 1, "n", "2026-01-01T00:00:00Z", 2]\n{}', 400, "is retired"),
        (b'["replace facts", 5, "", "2026-01-01T00:00:00Z", 2]\n{}', 400, "Certname must be a non-empty string"),
        (b'["replace facts", 5, "n", "2026-01-01T00:00:00Z", 2]\n{}' * 1001, 413, ""),
        (b" " * 20_000, 413, ""),
    ],
)
async def test_a_batch_that_is_none_is_refused_and_nothing_of_it_is_taken(
    store: FakeStore, client: RawClient, body: bytes, status: int, error: str
) -> None:
    answer = await client.ask("POST", BATCH, body)
    assert answer.status == status and error in answer.text
    assert store.intake.submissions == []


async def test_what_is_delivered_goes_there_together_and_in_its_order(store: FakeStore, own: OwnStoreClient) -> None:
    for name in "abc":
        await own.deliver(lambda name=name: command(name))  # type: ignore[misc]
    assert nodes(store) == []
    assert await own.submit(command("d")) == UUID  # who waits for an answer hurries the others
    assert nodes(store) == ["a", "b", "c", "d"]


async def test_what_is_delivered_goes_there_at_last_when_the_client_is_closed(store: FakeStore, own: OwnStoreClient) -> None:
    await own.deliver(lambda: command("a"))
    await own.close()
    assert nodes(store) == ["a"]


async def test_a_command_that_cannot_be_made_is_logged_and_holds_up_no_other(
    store: FakeStore, own: OwnStoreClient, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> PuppetDbCommand:
        raise PuppetError("no such facts")

    await own.deliver(broken)
    assert await own.submit(command("b")) == UUID and nodes(store) == ["b"]
    assert "no such facts" in caplog.text


async def test_commands_that_the_store_does_not_take_are_an_error_in_the_log(
    store: FakeStore, own: OwnStoreClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(submission: Submission) -> FakeReceipt:
        raise Unavailable("The queue of commands is full", retry_after=1)

    monkeypatch.setattr(store.intake, "submit", full)
    assert await own.submit(command("a")) is None
    assert (
        "The master's own store refuses a request: [503 Service Unavailable] " in caplog.text and "queue of commands is full" in caplog.text
    )
    assert "The master's own store could not answer" in caplog.text
    assert "server_url" not in caplog.text and "PuppetDB" not in caplog.text


@pytest.mark.slow
async def test_who_delivers_waits_when_too_much_waits(store: FakeStore, own: OwnStoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, take = asyncio.Event(), store.intake.submit

    async def slow(submission: Submission) -> FakeReceipt:
        await go_on.wait()
        return await take(submission)

    monkeypatch.setattr(store.intake, "submit", slow)
    for name in "abc":
        await own.deliver(lambda name=name: command(name))  # type: ignore[misc]
    fourth = asyncio.create_task(own.deliver(lambda: command("d")))
    done, _ = await asyncio.wait([fourth], timeout=0.5)
    assert not done
    go_on.set()
    await fourth
    await own.close()
    assert nodes(store) == ["a", "b", "c", "d"]
