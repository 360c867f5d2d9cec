"""Store and fetch files by checksum. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from agent.servers.dipper import Dipper, LocalDipper, RemoteDipper
from shared.data.plainjson import dumps_pretty
from shared.errors import BadRequest, ConfigError, Denied, NotFound, PuppetError
from shared.filesystem import checksums
from shared.filesystem.bucket import Bucket
from shared.filesystem.checksums import Algorithm, algorithm
from shared.filesystem.files import write_all
from shared.filesystem.textdiff import Differ
from shared.process.cli import CommandOptions, flag, text
from shared.process.command import CommandSpec
from shared.process.service import make_room
from shared.settings import AgentSettings, MasterSettings, load
from shared.suggestions import did_you_mean

_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FilebucketOptions(CommandOptions):
    """The command line without settings."""

    local: bool = flag(
        "this machine's bucket, the setting clientbucketdir; --remote, -r: the server's (the default)", "-l", off=("-r", "--remote")
    )
    bucket: str = text("FOLDER", "a bucket in another folder of this machine", "-b")
    database: bool = flag("on a master: the bucket in the masters' database, the setting state")
    fromdate: str = text("DATE", "list: only files stored since; YYYY-MM-DD, with HH:MM:SS if need be", "-f")
    todate: str = text("DATE", "list: only files stored until then", "-t")
    json: bool = flag("backup, list: print JSON")


@CommandSpec(
    "filebucket",
    FilebucketOptions,
    (AgentSettings,),
    usage=["ACTION [--local | --remote | --database] [--bucket FOLDER] [ARGUMENTS]"],
    actions={
        "backup FILE...": "store files; print `file: checksum`",
        "get CHECKSUM": "print the file with this checksum",
        "restore FILE CHECKSUM": "write a stored file to FILE; owner and mode of an existing file stay",
        "diff A B": "compare two files; each is a path or a checksum",
        "list": "list the stored files by path: checksum, time, path",
    },
    help_if_bare=True,
    notes="The server's bucket is asked with this host's certificate, as in: puppet filebucket get CHECKSUM --server puppet.example.com",
    is_face=False,
).main
def main(options: FilebucketOptions, flags: dict[str, Any]) -> int:
    actions = main.action_docs
    if options.arguments[0] not in actions:
        hint = did_you_mean(options.arguments[0], actions, form="puppet filebucket {}", otherwise=f"The actions are {', '.join(actions)}.")
        raise ConfigError(f"'filebucket' has no '{options.arguments[0]}' action", hint=hint)
    settings = load(AgentSettings, section="user", flags=flags)
    make_room(settings)
    try:
        return asyncio.run(run(options, settings, _bucket(options, settings, flags)))
    except OSError as err:
        raise PuppetError(f"Could not run: {err.strerror}: {err.filename}" if err.filename else f"Could not run: {err}") from err


async def run(options: FilebucketOptions, settings: AgentSettings, bucket: Bucket | None) -> int:
    """Carry out the action on a bucket, or with None on the server's; PuppetError when it cannot be done."""
    action, *words = options.arguments
    if action == "list":
        return await asyncio.to_thread(show_list, options, bucket)
    async with _open_bucket(bucket, settings) as (dipper, digest):
        commands = BucketCommands(dipper, digest, as_json=options.json, differ=Differ.of(settings))
        if action == "backup":
            return await commands.backup(words)
        if action == "get":
            return await commands.get(_exactly(words, 1, "get CHECKSUM")[0])
        if action == "restore":
            file, value = _exactly(words, 2, "restore FILE CHECKSUM")
            return await commands.restore(Path(file), value)
        if len(words) != 2:
            raise BadRequest("Need exactly two arguments: filebucket diff <file_a> <file_b>")
        return await commands.diff(words[0], words[1])


def _exactly(words: list[str], number: int, usage: str) -> list[str]:
    if len(words) != number:
        raise BadRequest(f"puppet filebucket {usage} takes {number} argument(s), but you gave {len(words)}")
    return words


def _bucket(options: FilebucketOptions, settings: AgentSettings, flags: dict[str, Any]) -> Bucket | None:
    """Return the bucket that is meant; None: the server's."""
    if options.database:
        from master.termini.state import StateTermini

        of_master = load(MasterSettings, section="master", flags=flags)
        return StateTermini(of_master).bucket(algorithm(of_master.digest_algorithm))
    if not options.bucket and not options.local:
        return None
    folder = Path(options.bucket).absolute() if options.bucket else settings.clientbucketdir
    if options.bucket and not folder.is_dir():
        raise NotFound("File not found", hint=f"There is no bucket in {folder}.")
    return Bucket(folder, algorithm=algorithm(settings.digest_algorithm))


@asynccontextmanager
async def _open_bucket(bucket: Bucket | None, settings: AgentSettings) -> AsyncIterator[tuple[Dipper, Algorithm]]:
    """The bucket, and by which checksum it stores."""
    if bucket is not None:
        yield LocalDipper(bucket), bucket.algorithm
        return
    from shared.indirector import Binding
    from shared.indirector.rest import Rest
    from shared.models.file_bucket_file import FILE_BUCKET_FILE

    from ..peer import open_server

    async with open_server(settings) as server:
        digest = await server.digest(settings.given("digest_algorithm"))
        binding = Binding(FILE_BUCKET_FILE, Rest(FILE_BUCKET_FILE, server))
        yield RemoteDipper(binding, algorithm=digest, environment=settings.environment or "production"), digest


