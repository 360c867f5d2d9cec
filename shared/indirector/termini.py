"""Generic termini: memory, code, one file a key, YAML, JSON, an external program. Inherit or use them as they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from ..data import plainjson, plainyaml
from ..errors import BadData, PuppetError
from ..failpoints import failpoint
from ..filesystem.files import make_directory, owner_in, read_regular, write_atomic
from ..filesystem.written import WrittenFiles, has_content
from ..names import quoted_for_log, valid_file_key
from ..programs import run_bounded
from ..wire.dialects import MODERN
from .core import Indirection, M, Request, Terminus, log


class MemoryTerminus(Terminus[M]):
    """Instances in this process."""

    def __init__(self) -> None:
        self.instances: dict[str, M] = {}

    async def find(self, request: Request[M]) -> M | None:
        return self.instances.get(request.key)

    async def search(self, request: Request[M]) -> list[M]:
        return list(self.instances.values())

    async def save(self, request: Request[M]) -> object:
        self.instances[request.key] = request.instance
        return None

    async def destroy(self, request: Request[M]) -> object:
        return self.instances.pop(request.key, None) is not None


class CodeTerminus(Terminus[M]):
    """Instances made by a function of the request: `CodeTerminus(lambda request: Status(name=request.key))`."""

    def __init__(self, make: Callable[[Request[M]], M | Awaitable[M | None] | None]) -> None:
        self.make = make

    async def find(self, request: Request[M]) -> M | None:
        instance = self.make(request)
        return await instance if isinstance(instance, Awaitable) else instance


class StoredBodies(Terminus[M]):
    """
    A base of termini that store each instance as one body, under its key.

    A body that does not parse counts as missing, with a warning: it is replaced at the next save. `suffix` says its form: .yaml, .json, or
    the model's raw one.
    """

    indirection: Indirection[M]
    suffix: str

    def path(self, key: str) -> object:
        """Return the place of a key, for messages."""
        raise NotImplementedError

    def body(self, key: str) -> bytes | None:
        """Return the body of a key, None when there is none. Blocks."""
        raise NotImplementedError

    def keys(self) -> list[str]:
        """Return the keys that are stored, sorted. Blocks."""
        raise NotImplementedError

    async def fetch(self, key: str) -> bytes | None:
        """Return the body of a key, None when there is none."""
        return await asyncio.to_thread(self.body, key)

    def load(self, key: str, body: bytes) -> M:
        """Return the instance in a body; BadData."""
        return self.indirection.model.from_bytes(body)

    def dump(self, instance: M) -> bytes:
        """Return the body of an instance."""
        return instance.to_bytes(MODERN)

    async def find(self, request: Request[M]) -> M | None:
        return await asyncio.to_thread(self.read, request.key)

    async def search(self, request: Request[M]) -> list[M]:
        """Return all that are stored, by key."""
        instances = [await asyncio.to_thread(self.read, key) for key in await asyncio.to_thread(self.keys)]
        return [instance for instance in instances if instance is not None]

    def read(self, key: str) -> M | None:
        """Return the value stored under a key; None when there is none, or, with a warning, when it does not parse. Blocks."""
        try:
            body = self.body(key)
        except BadData as err:
            self.warn(key, err)
            return None
        return None if body is None else self.parsed(key, body)

    def parsed(self, key: str, body: bytes) -> M | None:
        """Return the instance in a body; None, with a warning, when it does not parse. Blocks."""
        try:
            return self.load(key, body)
        except BadData as err:
            self.warn(key, err)
            return None

    def warn(self, key: str, error: BadData) -> None:
        """Log that what is stored under a key is ignored."""
        log.warning("Ignoring %s, which does not hold a %s: %s", self.path(key), self.indirection.name, error)

    def body_of(self, key: str, instance: M, most: int) -> bytes:
        """Return the body of an instance that is to be stored; BadData when nobody could read it: it is nested too deeply, or too long."""
        try:
            body = self.dump(instance)
        except RecursionError as err:  # JSON may be nested more deeply than a writer goes
            raise BadData(f"The {self.indirection.name} of {quoted_for_log(key)} cannot be stored: nested too deeply") from err
        if len(body) > most:
            raise BadData(f"The {self.indirection.name} of {quoted_for_log(key)} would take {len(body)} bytes, more than {most}")
        return body


@dataclass(eq=False, repr=False)
class FilePerKey(StoredBodies[M]):
    """
    One file a key, `<root>/<key><suffix>`, in the model's raw form; a base for other forms.

    `mode` is the file's, `folder_mode` the root's, which is made at the first save.
    """

    indirection: Indirection[M]
    root: Path
    _: KW_ONLY
    suffix: str = ""
    mode: int = 0o640
    folder_mode: int = 0o750
    most: int = 64 * 2**20  # bytes of one file
    durable: bool = True  # whether what was saved has to survive a power loss
    written: WrittenFiles | None = None  # knows what need not be written again; None: every save writes

    def path(self, key: str) -> Path:
        """Return the file of a key; BadName when the key cannot be a file's name."""
        return Path(self.name(key))

    def name(self, key: str) -> str:
        """Return the same as text, which takes a tenth of the time."""
        return f"{self.root}/{valid_file_key(key)}{self.suffix}"

    async def save(self, request: Request[M]) -> object:
        """Store an instance, unless its file holds the same already; return the file's path."""
        name, instance = self.name(request.key), request.instance
        digest = instance.digest() if self.written is not None else None
        if self.written is not None and digest is not None and self.written.holds(name, digest):
            return name
        await asyncio.to_thread(self._write, request.key, instance, digest)
        return name

    async def destroy(self, request: Request[M]) -> object:
        return await asyncio.to_thread(self._unlink, request.key)

    async def head(self, request: Request[M]) -> bool:
        return await asyncio.to_thread(self.path(request.key).is_file)

    def keys(self) -> list[str]:
        """Return the keys that are stored, sorted. Blocks."""
        try:
            names = [entry.name for entry in os.scandir(self.root) if entry.is_file()]
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(self.suffix) for name in names if name.endswith(self.suffix) and not name.startswith("."))

    def body(self, key: str) -> bytes | None:
        """Return the content of the file of a key, None when there is none; BadData when it is too large or no regular file. Blocks."""
        try:
            return read_regular(self.path(key), self.most)
        except FileNotFoundError:
            return None

    def _write(self, key: str, instance: M, digest: bytes | None) -> None:
        body = self.body_of(key, instance, self.most)
        if self.written is None or digest is None:
            self._write_body(key, body)
            return
        path = self.path(key)
        last = self.written.last(path)
        # What another process wrote may not have reached the disk yet.
        may_hold = last == digest or (last is None and not self.durable)
        if not (may_hold and has_content(path, body, mode=self.mode, owner=owner_in(path.parent))):
            self._write_body(key, body)
        self.written.note(path, digest)

    def _write_body(self, key: str, body: bytes) -> None:
        path = self.path(key)
        make_directory(path.parent, mode=self.folder_mode, inherit=True)
        write_atomic(path, body, mode=self.mode, owner=owner_in(path.parent), durable=self.durable)
        failpoint(f"{self.indirection.name}.written")

    def _unlink(self, key: str) -> bool:
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        return True


