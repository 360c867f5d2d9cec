"""The filebucket: the same from files and from the masters' database, and what waits while that is away."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from master.bindings import bucket_factories
from master.termini.bucket import BucketFiles
from master.termini.database_bucket import DatabaseBucket
from master.termini.state import StateTermini
from shared.errors import BadRequest, Conflict, Denied, NotFound, OutOfSpace, TooLarge, Unavailable
from shared.filesystem.bucket import ENTRY_OVERHEAD
from shared.indirector import Binding
from shared.models.file_bucket_file import FILE_BUCKET_FILE, FileBucketFile
from shared.settings import MasterSettings, load
from shared.state.database import LIMITS, StateAway, StateDatabase
from shared.state.masters import SharedState
from shared.state.tables import bucket_files
from tests.support.postgresql import PostgresqlServer

LARGE = 3_000_000


@pytest.fixture(params=["files", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> MasterSettings:
    """The settings of a master with a small bucket, in files or in PostgreSQL."""
    place = "files" if request.param == "files" else request.getfixturevalue("state_url")
    limits = {"max_bucket_body": "4000000", "bucket_quota": str(2 * LARGE)}
    return load(MasterSettings, section="master", flags={"confdir": str(tmp_path), "vardir": str(tmp_path), "state": place, **limits})


@pytest.fixture
async def bucket(settings: MasterSettings) -> AsyncIterator[Binding[FileBucketFile]]:
    state = SharedState.at(settings.state)
    yield Binding(FILE_BUCKET_FILE, bucket_factories(settings, StateTermini(settings, state))[settings.place_of_state("file")]())
    if state is not None:
        await state.database.close()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def key_of(content: bytes, path: str = "") -> str:
    return f"sha256/{sha256(content)}" + (f"/{path}" if path else "")


async def put(bucket: Binding[FileBucketFile], content: bytes, path: str = "", key: str = "") -> None:
    async def blocks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 700_000):
            yield content[start : start + 700_000]

    name = key or key_of(content, path)
    await bucket.save(FileBucketFile(name=name, size=len(content), chunks=blocks))


async def get(bucket: Binding[FileBucketFile], key: str, **options: Any) -> bytes | None:
    found = await bucket.find(key, **options)
    return None if found is None else b"".join([block async for block in found.chunks()])


@pytest.mark.parametrize("content", [b"", b"x", b"0123456789" * (LARGE // 10)], ids=["empty", "one byte", "several chunks"])
async def test_a_content_is_found_as_it_came(bucket: Binding[FileBucketFile], content: bytes) -> None:
    assert await get(bucket, key_of(content)) is None and not await bucket.head(key_of(content))
    await put(bucket, content, "etc/hosts")
    assert await get(bucket, key_of(content)) == content
    assert await bucket.head(key_of(content)) and await bucket.head(key_of(content, "etc/hosts"))
    assert not await bucket.head(key_of(content, "etc/other"))


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_silent_database_holds_up_no_request(
    bucket: Binding[FileBucketFile], postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(bucket, b"old")
    monkeypatch.setattr("master.termini.database_bucket.PATIENCE", 0.02)
    with postgresql.frozen():
        await put(bucket, b"new")
        assert await get(bucket, key_of(b"new")) == b"new"
        assert not await bucket.head(key_of(b"old"))
        with pytest.raises(StateAway, match="is away"):
            await get(bucket, key_of(b"old"))
    monkeypatch.undo()
    assert await get(bucket, key_of(b"old")) == b"old"


async def test_a_content_is_stored_once_under_all_its_paths(bucket: Binding[FileBucketFile]) -> None:
    for path in ("b", "a", "b", "x" * 4000, "\udcff"):
        await put(bucket, b"content", path)
    stored: BucketFiles = bucket.terminus  # type: ignore[assignment]
    assert await asyncio.to_thread(stored.bucket.paths, sha256(b"content")) == ["b", "a", "x" * 4000, "\udcff"]


async def test_agents_of_3x_store_by_md5(bucket: Binding[FileBucketFile]) -> None:
    key = f"md5/{hashlib.md5(b'old').hexdigest()}"
    await put(bucket, b"old", key=key)
    assert await get(bucket, key) == b"old" and await get(bucket, key_of(b"old")) is None


async def test_what_does_not_match_its_checksum_is_refused(bucket: Binding[FileBucketFile]) -> None:
    with pytest.raises(BadRequest, match="does not match its checksum"):
        await put(bucket, b"changed", key=key_of(b"sent"))
    assert not await bucket.head(key_of(b"changed"))


async def test_what_is_too_large_is_refused(bucket: Binding[FileBucketFile]) -> None:
    content = b"x" * 4_000_001
    with pytest.raises(TooLarge):
        await put(bucket, content)
    assert not await bucket.head(key_of(content))


async def test_what_goes_over_the_quota_is_refused_and_the_rest_stays(bucket: Binding[FileBucketFile]) -> None:
    first, second = b"a" * LARGE, b"b" * LARGE
    await put(bucket, first)
    with pytest.raises(OutOfSpace, match="quota of 6000000 bytes"):
        await put(bucket, second)
    assert await get(bucket, key_of(first)) == first and not await bucket.head(key_of(second))
    await put(bucket, b"small")
    await put(bucket, first)  # again: it takes no more


async def test_two_contents_are_compared(bucket: Binding[FileBucketFile]) -> None:
    for content in (b"same\nold\n", b"same\nnew\n"):
        await put(bucket, content)
    text = await get(bucket, key_of(b"same\nold\n"), diff_with=sha256(b"same\nnew\n"))
    assert text is not None and b"-old\n+new\n" in text
    with pytest.raises(NotFound, match=sha256(b"none")):
        await get(bucket, key_of(b"same\nold\n"), diff_with=sha256(b"none"))


async def test_contents_are_not_listed(bucket: Binding[FileBucketFile]) -> None:
    with pytest.raises(Denied):
        await get(bucket, key_of(b"x"), list_all=True)


async def test_many_store_the_same_at_once(bucket: Binding[FileBucketFile]) -> None:
    await asyncio.gather(*(put(bucket, b"same", f"path{number}") for number in range(8)))
    stored: BucketFiles = bucket.terminus  # type: ignore[assignment]
    assert sorted(await asyncio.to_thread(stored.bucket.paths, sha256(b"same"))) == [f"path{number}" for number in range(8)]


# -- while PostgreSQL is away


@pytest.fixture
def database(state_url: str) -> Iterator[StateDatabase]:
    opened = StateDatabase.open(state_url)
    yield opened
    asyncio.run(opened.close())


def opened_at(root: Path, database: StateDatabase, **limits: Any) -> DatabaseBucket:
    return DatabaseBucket(root, database=database, **limits)


class Away(StateDatabase):
    """A database that is away."""

    def transact(self, work: Any, *, is_single: bool = False) -> Any:
        self._note_absence("it is stopped", 0)
        raise StateAway("it is stopped")


@pytest.fixture
def away(state_url: str) -> Away:
    return Away.open(state_url, LIMITS)  # type: ignore[return-value]


def test_contents_wait_for_the_database_and_are_served_meanwhile(tmp_path: Path, database: StateDatabase, away: Away) -> None:
    waiting = opened_at(tmp_path, away)
    value = waiting.add([b"content"], path="etc/hosts")
    assert waiting.has(value, "etc/hosts") and not waiting.has(sha256(b"other"))
    with waiting.open(value) as file:
        assert file.read() == b"content"
    again = opened_at(tmp_path, database)  # after a restart
    assert [entry.size for entry in again.waiting.values()] == [7]
    again.upload_pending()
    assert again.waiting == {} and list(tmp_path.iterdir()) == []
    assert again.paths(value) == ["etc/hosts"]
    with again.open(value) as file:
        assert file.read() == b"content"


@pytest.mark.parametrize("limits", [{"pending_entries": 2}, {"pending_bytes": 8}], ids=["in number", "in bytes"])
def test_only_so_many_contents_wait(tmp_path: Path, away: Away, limits: dict[str, int]) -> None:
    bucket = opened_at(tmp_path, away, **limits)
    for content in (b"one", b"two"):
        bucket.add([content])
    with pytest.raises(Unavailable, match="2 files of 6 bytes wait") as caught:
        bucket.add([b"three"])
    assert caught.value.retry_after == 30
    assert not bucket.has(sha256(b"three"))


def test_a_content_that_the_database_has_no_room_for_still_waits(
    tmp_path: Path, database: StateDatabase, away: Away, caplog: pytest.LogCaptureFixture
) -> None:
    opened_at(tmp_path, away).add([b"content"])
    full = opened_at(tmp_path, database, quota=ENTRY_OVERHEAD)
    full.upload_pending()
    assert list(full.waiting) == [sha256(b"content")] and "quota" in caplog.text
    with pytest.raises(OutOfSpace):
        full.add([b"new"])
    assert list(full.waiting) == [sha256(b"content")], "nobody was told that the new one is stored"


def test_another_content_with_the_checksum_of_a_stored_one_is_refused(tmp_path: Path, database: StateDatabase) -> None:
    bucket = opened_at(tmp_path, database)
    value = bucket.add([b"content"])
    with database._engine.begin() as connection:
        from shared.state.tables import bucket_chunks

        connection.execute(bucket_chunks.update().values(data=b"CONTENT"))
    with pytest.raises(Conflict, match="same checksum"):
        bucket.add([b"content"], value=value)


@pytest.mark.slow
def test_a_server_that_stops_in_the_middle_loses_nothing(tmp_path: Path, postgresql: PostgresqlServer, database: StateDatabase) -> None:
    bucket = opened_at(tmp_path, database)
    contents = [f"content {number}".encode() for number in range(20)]
    for number, content in enumerate(contents):
        if number == 7:
            postgresql.stop()
        if number == 14:
            postgresql.start()
        bucket.add([content])
    bucket.upload_pending()
    assert database.transact(lambda connection: set(connection.scalars(select(bucket_files.c.value)))) == set(map(sha256, contents))
