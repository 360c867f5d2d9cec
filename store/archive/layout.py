"""The layout of an archive: the file for each kind of command, and the commands' versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..commands.hashes import json_hash

ROOT = "puppetdb-bak"
METADATA = f"{ROOT}/export-metadata.json"


@dataclass(frozen=True, slots=True)
class Folder:
    """
    A folder of an archive; all of its files are payloads of one command.

    `is_dated`: a file is called by the certname and a hash of the time of the payload, else by the certname alone.
    """

    name: str
    command: str
    version: int
    is_dated: bool = True


FOLDERS = (
    Folder("configure_expiration", "configure expiration", 1),
    Folder("facts", "replace facts", 5, is_dated=False),
    Folder("catalogs", "replace catalog", 9),
    Folder("catalog_inputs", "replace catalog inputs", 1),
    Folder("reports", "store report", 8),
    Folder("deactivate_node", "deactivate node", 3),
)
"""In the order in which they are imported. PuppetDB knows all but the last, which it ignores."""

FOLDERS_BY_NAME: Mapping[str, Folder] = {folder.name: folder for folder in FOLDERS}
_DATED = re.compile(r"(.+)-[0-9a-fA-F]{40}", re.DOTALL)


def file_name(folder: Folder, certname: str, time: str) -> str:
    """Return the path of a payload in an archive; `time`: the payload's own, as the payload has it."""
    dated = f"{certname}-{json_hash(time)}" if folder.is_dated else certname
    return f"{ROOT}/{folder.name}/{dated}.json"


def place_of(name: str) -> tuple[Folder, str] | None:
    """Return the folder and the certname of a path in an archive; None where it is not the path of a payload."""
    parts = name.split("/")
    if len(parts) != 3 or parts[0] != ROOT or not parts[2].endswith(".json"):
        return None
    folder = FOLDERS_BY_NAME.get(parts[1])
    if folder is None:
        return None
    stem = parts[2].removesuffix(".json")
    if not folder.is_dated:
        return folder, stem
    match = _DATED.fullmatch(stem)
    return (folder, match[1]) if match else None
