"""Access to the files of an environment: on disk, with or without a record of all reads, or in memory."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from shared.errors import BadData, EvaluationError
from shared.filesystem.identity import RECENT, Stamp, changed_at, identity_of, is_lasting, lasting_identity_of

Signature = Stamp
"""
What differs when a file does, None when there is none (see `shared.filesystem.identity`).

One that does not last is equal to no other: a file of that signature is compared by its content.
"""

MAX_FILE = 64 * 1024 * 1024
"""Octets of one manifest, template or data file."""


class CodeFiles(Protocol):
    """The source of an environment's files; paths are absolute, as text."""

    def read(self, path: str) -> bytes | None:
        """Return the content; None when there is no such file."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, sorted; none when there is no such folder."""

    def is_folder(self, path: str) -> bool: ...

    def signature(self, path: str) -> Signature:
        """Return a signature that differs when the file does; None when there is none."""

    def note_read(self, path: str, since: int) -> None:
        """Note that a program has read a file by itself, at some time since then (nanoseconds of time.time)."""

    def actual(self, path: str) -> str:
        """Return where the file of a path is on disk, for programs that read it themselves."""

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        """Return the files below `folder` that a glob pattern matches, sorted."""


class DiskFiles:
    """Files on disk."""

    def read(self, path: str) -> bytes | None:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return None  # no file can have such a name
            raise EvaluationError(f"Could not read {path}: {error.__class__.__name__}", hint=str(error)) from error
        if len(data) > MAX_FILE:
            raise EvaluationError(f"{path} is larger than {MAX_FILE} octets")
        return data

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110 -- false, where Path raises, for a name that no file can have

    def names(self, folder: str) -> Sequence[str]:
        try:
            return sorted(path.name for path in Path(folder).iterdir())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)  # noqa: PTH112 -- as above

    def signature(self, path: str) -> Signature:
        return lasting_identity_of(path)

    def note_read(self, path: str, since: int) -> None:
        pass

    def actual(self, path: str) -> str:
        return path

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        try:
            return sorted(str(path) for path in Path(folder).glob(pattern) if path.is_file())
        except (ValueError, NotImplementedError) as error:
            raise BadData(f"The pattern {pattern!r} is not valid", hint=str(error)) from error


