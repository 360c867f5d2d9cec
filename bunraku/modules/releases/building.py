"""Packing a module for the Forge: `pkg/author-name-version.tar.gz`, the same bytes for the same files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.errors import BadData, NotFound, TooLarge
from shared.filesystem.files import make_directory, open_beneath, write_atomic
from shared.names import quoted_for_log

from .archives import ModuleArchiveLimits
from .checksums import SUMS
from .metadata import name_and_version, read_metadata, released_dependencies

_LEFT_OUT: Final = re.compile(r"[.~#].*|pkg|coverage|checksums\.json|REVISION")  # at every level, as Puppet does
_IGNORE_FILES: Final = (".pdkignore", ".pmtignore", ".gitignore")  # the first that exists counts


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    """A line of a file such as .gitignore."""

    pattern: re.Pattern[str]
    takes_back: bool
    folders_only: bool

    @classmethod
    def of(cls, line: str) -> IgnorePattern | None:
        """Return the meaning of a line, None for an empty one or a comment."""
        text = line.rstrip("\r\n").rstrip(" ")
        if not text or text.startswith("#"):
            return None
        takes_back, text = text.startswith("!"), text.removeprefix("!")
        folders_only, text = text.endswith("/"), text.rstrip("/")
        anchored = "/" in text
        regexp = "".join(_PIECES.get(piece, None) or _class_of(piece) for piece in _SPLIT.findall(text.lstrip("/")))
        return cls(re.compile(rf"(?:{'' if anchored else '(?:.*/)?'}{regexp})", re.DOTALL), takes_back, folders_only)

    def matches(self, path: str, *, is_folder: bool) -> bool:
        return (is_folder or not self.folders_only) and self.pattern.fullmatch(path) is not None


_SPLIT: Final = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)
_PIECES: Final = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _class_of(piece: str) -> str:
    if len(piece) > 2 and piece[0] == "[" and piece[-1] == "]":
        body = piece[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    return re.escape(piece.removeprefix("\\") or piece)


def build(module: Path, limits: ModuleArchiveLimits) -> Path:
    """
    Pack a module; return the archive. Blocks.

    Hidden files, `pkg`, `coverage` and files that .pdkignore, .pmtignore or .gitignore names are left out. Times, owners and the order of
    files do not count, and of modes only whether the owner may execute.

    Raises:
        BadData: its metadata.json lacks something, or it holds links or special files. NotFound: it has none. TooLarge.
    """
    metadata = read_metadata(module)
    if not metadata:
        raise NotFound(f"Unable to find metadata.json in module root at {module}", hint="Write one: name, version, author, license, …")
    for key in ("author", "license", "source", "summary", "dependencies"):
        if metadata.get(key) is None:
            raise BadData(f"The metadata.json of {module} has no {key}", hint="The Forge does not take a module without.")
    name, version = name_and_version(metadata)
    released_dependencies(metadata)
    top = f"{name}-{version}"
    contents = _contents(module, limits)
    sums = {path: hashlib.md5(data, usedforsecurity=False).hexdigest() for path, (data, _) in contents.items()}
    contents[SUMS] = json.dumps(sums, indent=2, sort_keys=True).encode() + b"\n", 0o644
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in sorted(
            {top, *(f"{top}/{folder}" for file in contents for folder in _folders_of(file)), *(f"{top}/{file}" for file in contents)}
        ):
            entry = tarfile.TarInfo(path)
            data, entry.mode = contents.get(path.removeprefix(f"{top}/"), (None, 0o755))
            entry.type, entry.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            try:
                tar.addfile(entry, None if data is None else io.BytesIO(data))
            except ValueError as err:
                raise BadData(f"{quoted_for_log(path)} cannot be packed: {err}", hint="Give it a shorter name.") from err
    archive = module / "pkg" / f"{top}.tar.gz"
    make_directory(archive.parent, inherit=True)
    write_atomic(archive, buffer.getvalue())
    return archive


def _folders_of(file: str) -> Iterator[str]:
    parts = file.split("/")[:-1]
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _contents(module: Path, limits: ModuleArchiveLimits) -> dict[str, tuple[bytes, int]]:
    """Return the contents and modes of the files to pack, by their paths."""
    contents: dict[str, tuple[bytes, int]] = {}
    size = 0
    for path, mode in _files(module, "", _patterns(module)):
        with open_beneath(module, path, follow=False) as file:
            data = file.read(limits.size - size + 1)
        size += len(data)
        contents[path] = data, mode
        if size > limits.size or len(contents) > limits.files:
            raise TooLarge(
                f"{module} has more than {limits.files} files or {limits.size} bytes", hint="See module_files and module_unpacked_size."
            )
    return contents


def _patterns(module: Path) -> list[IgnorePattern]:
    for name in _IGNORE_FILES:
        try:
            with open_beneath(module, name) as file:
                text = file.read(1 << 20).decode("utf-8", "replace")
        except NotFound:
            continue
        return [pattern for line in text.splitlines() if (pattern := IgnorePattern.of(line)) is not None]
    return []


def _files(module: Path, below: str, patterns: Sequence[IgnorePattern]) -> Iterator[tuple[str, int]]:
    """Yield the paths and modes of the files of a folder to pack."""
    with os.scandir(module / below) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = f"{below}/{entry.name}" if below else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            ignored = False
            for pattern in patterns:
                if pattern.matches(path, is_folder=is_folder):
                    ignored = not pattern.takes_back
            if ignored or _LEFT_OUT.fullmatch(entry.name):
                continue
            if is_folder:
                yield from _files(module, path, patterns)
            elif entry.is_file(follow_symlinks=False):
                yield path, 0o755 if entry.stat(follow_symlinks=False).st_mode & 0o100 else 0o644
            else:
                raise BadData(f"{quoted_for_log(path)} is neither a file nor a folder", hint="Symbolic links in modules are unsupported.")
