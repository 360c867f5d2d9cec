"""`puppet db export|import|move|status`: everything that a store or a PuppetDB holds as one file or in another database, and how it is."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_plus

from shared.clock import utc_now
from shared.data.plainjson import dumps_pretty
from shared.errors import BadData, ConfigError, PeerAnswered, PeerUnreachable, PuppetError
from shared.process.cli import flag, text
from shared.process.log import escape_controls
from shared.settings import AgentSettings, MasterSettings
from store.archive.payloads import Row
from store.archive.reading import ArchiveReader
from store.archive.writing import ArchiveQuestion, ArchiveWriter, archive_chunks
from store.commands.submission import Submission
from store.jsontext import Json, dump_json, load_json

from ..faces import parse_face
from ..storeaccess import StoreClient, StoreServers
from ..storeservers import SERVER_OPTIONS_HELP, StoreFaceOptions, servers_of

HELP = f"""Usage: puppet db export FILE [--url URL]
       puppet db import FILE [--url URL]
       puppet db status [--json] [--url URL]
       puppet db move --from DATABASE --to DATABASE [--restart] [--json]
       puppet db [--no-daemonize] [--store DATABASE] [--SETTING VALUE ...]

export  writes everything that a store or a PuppetDB holds to FILE, a .tgz as PuppetDB's own export makes it: facts, catalogs, catalog
        inputs, reports, expirations, and which nodes are deactivated. It asks the query API, node by node, so that it also works where
        PuppetDB's own export does not (that of Debian 12 leaves out the data). FILE must not exist; `-` is standard output.
import  submits all that is in such a FILE (`-` is standard input). What is there already changes nothing, and what is newer stays: an
        import that was interrupted can be repeated.
status  prints whether the server runs, its version, and how many commands wait.
move    copies all that a store keeps from one database to another, compares them, and says which setting to change. DATABASE is sqlite,
        for the file in store_dir, sqlite:///PATH or postgresql://USER@HOST/DATABASE. No store may run on either of them. A move that was
        interrupted goes on when it is called again; --restart empties a target that an earlier one has begun to fill.

Without an action it is the store itself that runs: over TLS on port 8081 (--store_port), and at a Unix socket for its own user. A master
with 'store = sqlite' runs one of its own; this one is for several masters, or beside one. They name it in puppetdb.conf, as they would
name a PuppetDB. --store is sqlite (the default) or postgresql://USER@HOST/DATABASE; --store_plain_port PORT listens without TLS as well,
on 127.0.0.1, where everybody may read and change everything; --store_allowlist FILE has the certnames, one a line, that alone may use it
over TLS. --no-daemonize, --verbose, --debug and --logdest are those of 'puppet master'. TERM ends it when the requests under way have
their answers; the commands that it has acknowledged wait on the disk. HUP has it read certificates and the list of certnames anew.

{SERVER_OPTIONS_HELP}