class TrackedFiles(DiskFiles):
    """
    Files on disk, with a record of every access, so that changes can be detected.

    Args:
        root: The folder of an environment, as its files are named.
        pin: The version of it whose files are read instead (see `environments.versions`); '' for those in `root` itself.
        memory: Octets of cached contents, so that a file of the same signature is not read again.
        recent: Nanoseconds for which two changes of a file may have the same time.
    """

    def __init__(self, root: str = "", pin: str = "", *, memory: int = 0, recent: int = RECENT) -> None:
        self.root = root
        self.pin = pin
        self.recent = recent
        self._seen = SeenFiles()
        self._memory = memory
        self._contents: dict[str, tuple[Signature, tuple[bytes, bytes]]] = {}
        self._size = 0

    def actual(self, path: str) -> str:
        """Return where a path's file is: below the pinned version when it is named below the environment."""
        return actual_path(self.root, self.pin, path)

    def named(self, path: str) -> str:
        """Return the name of a file of the pinned version, for code that got its real path."""
        return f"{self.root}{path.removeprefix(self.pin)}" if self.pin and path.startswith(f"{self.pin}/") else path

    def read(self, path: str) -> bytes | None:
        path = self.named(path)
        signature = self._lasting_identity(path)
        self._seen.add(self.pin, path, signature)
        content = self._content(path, signature)
        if content is not None:
            self._seen.add_content(self.pin, path, signature, content[1])
            return content[0]
        if signature is not None and stat.S_ISREG(signature[0]):
            self._seen.add_content(self.pin, path, signature, _CHANGED)  # it was removed in between
        return None

    def _content(self, path: str, signature: Signature) -> tuple[bytes, bytes] | None:
        """
        Return the content of a file, and its digest.

        The signature is of a moment before, so that a file that changes in between is read again later.
        """
        known = self._contents.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        data = super().read(self.actual(path))
        if data is None:
            return None
        content = data, _digest(data)
        if signature is not None and len(data) <= self._memory // 16:
            self._size += len(data) - (len(known[1][0]) if known is not None else 0)
            if self._size > self._memory:
                self._contents, self._size = {}, len(data)
            self._contents[path] = (signature, content)
        return content

    def exists(self, path: str) -> bool:
        return self._note_now(path) is not None

    def names(self, folder: str) -> Sequence[str]:
        self._seen.listed.discard(folder)
        return self._names(folder)

    def _names(self, folder: str) -> Sequence[str]:
        signature = self._lasting_identity(folder)
        self._seen.add(self.pin, folder, signature)
        names = super().names(self.actual(folder))
        self._seen.add_content(self.pin, folder, signature, _digest_of_names(names))
        return names

    def is_folder(self, path: str) -> bool:
        signature = self._note_now(path)
        return signature is not None and stat.S_ISDIR(signature[0])

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        paths = [self.named(path) for path in super().matching(self.actual(folder), pattern)]
        self._seen.patterns[folder, pattern] = None
        for listed_folder in {folder, *(str(Path(path).parent) for path in paths), *self._searched(folder, pattern)}:
            self._seen.add_listed(listed_folder)
            self._names(listed_folder)
        return paths

    def _searched(self, folder: str, pattern: str) -> Iterator[str]:
        """Yield the folders below `folder` that a pattern searches, with and without matches."""
        steps = pattern.split("/")[:-1]
        for count in range(1, len(steps) + 1):
            for path in Path(self.actual(folder)).glob("/".join(steps[:count])):
                if path.is_dir():
                    yield self.named(str(path))

    def signature(self, path: str) -> Signature:
        path = self.named(path)
        signature = self._lasting_identity(path)
        self._seen.add_read(self.pin, path, signature)
        return signature

    def note_read(self, path: str, since: int) -> None:
        path = self.named(path)
        with suppress(EvaluationError):  # a program may be run by who may not read it
            self.read(path)
        signature = identity_of(self.actual(path))
        if signature is None or changed_at(signature) > since - self.recent:
            self._seen.is_doubtful = True  # what was read may have been another content

    def first_signature(self, path: str) -> Signature:
        """Return the signature that a path had at its first access since `take_seen`."""
        return self._note(self.named(path))

    def questions(self) -> list[tuple[str, ...]]:
        """
        Return the questions about the files since `take_seen`, with absolute paths.

        `read`: the content of a file; `names`: the names in a folder; `kind`: whether there is a file, a folder or nothing; `glob`: which
        files of a folder match a pattern.
        """
        return self._seen.questions()

    @property
    def first_signatures(self) -> Mapping[str, Signature]:
        """All signatures of `first_signature`, by the path below the environment."""
        return self._seen.signatures_of(self.pin)

    def is_unchanged(self, path: str) -> bool:
        """Return whether a recorded path is still unchanged; this is not recorded as an access."""
        return self._seen.is_unchanged(self.root, self.pin, self.named(path))

    def take_seen(self) -> SeenFiles:
        """Return the paths accessed since the last call, in their state at that time, and forget them."""
        seen, self._seen = self._seen, self._seen.beginning()
        return seen

    def _note(self, path: str) -> Signature:
        signatures = self._seen.signatures_of(self.pin)
        if path not in signatures:
            self._seen.add(self.pin, path, identity_of(self.actual(path)))
        return signatures[path]

    def _note_now(self, path: str) -> Signature:
        """Record a path whose existence alone matters, and return its present signature."""
        signature = identity_of(self.actual(path))
        self._seen.add(self.pin, path, signature)
        return signature

    def _lasting_identity(self, path: str) -> Signature:
        """Return a signature that shows every change from now on, or is equal to no other. One by which a file was known still does."""
        actual = self.actual(path)
        own = identity_of(actual)
        return own if self._seen.digest_known_by(path, own) else lasting_identity_of(actual, recent=self.recent)

    @property
    def count(self) -> int:
        """The number of recorded paths, with which `changed` can skip them later."""
        return len(self._seen)

    def changed(self, since: int = 0, below: Sequence[str] | None = None) -> str | None:
        """
        Return a path that differs from its state at the first access, existing or not; None when all are unchanged.

        Args:
            since: How many of the first paths to skip.
            below: The only folders whose paths count; None: all.
        """
        folders = tuple(f"{folder}/" for folder in below or ())
        for path in islice(self._seen.paths(self.pin), since, None):
            if not self._seen.is_unchanged(self.root, self.pin, path) and (below is None or path.startswith(folders)):
                return path
        return None

    def are_unchanged(self, pin: str | None = None) -> bool:
        """Return whether all recorded paths, existing or not, are unchanged now and in another version."""
        return self._seen.are_unchanged(self.root, self.pin if pin is None else pin, recent=self.recent)

    def are_known(self, pin: str) -> bool:
        """Return whether all recorded paths were found to be the same in a version."""
        return self._seen.are_known(pin)


