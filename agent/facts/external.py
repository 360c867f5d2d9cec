"""External facts: data files and programs in facts.d directories. Source: facts reference 5."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data import plainjson, plainyaml
from shared.errors import BadData, PuppetError
from shared.filesystem.files import read_regular
from shared.names import quoted_for_log
from shared.programs import run_bounded

log = logging.getLogger("puppet.facts")

MAX_FILE = 4 * 1024 * 1024  # bytes of a data file
_IGNORED = frozenset({".bak", ".orig", ".conf", ".md", ".yml", ".rpmnew", ".rpmsave", ".dpkg-dist", ".dpkg-old"})


@dataclass(frozen=True, slots=True)
class ExternalFactLimits:
    """The seconds that a program may take, and the bytes that it may print."""

    seconds: float = 300.0
    output: int = 1024 * 1024


def parse_text(text: str) -> dict[str, Any]:
    """Return the facts in lines `key=value`, split at the first `=`, nothing trimmed; other lines are ignored."""
    facts = {}
    for line in text.split("\n"):
        name, separator, value = line.removesuffix("\r").partition("=")
        if separator and name:
            facts[name] = value
    return facts


def parse_map(data: Any) -> dict[str, Any]:
    """Return a file's top level; BadData when it is not a map. An empty file is an empty map."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadData("the top level is not a map of facts")
    return {str(name): value for name, value in data.items()}


def parse_output(text: str) -> dict[str, Any]:
    """Return the facts that a program printed: a YAML or JSON map when it is one, else lines `key=value`; BadData when it is neither."""
    try:
        data = plainyaml.loads(text)
    except BadData:
        if facts := parse_text(text):
            return facts
        raise
    return parse_map(data) if isinstance(data, dict) else parse_text(text)


def reason_to_distrust(info: os.stat_result, euid: int) -> str:
    """Return why a program is not run, because somebody else could change code that would run as us; '' when it may be run."""
    if info.st_uid not in (0, euid):
        return f"it belongs to the user {info.st_uid}"
    if info.st_mode & stat.S_IWOTH:
        return "everybody may write to it"
    if info.st_mode & stat.S_IWGRP and info.st_gid != 0:
        return f"the group {info.st_gid} may write to it"
    return ""


def files_of(directory: Path) -> list[Path]:
    """Return the files of one directory in the order in which they count: reverse alphabetical, hidden ones left out."""
    try:
        paths = sorted((path for path in directory.iterdir() if not path.name.startswith(".")), reverse=True)
    except OSError:
        return []
    files = []
    for path in paths:
        if path.is_file():
            files.append(path)
        else:
            log.log(logging.DEBUG if path.is_dir() else logging.WARNING, "%s is no file and has no facts", path)
    return files


async def external_facts(
    directories: Sequence[Path],
    *,
    environ: Mapping[str, str],
    limits: ExternalFactLimits | None = None,
    blocked: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """
    Return the facts of all directories; the first value of a fact wins. Programs run at the same time.

    A file that is wrong is an error in the log, and the others go on. `blocked`: names of files that are left out.
    """
    files = [file for directory in directories for file in await asyncio.to_thread(files_of, directory) if file.name not in blocked]
    results = await asyncio.gather(*(_facts_of(file, environ, limits or ExternalFactLimits()) for file in files))
    merged: dict[str, Any] = {}
    for file, facts in zip(files, results, strict=True):
        for name, value in facts.items():
            if _is_finite(value):
                merged.setdefault(name.lower(), value)
            else:
                log.error("The fact %s of %s is dropped: it has a number that is not finite", quoted_for_log(name), file)
    return merged


def _is_finite(value: Any) -> bool:
    """Return whether all numbers in a value are finite: JSON, in which facts are sent, has no others."""
    if isinstance(value, dict | list):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


async def _facts_of(path: Path, environ: Mapping[str, str], limits: ExternalFactLimits) -> dict[str, Any]:
    readers = {".txt": parse_text, ".yaml": lambda text: parse_map(plainyaml.loads(text)), ".json": _json}
    reader = readers.get(path.suffix)
    try:
        if reader is not None:
            facts = reader(await asyncio.to_thread(_read, path))
        elif path.suffix in _IGNORED or not os.access(path, os.X_OK):
            return {}
        else:
            facts = await _run(path, environ, limits)
    except (PuppetError, OSError) as err:
        log.error("Failed to handle %s as external facts: %s", path, err)
        return {}
    if not facts:
        log.debug("%s has no facts", path)
    return facts


def _json(text: str) -> dict[str, Any]:
    return parse_map(plainjson.loads(text.encode("utf-8", "surrogateescape")))


def _read(path: Path) -> str:
    return read_regular(path, MAX_FILE).decode("utf-8", "replace")


async def _run(path: Path, environ: Mapping[str, str], limits: ExternalFactLimits) -> dict[str, Any]:
    for place in (path, path.parent):
        if reason := reason_to_distrust(await asyncio.to_thread(place.stat), os.geteuid()):
            whose = "" if place == path else f"{quoted_for_log(str(place))}: "
            log.warning("Not running the external fact %s: %s%s", quoted_for_log(str(path)), whose, reason)
            return {}
    output = await run_bounded(
        [str(path)],
        timeout=limits.seconds,
        most=limits.output,
        environ={**environ, "LC_ALL": "C", "LANG": "C"},
        what="gather its facts",
    )
    return parse_output(output.decode("utf-8", "replace"))
