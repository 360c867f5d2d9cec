"""Files of environments in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


class MemoryFiles:
    """The files of an environment, as a map from path to content."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self.files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_folder(path)

    def names(self, folder: str) -> Sequence[str]:
        prefix = folder.rstrip("/") + "/"
        return sorted({path[len(prefix) :].split("/", 1)[0] for path in self.files if path.startswith(prefix)})

    def is_folder(self, path: str) -> bool:
        prefix = path.rstrip("/") + "/"
        return any(file.startswith(prefix) for file in self.files)

    def signature(self, path: str) -> tuple[int, ...] | None:
        return () if path in self.files else None

    def note_read(self, path: str, since: int) -> None:
        pass

    def actual(self, path: str) -> str:
        return path

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        prefix = folder.rstrip("/") + "/"
        regexp = re.compile(_regexp_for_glob(pattern))
        return sorted(path for path in self.files if path.startswith(prefix) and regexp.fullmatch(path[len(prefix) :]))


def _regexp_for_glob(pattern: str) -> str:
    """Return a regular expression for a glob pattern: `*` stays within a folder, `**/` is any number of them."""
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    regexps = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    return "".join(regexps.get(part) or re.escape(part) for part in parts)
