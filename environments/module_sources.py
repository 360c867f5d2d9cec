"""The files of modules that `file` resources have as their source, in the form that an agent would get."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .directory_environment import DirectoryEnvironment

_SOURCE = re.compile(r"puppet://[^/]*/modules/(.+)", re.S)
MAX_TEXT = 256 * 1024
"""Bytes of a file whose text is shown."""
_CHUNK = 2**20


def module_sources(parameters: Mapping[str, Any]) -> list[str]:
    """Return the sources of a file resource that are files of modules, each as `MODULE/PATH`."""
    value = parameters.get("source")
    values = value if isinstance(value, list) else [value]
    matches = [_SOURCE.fullmatch(text.rstrip("/")) for text in values if isinstance(text, str)]
    return [match[1] for match in matches if match is not None]


class ModuleSources:
    """The files below `files` of an environment's modules."""

    def __init__(self, host: DirectoryEnvironment) -> None:
        self.host = host

    def path(self, key: str) -> Path | None:
        """Return the path of `MODULE/PATH`; None when there is nothing, or it leads out of the module."""
        module, _, rest = key.partition("/")
        root = self.host.module_root(module)
        if root is None or ".." in rest.split("/") or "\0" in rest:
            return None
        path = Path(root, "files", *rest.split("/"))
        return path if os.path.lexists(path) else None

    def digest(self, key: str) -> str | None:
        """Return a digest of a file's content, or of all that is in a folder; None when there is nothing."""
        path = self.path(key)
        if path is None:
            return None
        if not path.is_dir():
            return _file_digest(path)
        digest = hashlib.sha256()
        for line in self.listing(path):
            digest.update(f"{line}\n".encode("utf-8", "surrogateescape"))
        return f"{{folder}}{digest.hexdigest()}"

    def text(self, key: str) -> str | None:
        """Return the text of a file, or the listing of a folder; None when it is not text, or too long to be shown."""
        path = self.path(key)
        if path is None:
            return None
        if path.is_dir():
            return "".join(f"{line}\n" for line in self.listing(path))
        try:
            if not path.is_file() or path.stat().st_size > MAX_TEXT:
                return None
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return None if "\0" in text else text

    def listing(self, folder: Path) -> list[str]:
        """Return the files below a folder, with digests of their contents."""
        paths = sorted(Path(place, name) for place, folders, names in os.walk(folder) for name in (*folders, *names))
        return [f"{path.relative_to(folder)}{_description(path)}" for path in paths]


def _description(path: Path) -> str:
    """Return the text after a path in a listing: a link's target, a slash, or a checksum."""
    if path.is_symlink():
        return f" -> {path.readlink()}"
    return "/" if path.is_dir() else f" {_file_digest(path)}"


def _file_digest(path: Path) -> str:
    """Return the checksum of a file, or why it cannot be read."""
    digest = hashlib.sha256()
    try:
        if not path.is_file():
            return "{special}"
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as err:
        return f"{{unreadable}}{err.strerror}"
    return f"{{sha256}}{digest.hexdigest()}"
