"""The actions of `puppet db` that ask a server: export, import, status."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_plus

from shared.clock import utc_now
from shared.data.plainjson import dumps_pretty
from shared.errors import BadData, PeerAnswered, PeerUnreachable, PuppetError
from shared.process.log import escape_controls
from store.archive.payloads import Row
from store.archive.reading import ArchiveReader
from store.archive.writing import ArchiveQuestion, ArchiveWriter, archive_chunks
from store.commands.submission import Submission
from store.jsontext import dump_json, load_json

from .access import StoreClient, StoreServers, read_rows
from .options import StoreFaceOptions

_CHUNK = 2**18
_AT_ONCE = 8  # commands that are under way at the same time
_FINAL = (400, 413)  # what a server answers to a command that it will never take
_BUSY = (429, 500, 502, 503, 504, 507)
_PATIENCE = 8  # times that a command is sent again to a server that is busy
_LONGEST_WAIT = 30.0  # seconds between two of them


# --- export


def export(options: StoreFaceOptions, servers: StoreServers) -> int:
    """
    Write an archive of all that a server holds.

    Raises:
        PuppetError: The file cannot be written, or the server does not answer; then there is no file.
    """
    (name,) = options.exactly(1)
    if name == "-":
        asyncio.run(write_archive(servers, sys.stdout.buffer))
        return 0
    path = Path(name)
    partial = path.with_name(f".{path.name}.part")
    try:
        # Facts and reports may hold what only administrators should read.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            try:
                commands = asyncio.run(write_archive(servers, file))
                file.flush()
                os.fsync(file.fileno())
                os.link(partial, path)
            finally:
                partial.unlink()
    except FileExistsError as err:
        raise PuppetError(f"{err.filename2 or err.filename} exists already", hint="Choose another name, or remove it.") from err
    except OSError as err:
        raise PuppetError(f"Could not write {path}: {err.strerror}") from err
    print(f"Exported {commands} commands to {path} ({path.stat().st_size} bytes)", file=sys.stderr)
    return 0


async def write_archive(servers: StoreServers, file: BinaryIO) -> int:
    """Write an archive of all that a server holds to a file; return the number of its commands."""
    writer = ArchiveWriter(utc_now())
    async with StoreClient(servers) as client:
        async for chunk in archive_chunks(lambda question: rows_of(client, question), writer):
            await asyncio.to_thread(file.write, chunk)
    return writer.commands


async def rows_of(client: StoreClient, question: ArchiveQuestion) -> AsyncIterator[Row]:
    """Yield a server's rows; raise BadData if the answer is not a list of objects."""
    parameters = {"query": dump_json(question.query).decode()}
    if question.order_by:
        parameters["order_by"] = dump_json([{"field": name} for name in question.order_by]).decode()
    for name, value in question.parameters.items():
        parameters[name] = dump_json(value).decode()
    body = await client.get(f"/pdb/query/v4/{question.entity.replace('_', '-')}", parameters)
    for row in await asyncio.to_thread(read_rows, body):
        if isinstance(row, dict):
            yield row


# --- import


def import_file(options: StoreFaceOptions, servers: StoreServers) -> int:
    """
    Submit the commands of an archive; return the exit code.

    Raises:
        PuppetError: The file cannot be read, or is no archive, or the server cannot be reached any more; the commands before are submitted.
    """
    (name,) = options.exactly(1)
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            return asyncio.run(submit_archive(servers, file))
    except OSError as err:
        raise PuppetError(f"Could not read {name}: {err.strerror}") from err


async def submit_archive(servers: StoreServers, file: BinaryIO) -> int:
    """Submit the commands of an archive; return the exit code. Each refused file is printed."""
    async with StoreClient(servers) as client:
        importer = Importer(client)
        reader = ArchiveReader(lambda name, reason: importer.refuse(f"{name}: {reason}"))
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            await importer.submit_all(reader.feed(chunk))
    reader.finish()
    refused = f", and refused {importer.refused}" if importer.refused else ""
    print(f"Submitted {importer.submitted} commands{refused}", file=sys.stderr)
    return 1 if importer.refused else 0


@dataclass(slots=True)
class Importer:
    """Submits commands, some at a time, and prints which of them were refused."""

    _client: StoreClient
    _sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    submitted: int = 0
    refused: int = 0

    async def submit_all(self, submissions: Iterator[Submission]) -> None:
        """Submit commands; return when the server has put them into its queue. Raise PuppetError when it cannot be reached any more."""
        while batch := list(islice(submissions, _AT_ONCE)):
            for refusal in await asyncio.gather(*(self._submit(submission) for submission in batch)):
                if refusal:
                    self.refuse(refusal)
                else:
                    self.submitted += 1

    def refuse(self, refusal: str) -> None:
        """Print a refused file, and the reason."""
        self.refused += 1
        print(f"Error: Refused: {escape_controls(refusal)}", file=sys.stderr)

    async def _submit(self, submission: Submission) -> str:
        """Return why a command was refused, empty where it was not."""
        parameters = (
            f"command={submission.command.replace(' ', '_')}&version={submission.version}&certname={quote_plus(submission.certname)}"
        )
        body = await asyncio.to_thread(gzip.compress, submission.payload, 1)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        wait = 1.0
        for attempt in range(_PATIENCE):
            try:
                async with self._client.request("POST", f"/pdb/cmd/v1?{parameters}", body=body, headers=headers) as answer:
                    await self._client.read(answer)
                return ""
            except PeerAnswered as err:
                if err.code in _FINAL:
                    return f"{submission.command} of {submission.certname}: {err.body or err}"
                if err.code not in _BUSY or attempt == _PATIENCE - 1:
                    raise
            except PeerUnreachable:
                if attempt == _PATIENCE - 1:
                    raise
            await self._sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last attempt returns or raises")


# --- status


def print_status(options: StoreFaceOptions, servers: StoreServers) -> int:
    """Print the state of a server; return 0 when it runs, else 1."""
    server, body = asyncio.run(ask_status(servers))
    try:
        status = load_json(body)
    except ValueError as err:
        raise BadData(f"{server} did not answer with its status: {err}") from err
    if not isinstance(status, dict):
        raise BadData(f"{server} did not answer with its status")
    if options.as_json:
        sys.stdout.buffer.write(dumps_pretty(status))
    else:
        detail = status.get("status")
        detail = detail if isinstance(detail, dict) else {}
        is_writable = "yes" if detail.get("write_db_up?") else "no"
        lines = {
            "server": server,
            "state": status.get("state"),
            "compatible with": f"PuppetDB {status.get('service_version')}",
            "commands that wait": detail.get("queue_depth"),
            "database is writable": is_writable,
        }
        for name, value in lines.items():
            print(f"{name:<21} {escape_controls(str(value))}")
    return 0 if status.get("state") == "running" else 1


async def ask_status(servers: StoreServers) -> tuple[str, bytes]:
    """Return the server that was asked, and its answer."""
    async with StoreClient(servers) as client:
        return client.server, await client.get("/status/v1/services/puppetdb-status")


ACTIONS: Mapping[str, Callable[[StoreFaceOptions, StoreServers], int]] = {"export": export, "import": import_file, "status": print_status}
"""The function of each action, which gets the servers and returns the exit code."""
