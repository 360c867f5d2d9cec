"""
The revision of an environment's code, as recorded by the tool that deployed it: a deployment, r10k, g10k or Git.

Only files are read, never a program run. Later edits of the code cannot be detected. Source: gitrepository-layout(5), gitglossary(7) on
HEAD and refs; the files that r10k 3.15 and g10k write next to the code.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.data import plainjson
from shared.errors import BadData
from shared.filesystem.identity import Stamp, lasting_identity

DEPLOYMENT = ".puppet-deploy.json"
MAX_CODE_ID = 256
MAX_SMALL = 64 * 1024  # octets of HEAD, of a ref, of a file that names a folder
MAX_LARGE = 16 << 20  # octets of packed-refs, and of what r10k writes, which lists all modules
_MAX_REFS = 5  # refs that lead to one another

_RECORDS = (DEPLOYMENT, ".r10k-deploy.json", ".g10k-deploy.json")
_CODE_ID = re.compile(r"[-_:;A-Za-z0-9]+", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REF = re.compile(r"refs/[^\s\\^:?*\[~]+")


def is_code_id(text: object) -> bool:
    """Return whether a value may be a code id: letters, digits and `- _ : ;`."""
    return isinstance(text, str) and len(text) <= MAX_CODE_ID and _CODE_ID.fullmatch(text) is not None


class Revisions:
    """The revisions of environments; files are read again only when they have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, Stamp], str | None]] = {}

    def revision_of(self, root: str) -> str | None:
        """Return the revision of the code in a folder; None when none is recorded there. Blocks, briefly."""
        known = self._known.get(root)
        if known is not None and all(_stamp(path) == stamp for path, stamp in known[0].items()):
            return known[1]
        reader = _Reader({})
        revision = reader.revision(root)
        self._known[root] = (reader.stamps, revision)
        return revision

    def forget(self) -> None:
        """Read everything again."""
        self._known.clear()


def revision_of(root: str) -> str | None:
    """Return the revision of the code in a folder, as `Revisions` does."""
    return _Reader({}).revision(root)


@dataclass(frozen=True, slots=True)
class _Reader:
    """One reading; `stamps` are of all files, existing or not, from before they were read."""

    stamps: dict[str, Stamp]

    def revision(self, root: str) -> str | None:
        for name in _RECORDS:
            revision = self._recorded(f"{root}/{name}")
            if revision is not None:
                return revision
        return self._git(root)

    def _recorded(self, path: str) -> str | None:
        """Return the member `signature` of a tool's record."""
        data = self._read(path, MAX_LARGE)
        if data is None:
            return None
        try:
            record: Any = plainjson.loads(data)
        except BadData:
            return None
        signature = record.get("signature") if isinstance(record, dict) else None
        return signature if is_code_id(signature) else None

    def _git(self, root: str) -> str | None:
        """Return the commit that is checked out in a folder."""
        folder = self._git_folder(root)
        if folder is None:
            return None
        common = self._line(f"{folder}/commondir")  # of a worktree: the repository's own folder
        folders = (folder, os.path.normpath(os.path.join(folder, common))) if common else (folder,)  # noqa: PTH118 -- paths are text here
        text = self._line(f"{folder}/HEAD")
        for _ in range(_MAX_REFS):
            if text is None or _HASH.fullmatch(text):
                return text
            ref = text.removeprefix("ref:").strip()
            if not text.startswith("ref:") or not _REF.fullmatch(ref) or ".." in ref:
                return None
            text = self._ref(folders, ref)
        return None

    def _git_folder(self, root: str) -> str | None:
        """Return the folder that `.git` is, or that it names in a worktree or submodule."""
        path = f"{root}/.git"
        self.stamps[path] = stamp = _stamp(path)
        if stamp is None:
            return None
        if stat.S_ISDIR(stamp[0]):
            return path
        text = self._line(path)
        if text is None or not text.startswith("gitdir:"):
            return None
        return os.path.normpath(os.path.join(root, text.removeprefix("gitdir:").strip()))  # noqa: PTH118 -- as above

    def _ref(self, folders: tuple[str, ...], ref: str) -> str | None:
        """Return the value of a ref: from a file of its own, or from the list of packed refs."""
        for folder in folders:
            text = self._line(f"{folder}/{ref}")
            if text is not None:
                return text
        packed = self._read(f"{folders[-1]}/packed-refs", MAX_LARGE)
        end = b" " + os.fsencode(ref)
        for line in (packed or b"").splitlines():
            if line.endswith(end) and len(line) - len(end) in (40, 64):
                return line[: -len(end)].decode("ascii", "replace")
        return None

    def _line(self, path: str) -> str | None:
        """Return the text of a small file without the end of its line; None when there is none, or another kind of text."""
        data = self._read(path, MAX_SMALL)
        text = None if data is None else os.fsdecode(data).strip()
        return text if text and text.isprintable() else None

    def _read(self, path: str, most: int) -> bytes | None:
        """Return the content of a regular file of at most this many octets; None for anything else."""
        self.stamps[path] = _stamp(path)
        if self.stamps[path] is None:
            return None
        return _content(path, most)


def _content(path: str, most: int) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO does not block
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(most + 1)
    return data if len(data) <= most else None


def _stamp(path: str) -> Stamp:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):  # whose names do not matter
        return status.st_mode, status.st_ino, status.st_dev
    return lasting_identity(path, status)
