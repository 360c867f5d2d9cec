"""Archives: what was stored comes back as the same commands, and what is no archive is refused."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.errors import BadData, TooLarge
from store.archive.payloads import Row
from store.archive.reading import ArchiveLimits, ArchiveReader, read_archive
from store.archive.writing import ArchiveQuestion, ArchiveWriter, archive_chunks
from store.commands.commands import Command, ReplaceCatalog, ReplaceFacts, StoreReport
from store.commands.payloads import parse_payload
from store.commands.submission import Submission

RECORDED = Path(__file__).parents[2] / "conformance/puppetdb"
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def recorded(group: str, case: str) -> Any:
    """Return the body of a recorded answer."""
    return next(found["answer"]["body"] for found in json.loads((RECORDED / f"{group}.json").read_text("utf-8")) if found["id"] == case)


def recorded_rows() -> dict[str, list[Row]]:
    """Return the recorded rows of three nodes by entity, as PuppetDB shows them."""
    nodes = [
        row for row in recorded("nodes", "nodes-017") if row["certname"] in ("old1.example.com", "web1.example.com", "web2.example.com")
    ]
    expiring = [{**row, "expires_facts": False, "expires_facts_updated": "2025-11-10T08:00:00.000Z"} for row in nodes[:1]]
    return {
        "nodes": [*expiring, *nodes[1:]],
        "factsets": recorded("factsets", "factsets-191"),
        "package_inventory": [row for row in recorded("packages", "packages-467") if row["certname"] == "web2.example.com"],
        "catalogs": [recorded("catalogs", "catalogs-310")],
        "catalog_inputs": recorded("catalog-inputs", "catalog-inputs-334"),
        "reports": recorded("reports", "reports-343"),
    }


class RecordedSource:
    """Answers the questions of an export from recorded rows; of reports it first shows the hashes, and then as many as are asked for."""

    def __init__(self, rows: dict[str, list[Row]]) -> None:
        self.rows = rows
        self.most = 0

    async def __call__(self, question: ArchiveQuestion) -> AsyncIterator[Row]:
        text = json.dumps(question.query)
        rows = [row for row in self.rows[question.entity] if question.entity == "nodes" or f'"{row["certname"]}"' in text]
        if question.entity == "reports" and '"extract"' not in text:
            rows = [row for row in rows if f'"{row["hash"]}"' in text]
            self.most = max(self.most, len(rows))
        for row in rows:
            yield row


async def archive_of(rows: dict[str, list[Row]]) -> bytes:
    return b"".join([chunk async for chunk in archive_chunks(RecordedSource(rows), ArchiveWriter(NOW))])


def submissions(archive: bytes, step: int = 1 << 20, limits: ArchiveLimits | None = None) -> list[Submission]:
    reader = ArchiveReader(refuse_none, limits)
    read = [submission for start in range(0, len(archive), step) for submission in reader.feed(archive[start : start + step])]
    reader.finish()
    return read


def refuse_none(name: str, reason: str) -> None:
    raise AssertionError(f"{name}: {reason}")


def facts_of(certname: str) -> bytes:
    return json.dumps({"certname": certname, "environment": None, "producer_timestamp": "2026-01-01T00:00:00Z", "values": {}}).encode()


def command_of(submission: Submission) -> Command:
    return parse_payload(submission.command, submission.version, submission.payload, 0)


def stored_command(kind: type[Command], certname: str, producer_timestamp: int) -> Any:
    """Return what the data set stored of a node at a time."""
    for case in json.loads((RECORDED / "dataset.json").read_text("utf-8")):
        command = parse_payload(case["command"], case["version"], json.dumps(case["payload"]).encode(), 0)
        if isinstance(command, kind) and command.certname == certname and command.producer_timestamp == producer_timestamp:
            return command
    raise AssertionError(f"the data set has no {kind} of {certname} at that time")


async def test_the_commands_of_an_archive_are_those_that_stored_the_data() -> None:
    commands = [command_of(submission) for submission in submissions(await archive_of(recorded_rows()))]
    kinds = (ReplaceFacts, ReplaceCatalog, StoreReport)
    found = [command for command in commands if isinstance(command, kinds)]
    assert [type(command) for command in found] == [ReplaceCatalog, StoreReport, StoreReport, StoreReport, ReplaceFacts]
    for command in found:
        stored = stored_command(type(command), command.certname, command.producer_timestamp)
        assert comparable(command) == comparable(stored)


def comparable(command: Any) -> dict[str, Any]:
    """Return the fields of a command without what PuppetDB does not keep: the order of lists, and corrective_change."""
    fields = {name: getattr(command, name) for name in command.__dataclass_fields__ if name not in ("corrective_change", "size")}
    for name in ("resources", "edges"):
        if name in fields:
            fields[name] = sorted(map(repr, fields[name]))
    if "events" in fields:
        fields["events"] = sorted(repr(event).replace("corrective_change=True", "corrective_change=None") for event in fields["events"])
        fields["events"] = [text.replace("corrective_change=False", "corrective_change=None") for text in fields["events"]]
    return fields


async def test_expirations_come_first_and_deactivations_last() -> None:
    read = submissions(await archive_of(recorded_rows()))
    assert [(found.command, found.certname) for found in (read[0], read[-1])] == [
        ("configure expiration", "old1.example.com"),
        ("deactivate node", "old1.example.com"),
    ]
    assert "replace catalog inputs" in {found.command for found in read}


async def test_an_archive_is_read_however_its_bytes_are_cut() -> None:
    archive = await archive_of(recorded_rows())
    whole = submissions(archive)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(archive), 97):
            yield archive[start : start + 97]

    assert submissions(archive, 1) == whole
    assert [submission async for submission in read_archive(chunks(), refuse_none)] == whole


async def test_an_archive_is_a_tar_file_to_others_too() -> None:
    with tarfile.open(fileobj=io.BytesIO(await archive_of(recorded_rows()))) as tar:
        names = tar.getnames()
    assert names[0] == "puppetdb-bak/export-metadata.json" and "puppetdb-bak/facts/web2.example.com.json" in names


async def test_of_many_reports_a_few_are_in_memory_at_a_time() -> None:
    rows = recorded_rows()
    report = rows["reports"][0]
    rows["reports"] = [{**report, "hash": f"{number:040x}"} for number in range(50)]
    source = RecordedSource(rows)
    archive = b"".join([chunk async for chunk in archive_chunks(source, ArchiveWriter(NOW))])
    assert len([found for found in submissions(archive) if found.command == "store report"]) == 50
    assert source.most == 20


METADATA = ("puppetdb-bak/export-metadata.json", b'{"command_versions": {"replace facts": 4, "store_report": 8}}')


def tgz(*files: tuple[str, bytes], change: Callable[[tarfile.TarInfo], None] | None = None, kind: int = tarfile.PAX_FORMAT) -> bytes:
    """Return an archive of files, made by Python's own library."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=kind) as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if change is not None:
                change(info)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "gnu"])