MAX_PINS = 4
"""Versions of which signatures are kept; of further ones all contents are compared again."""


class SeenFiles:
    """
    The files that a result was made from: their contents, and signatures that can be compared without reading them.

    A file that is another one by its signature is unchanged if it holds the same: a folder whose names were read, if it has the same
    names; a path that was only checked, if it still is a file, a folder or nothing.
    """

    def __init__(self) -> None:
        self._contents: dict[str, _Content] = {}
        self._signatures: dict[str, dict[str, Signature]] = {}
        self._digests: dict[str, tuple[Signature, bytes]] = {}  # of all that was ever read, for what is not read again
        self.patterns: dict[tuple[str, str], None] = {}  # folders with the patterns that their files were matched with
        self.is_doubtful = False  # whether a file may have held something else when it was read
        self.listed: set[str] = set()  # folders of which names were read only to match patterns

    def __len__(self) -> int:
        return len(self._contents)

    def beginning(self) -> SeenFiles:
        """Return an empty record that knows the digests of this one."""
        seen = SeenFiles()
        seen._digests = self._digests
        return seen

    def add(self, pin: str, path: str, signature: Signature) -> Signature:
        """Add a path that is looked for; return its signature, that of the first time."""
        signature = self.signatures_of(pin).setdefault(path, signature)
        if path not in self._contents:
            self._contents[path] = _Content.of(signature)
        return signature

    def add_content(self, pin: str, path: str, signature: Signature, digest: bytes) -> None:
        """Add the digest of the content of a path that was added; its signature is from just before it was read."""
        if not is_lasting(signature):
            self.signatures_of(pin)[path] = signature  # whatever is changed from now on can only be seen in the content
        content = self._contents[path]
        if content.digest != digest:
            self._contents[path] = _Content(content.kind, _CHANGED if content.digest else digest, is_read=True)
        if digest != _CHANGED and not self.digest_known_by(path, signature):
            if len(self._digests) >= MAX_DIGESTS:
                self._digests.clear()
            self._digests[path] = (signature, digest)

    def digest_known_by(self, path: str, signature: Signature) -> bytes:
        """Return the digest of a path's content under this lasting signature; empty when it was not read under it."""
        known = self._digests.get(path)
        return known[1] if known is not None and known[0] == signature else b""

    def add_listed(self, folder: str) -> None:
        """Record that the names in a folder are read only to match a pattern, unless the folder was accessed before."""
        if folder not in self._contents:
            self.listed.add(folder)

    def add_read(self, pin: str, path: str, signature: Signature) -> None:
        """Add a file whose content is known to the caller from an earlier time."""
        first, content = self.add(pin, path, signature), self._contents[path]
        digest = self.digest_known_by(path, signature) if signature == first else b""
        if not content.is_read:
            self._contents[path] = _Content(content.kind, digest, is_read=True)

    def questions(self) -> list[tuple[str, ...]]:
        """Return the questions (see `TrackedFiles.questions`)."""
        kinds = {stat.S_IFREG: "read", stat.S_IFDIR: "names"}  # of what does not exist, only that counts
        questions: list[tuple[str, ...]] = [
            (kinds.get(content.kind, "kind") if content.is_read else "kind", path)
            for path, content in self._contents.items()
            if path not in self.listed
        ]
        questions += [("glob", *folder_and_pattern) for folder_and_pattern in self.patterns]
        return questions

    def paths(self, pin: str) -> Iterable[str]:
        """Return the paths with a known signature in a version, in the order of their first access."""
        return self._signatures.get(pin, ())

    def are_known(self, pin: str) -> bool:
        """Return whether all paths were recorded, or found to be the same, in a version."""
        return len(self._signatures.get(pin, ())) == len(self._contents)

    def are_unchanged(self, root: str, pin: str, *, recent: int = RECENT) -> bool:
        """Return whether all is as it was, read in a version of the environment in `root`."""
        if self.is_doubtful:
            return False
        signatures = self._signatures.get(pin, {})
        if pin:
            changed = [path for path, signature in signatures.items() if identity_of(actual_path(root, pin, path)) != signature]
        else:
            changed = [path for path, signature in signatures.items() if identity_of(path) != signature]
        if len(signatures) < len(self._contents):
            changed += [path for path in self._contents if path not in signatures]
        found: dict[str, Signature] = {}
        for path in changed:
            actual, content = actual_path(root, pin, path), self._contents[path]
            signature = lasting_identity_of(actual, recent=recent)
            is_same_file = any(
                path in known and known[path] == signature for known in self._signatures.values()
            )  # as of all outside of `root`
            if not is_same_file and not content.is_equal_to(actual, signature):
                return False
            found[path] = signature
        if found:
            self.signatures_of(pin).update(found)
        return True

    def is_unchanged(self, root: str, pin: str, path: str) -> bool:
        """Return whether a path is as it was, read in a version of the environment in `root`."""
        actual = actual_path(root, pin, path)
        signature = identity_of(actual)
        return signature == self._signatures.get(pin, {}).get(path) or self._contents[path].is_equal_to(actual, signature)

    def signatures_of(self, pin: str) -> dict[str, Signature]:
        """Return the signatures of paths in a version, to be added to."""
        signatures = self._signatures.get(pin)
        if signatures is None:
            if len(self._signatures) >= MAX_PINS:
                del self._signatures[next(iter(self._signatures))]
            signatures = self._signatures[pin] = {}
        return signatures