class BucketCommands:
    """The actions that local and remote buckets have in common."""

    def __init__(self, dipper: Dipper, digest: Algorithm, *, as_json: bool = False, differ: Differ | None = None) -> None:
        self.dipper = dipper
        self.digest = digest
        self.as_json = as_json
        self.differ = differ or Differ()

    async def backup(self, files: Sequence[str]) -> int:
        """Back up every readable file; missing ones are reported and skipped, as by Puppet."""
        if not files:
            raise BadRequest("You must specify a file to back up")
        checksums_by_file: dict[str, str] = {}
        for file in files:
            value = await self._kept(file)
            if value is not None:
                checksums_by_file[file] = value
                if not self.as_json:
                    print(f"{file}: {value}", flush=True)
        if self.as_json:
            sys.stdout.buffer.write(dumps_pretty(checksums_by_file))
        return 0

    async def _kept(self, file: str) -> str | None:
        path = Path(file)
        try:
            fd = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            print(f"{file}: no such file", file=sys.stderr)
            return None
        except PermissionError:
            print(f"{file}: cannot read file", file=sys.stderr)
            return None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise BadRequest(f"Could not back up {file}: it is not a regular file")
            return await self.dipper.keep(fd, str(Path.cwd() / path))
        finally:
            os.close(fd)

    async def get(self, value: str) -> int:
        """Write a content to standard output."""
        async for block in self._content(value):
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()
        return 0

    async def _content(self, text: str) -> AsyncIterator[bytes]:
        value = self._checked(text)
        try:
            async for block in self.dipper.fetch(value):
                yield block
        except NotFound as err:
            raise NotFound(
                "File not found", hint=f"There is no content with the checksum {{{self.digest}}}{value} in this bucket."
            ) from err

    def _checked(self, text: str) -> str:
        """Return the hex value of a checksum that may come with its `{algorithm}`; BadRequest when it is not one."""
        value = text.strip().lower().removeprefix(f"{{{self.digest}}}")
        if not checksums.valid(self.digest, value):
            raise BadRequest(f'Invalid checksum "{text}"', hint=f"This bucket's are {checksums.HEX_LENGTH[self.digest]} hex digits long.")
        return value

    async def restore(self, path: Path, value: str) -> int:
        """Put a content in a file's place, all or nothing; mode and owner of an existing file stay."""
        target, old = await asyncio.to_thread(_restore_target, path)
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                async for block in self._content(value):
                    await asyncio.to_thread(write_all, fd, block)
                _take_over(fd, old)
                await asyncio.to_thread(os.fsync, fd)
            finally:
                os.close(fd)
            temporary.rename(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return 0

    async def diff(self, left: str, right: str) -> int:
        """Print the difference of two contents; an argument that exists as a file is read as a file."""
        old, new = await self._side(left), await self._side(right)
        with old[0], new[0]:
            text = await asyncio.to_thread(self.differ.compare, old[0].fileno(), new[0].fileno(), labels=(old[1], new[1]))
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return 0

    async def _side(self, word: str) -> tuple[IO[bytes], str]:
        """Return an open file with the content, and its label."""
        opened = await asyncio.to_thread(_file_of, word)
        if opened is not None:
            return opened, word
        value = self._checked(word)
        file = await asyncio.to_thread(tempfile.TemporaryFile)
        try:
            async for block in self._content(value):
                await asyncio.to_thread(file.write, block)
            await asyncio.to_thread(file.flush)
        except BaseException:
            file.close()
            raise
        return file, f"{{{self.digest}}}{value}"


def _file_of(word: str) -> IO[bytes] | None:
    path = Path(word)
    return path.open("rb") if path.is_file() else None


def _restore_target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the path for restored content (the target of a link), and its present state."""
    path = path.absolute()
    try:
        old = path.stat()
    except FileNotFoundError:
        return path, None
    if not stat.S_ISREG(old.st_mode):
        raise BadRequest(f"Could not restore {path}: it is not a regular file")
    return path.resolve(), old


def _take_over(fd: int, old: os.stat_result | None) -> None:
    """Owner, then mode, of the file that is replaced; of a new one the usual mode."""
    if old is None:
        mask = os.umask(0o022)
        os.umask(mask)
        os.fchmod(fd, 0o666 & ~mask)
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def show_list(options: FilebucketOptions, bucket: Bucket | None) -> int:
    """Print the contents of a bucket."""
    if bucket is None:
        hint = "Add --local, or on the server itself --bucket FOLDER or --database."
        raise Denied("Listing remote file buckets is not allowed", hint=hint)
    entries = bucket.entries(moment(options.fromdate, "fromdate"), moment(options.todate, "todate"))
    if options.json:
        data = [{"checksum": entry.value, "stored": entry.stored.isoformat(), "path": entry.path} for entry in entries]
        sys.stdout.buffer.write(dumps_pretty(data))
        return 0
    for entry in entries:
        print(f"{entry.value} {entry.stored.astimezone():%Y-%m-%d %H:%M:%S} {entry.path}")
    return 0


def moment(text: str, name: str) -> datetime | None:
    """Return a date, with a time if need be, in local time; None for ''. BadRequest when it is not one."""
    if not text:
        return None
    match = _DATE.fullmatch(text.strip())
    with suppress(ValueError):
        if match:
            return datetime(*(int(part or 0) for part in match.groups())).astimezone(UTC)  # type: ignore[arg-type]
    raise BadRequest(f"Error while parsing '{name}'", hint="Write YYYY-MM-DD, or YYYY-MM-DD HH:MM:SS.")