def test_long_names_are_read_in_both_forms_in_which_tar_writes_them(kind: int) -> None:
    certname = "a" * 180 + ".example.com"
    (found,) = submissions(tgz(METADATA, (f"puppetdb-bak/facts/{certname}.json", facts_of(certname)), kind=kind))
    assert (found.command, found.version, found.certname, found.payload) == ("replace facts", 4, certname, facts_of(certname))


REFUSED: dict[str, tuple[tuple[str, bytes], str]] = {
    "a folder of no command": (("puppetdb-bak/nodes/a.json", b"{}"), "not the name of a command's file"),
    "a path that leads out": (("../../etc/passwd", b"x"), "not the name of a command's file"),
    "a report without a time": (("puppetdb-bak/reports/undated.json", b"{}"), "not the name of a command's file"),
    "no JSON": (("puppetdb-bak/facts/a.json", b"{"), "not JSON"),
    "nothing": (("puppetdb-bak/facts/a.json", b""), "not JSON"),
    "UTF-16": (("puppetdb-bak/facts/a.json", facts_of("a").decode().encode("utf-16")), "not JSON"),
    "another node's facts": (
        ("puppetdb-bak/facts/a.json", facts_of("b")),
        "its name is that of a, but its content that of b",
    ),
    "facts without values": (("puppetdb-bak/facts/a.json", b'{"certname": "a"}'), "lacks the keys"),
    "a version of later times": ((f"puppetdb-bak/catalogs/a-{'0' * 40}.json", b"{}"), "Unsupported command replace catalog version 99"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_PDB_10_a_file_that_is_no_command_is_named_and_the_others_are_taken(what: str) -> None:
    metadata = (METADATA[0], b'{"command_versions": {"replace facts": 4, "store_report": 8, "replace_catalog": 99}}')
    file, reason = REFUSED[what]
    refused: list[tuple[str, str]] = []

    async def chunks() -> AsyncIterator[bytes]:
        yield tgz(metadata, ("puppetdb-bak/facts/x.json", facts_of("x")), file, ("puppetdb-bak/facts/y.json", facts_of("y")))

    read = read_archive(chunks(), lambda name, why: refused.append((name, why)))
    assert [submission.certname async for submission in read] == ["x", "y"]
    ((name, why),) = refused
    assert name == file[0] and reason in why


def link(info: tarfile.TarInfo) -> None:
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/shadow", 0


def archive_with_header(**changes: Any) -> bytes:
    info = tarfile.TarInfo("puppetdb-bak/facts/a.json")
    for name, value in changes.items():
        setattr(info, name, value)
    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT))


