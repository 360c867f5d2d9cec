"""The files of a module that have changed since it was packed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from shared.errors import BadData, BadName, NotFound
from shared.filesystem.files import open_beneath

from .metadata import read_json

SUMS: Final = "checksums.json"
MAX_FILES: Final = 100_000


class NoChecksums(NotFound):
    """A module that came without the sums of its files."""

    def __init__(self) -> None:
        super().__init__("No file containing checksums found.")


def module_root(path: Path) -> Path | None:
    """Return the nearest folder, from `path` upwards, that has a metadata.json; None when there is none."""
    absolute = Path(path).absolute()
    return next((folder for folder in (absolute, *absolute.parents) if (folder / "metadata.json").is_file()), None)


def changed_files(module: Path) -> list[str]:
    """
    Return the files of a module that are missing or differ from its checksums.json, or from the sums in its metadata.json. Blocks.

    Raises:
        NoChecksums: it has neither. BadData: they make no sense.
    """
    return [name for name, total in _sums(module).items() if Path(name).name != SUMS and _md5(module, name) != total]


def has_changes(module: Path) -> bool:
    """Return whether files of a module have changed; False when it is unknown."""
    try:
        return bool(changed_files(module))
    except (NotFound, BadData):
        return False


def _sums(module: Path) -> dict[str, Any]:
    try:
        sums = read_json(module, SUMS)
    except NotFound:
        try:
            metadata = read_json(module, "metadata.json")
        except NotFound:
            raise NoChecksums from None
        sums = metadata.get("checksums") if isinstance(metadata, dict) else None
        if not sums:
            raise NoChecksums from None
    if not isinstance(sums, dict) or len(sums) > MAX_FILES:
        raise BadData(f"The checksums in {module} are no JSON object of at most {MAX_FILES} files")
    return sums


def _md5(module: Path, name: str) -> str | None:
    """Return the sum of a file, None when there is no such file in the module."""
    total = hashlib.md5(usedforsecurity=False)
    try:
        with open_beneath(module, name) as file:
            while block := file.read(1 << 18):
                total.update(block)
    except (NotFound, BadName):
        return None
    return total.hexdigest()