class Yaml(FilePerKey[M]):
    """`<root>/<key>.yaml`, with Ruby's tag when the indirection names a class, as other tools expect to read it."""

    def __init__(self, indirection: Indirection[M], root: Path, *, items: plainyaml.WrittenItems | None = None, **options: Any) -> None:
        super().__init__(indirection, root, suffix=".yaml", **options)
        self.items = items  # of instances that say much the same, one after another

    def load(self, key: str, body: bytes) -> M:
        return self.indirection.model.from_data(read_yaml_file(key, body))

    def dump(self, instance: M) -> bytes:
        data = instance.to_data(MODERN)
        cls = self.indirection.ruby_class
        return plainyaml.dumps(plainyaml.RubyObject(cls, data) if cls and isinstance(data, dict) else data, self.items)


class WriteOnlyYaml(Yaml[M]):
    """Writes the same files as `Yaml`, and finds nothing: a record for other programs."""

    async def find(self, request: Request[M]) -> M | None:
        return None


class Json(FilePerKey[M]):
    """`<root>/<key>.json`"""

    def __init__(self, indirection: Indirection[M], root: Path, **options: Any) -> None:
        super().__init__(indirection, root, suffix=".json", **options)

    def load(self, key: str, body: bytes) -> M:
        return self.indirection.model.from_data(read_json_file(key, body))

    def dump(self, instance: M) -> bytes:
        return plainjson.dumps_pson(instance.to_data(MODERN))


def read_yaml_file(key: str, body: bytes) -> Any:
    """Return the plain data in the YAML file of a key; BadData."""
    data = plainyaml.loads(body, aliases=True)
    return {"name": key, **data} if isinstance(data, dict) else data


def read_json_file(key: str, body: bytes) -> Any:
    """Return the plain data in the JSON file of a key; BadData."""
    data = plainjson.loads_pson(body)
    if isinstance(data, dict) and "document_type" in data and isinstance(data.get("data"), dict):
        return data["data"]  # what a 3.x agent left behind
    return data


FILE_READERS: Mapping[str, Callable[[str, bytes], Any]] = {".yaml": read_yaml_file, ".json": read_json_file}
"""The function that reads a file, by its suffix."""


class ExecTerminus(Terminus[M]):
    """
    A terminus that runs an external program: `command` plus the key as its last argument, no shell.

    A base: `instance(key, output)` makes the model from the output; no output means that there is no instance. A failure is an error, never
    an empty answer.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float = 60.0,
        most: int = 16 * 2**20,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.command = tuple(command)
        self.timeout = timeout  # seconds
        self.most = most  # bytes of output
        self.environ = dict(environ) if environ is not None else {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}

    def instance(self, request: Request[M], output: bytes) -> M | None:
        raise NotImplementedError

    async def find(self, request: Request[M]) -> M | None:
        output = await self.output(request.key)
        return self.instance(request, output) if output.strip() else None

    async def output(self, key: str) -> bytes:
        """Return the program's output for a key; PuppetError when it fails, is slow, or prints too much."""
        if not self.command or not self.command[0].startswith("/"):
            raise PuppetError(
                "You must set the 'external_nodes' parameter to use the external node terminus",
                hint="It is the absolute path of a program, with arguments if need be.",
            )
        if key.startswith("-"):
            raise PuppetError(f"Failed to find {quoted_for_log(key)} via exec: the name would be read as an option")
        return await run_bounded(
            [*self.command, key], timeout=self.timeout, most=self.most, environ=self.environ, what=f"find {key} via exec"
        )