def damaged_name() -> bytes:
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.XHDTYPE, 13
    return info.tobuf() + b"99999 path=x\n".ljust(512, b"\0")


HOSTILE: dict[str, tuple[bytes, type[Exception], str]] = {
    "no gzip": (b"PK\x03\x04 is something else", BadData, "not gzip data"),
    "no tar": (gzip.compress(b"x" * 2000), BadData, "no tar file"),
    "a link": (tgz(METADATA, ("puppetdb-bak/facts/a.json", b""), change=link), BadData, "no file"),
    "no versions": (tgz(("puppetdb-bak/facts/a.json", b"{}")), BadData, "does not begin with"),
    "versions that are no object": (tgz((METADATA[0], b"[]")), BadData, "no command_versions"),
    "versions that are no JSON": (tgz((METADATA[0], b"{")), BadData, "not JSON"),
    "versions twice": (tgz(METADATA, METADATA), BadData, "export-metadata.json twice"),
    "a command without a version": (tgz(METADATA, (f"puppetdb-bak/catalogs/a-{'0' * 40}.json", b"{}")), BadData, "lacks the version of"),
    "a file that claims to be huge": (archive_with_header(size=2**40), TooLarge, "more than"),
    "a file of a negative size": (archive_with_header(size=-1), BadData, "negative"),
    "a name that claims to be huge": (archive_with_header(type=tarfile.XHDTYPE, size=2**33), TooLarge, "describes itself"),
    "a damaged name": (gzip.compress(damaged_name()), BadData, "damaged"),
    "more than the limit": (
        tgz(METADATA, *[(f"puppetdb-bak/facts/{number}.json", facts_of(f"{number}") + b" " * 2**19) for number in range(9)]),
        TooLarge,
        "holds more",
    ),
}


@pytest.mark.parametrize("archive, error, text", HOSTILE.values(), ids=HOSTILE)
def test_PDB_10_what_is_no_archive_is_refused(archive: bytes, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        submissions(archive, limits=ArchiveLimits(entry=2**20, total=2**22))


async def test_an_archive_that_is_cut_off_is_refused_after_what_is_whole() -> None:
    archive = await archive_of(recorded_rows())
    reader = ArchiveReader(refuse_none)
    assert list(reader.feed(archive[:-200]))
    with pytest.raises(BadData, match="cut off"):
        reader.finish()