Exit codes: 0; 1 when the server cannot be reached or refuses, or the file cannot be read or written; status: 1 unless it runs;
import: 2 when some of the commands were refused, which are listed; a store: 0 ended as asked, 1 could not start, 39 could not change to
the user, 70 a part that it cannot do without failed again and again."""

_CHUNK = 2**18
_AT_ONCE = 8  # commands that are under way at the same time
_SHOWN = 10  # refused commands that are printed
_FINAL = (400, 413)  # what a server answers to a command that it will never take
_BUSY = (429, 500, 502, 503, 504, 507)
_PATIENCE = 8  # times that a command is sent again to a server that is busy
_LONGEST_WAIT = 30.0  # seconds between two of them


@dataclass(frozen=True, slots=True)
class DbOptions(StoreFaceOptions):
    """The command line of `puppet db`."""

    face = "db"

    from_: str = text()
    to: str = text()
    restart: bool = flag()


_OPTIONS = {"from_": "move", "to": "move", "restart": "move"}
"""The options that belong to one action alone."""


def main(argv: Sequence[str]) -> int:
    """Run `puppet db …`; the exit code. Without an action the store itself runs."""
    options, flags = parse_face(DbOptions, argv, AgentSettings, MasterSettings)
    if options.help:
        print(HELP)
        return 0
    if not options.arguments:
        from store.cli import main as run_store

        return run_store(argv)
    _check_options(options)
    if options.action == "move":
        from .db_move import move  # with SQLAlchemy, which asks for 15 MB and 0.2 s

        options.exactly(0)
        return move(options.from_, options.to, flags, restart=options.restart, as_json=options.as_json)
    actions: Mapping[str, Callable[[DbOptions, StoreServers], int]] = {"export": export, "import": import_file, "status": print_status}
    action = actions.get(options.action)
    if action is None:
        raise options.unknown_action([*actions, "move"])
    options.exactly(0 if options.action == "status" else 1)
    return action(options, servers_of(options, flags))


def _check_options(options: DbOptions) -> None:
    """Raise ConfigError for an option that belongs to another action."""
    for attribute, action in _OPTIONS.items():
        if getattr(options, attribute) and options.action != action:
            name = attribute.rstrip("_")
            raise ConfigError(f"puppet db {options.action} does not take --{name}", hint=f"That is an option of 'puppet db {action}'.")


# --- export


def export(options: DbOptions, servers: StoreServers) -> int:
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
    """Yield what a server answers; raise BadData where that is no list of objects."""
    parameters = {"query": dump_json(question.query).decode()}
    if question.order_by:
        parameters["order_by"] = dump_json([{"field": name} for name in question.order_by]).decode()
    for name, value in question.parameters.items():
        parameters[name] = dump_json(value).decode()
    body = await client.get(f"/pdb/query/v4/{question.entity.replace('_', '-')}", parameters)
    for row in await asyncio.to_thread(_rows, body):
        yield row


def _rows(body: bytes) -> list[dict[str, Json]]:
    try:
        rows = load_json(body)
    except ValueError as err:
        raise BadData(f"The server answered a query with what is not JSON: {err}") from err
    if not isinstance(rows, list):
        raise BadData("The server answered a query with what is no list")
    return [row for row in rows if isinstance(row, dict)]


# --- import


def import_file(options: DbOptions, servers: StoreServers) -> int:
    """
    Submit what is in an archive; the exit code.

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
    """Submit what is in an archive; return the exit code, after the commands that were refused are printed."""
    reader = ArchiveReader()
    async with StoreClient(servers) as client:
        importer = Importer(client)
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            await importer.submit_all(reader.feed(chunk))
    reader.finish()
    print(f"Submitted {importer.submitted} commands", file=sys.stderr)
    if reader.passed_over:
        print(f"{reader.passed_over} files of the archive hold no command and were passed over", file=sys.stderr)
    return importer.print_refusals()


@dataclass(slots=True)
class Importer:
    """Submits commands, some at a time, and remembers which of them were refused."""

    _client: StoreClient
    _sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    submitted: int = 0
    refusals: list[str] = field(default_factory=list)

    async def submit_all(self, submissions: Iterator[Submission]) -> None:
        """Submit commands; return when the server has put them into its queue. Raise PuppetError when it cannot be reached any more."""
        while batch := list(islice(submissions, _AT_ONCE)):
            for refusal in await asyncio.gather(*(self._submit(submission) for submission in batch)):
                if refusal:
                    self.refusals.append(refusal)
                else:
                    self.submitted += 1

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

    def print_refusals(self) -> int:
        """Print the first commands that were refused; return the exit code."""
        for refusal in self.refusals[:_SHOWN]:
            print(f"Error: Refused: {escape_controls(refusal)}", file=sys.stderr)
        if len(self.refusals) > _SHOWN:
            print(f"       and {len(self.refusals) - _SHOWN} more", file=sys.stderr)
        return 2 if self.refusals else 0


# --- status


def print_status(options: DbOptions, servers: StoreServers) -> int:
    """Print how a server is; return 0 when it runs, else 1."""
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
            "version": status.get("service_version"),
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