MAX_DIGESTS = 20_000
_CHANGED = b"changed while it was read"  # a digest that nothing is equal to


class _Content(NamedTuple):
    """
    The earlier state of a path.

    Attributes:
        kind: The kind of file, from its mode; 0: there was none.
        digest: Of its content or its names; empty when that is not known, so that only its signature can show that it is the same.
        is_read: True if the result depends on the content.
    """

    kind: int
    digest: bytes = b""
    is_read: bool = False

    @classmethod
    def of(cls, signature: Signature) -> _Content:
        return cls(stat.S_IFMT(signature[0]) if signature is not None else 0)

    def is_equal_to(self, path: str, signature: Signature) -> bool:
        """Return whether a path, of this signature now, is the same."""
        if _Content.of(signature).kind != self.kind:
            return False
        if not self.is_read or self.kind == 0:
            return True
        if not self.digest:
            return False
        try:
            disk = DiskFiles()
            if stat.S_ISDIR(self.kind):
                return _digest_of_names(disk.names(path)) == self.digest
            data = disk.read(path)
        except EvaluationError:
            return False
        return data is not None and _digest(data) == self.digest


def actual_path(root: str, pin: str, path: str) -> str:
    """Return where the file of a path is when the environment in `root` is pinned to a version; '' for none."""
    if not pin or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return f"{pin}{rest}" if not rest or rest[0] == "/" else path


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _digest_of_names(names: Sequence[str]) -> bytes:
    return _digest("\0".join(names).encode("utf-8", "surrogateescape"))
