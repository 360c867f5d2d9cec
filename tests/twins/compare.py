"""What is not the same on the twins, line by line."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.twins.use import Use

# What differs and is no fault, in any use; each with its reason.
EVERYWHERE = {
    r"^file (/etc|/var/lib)/puppet/": "each program keeps its own state below its own folders",
    r"^file /etc/(ssl/private|ssl/certs)/ssl-cert-snakeoil": "keys are random",
    r"^file /etc/(machine-id|resolv.conf)": "systemd writes them at each boot",
}


def differences(use: Use, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Return the differences between what the reference did and what ours did, without those that are named with a reason."""
    patterns = [re.compile(pattern) for pattern in (*EVERYWHERE, *use.ignored)]
    return [line for line in _all(theirs, ours) if not any(pattern.search(line) for pattern in patterns)]


def _all(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for number, (their_run, our_run) in enumerate(zip(theirs["runs"], ours["runs"], strict=True), 1):
        for line in _run(their_run, our_run):
            yield f"run {number}: {line}"
    for path in sorted({*theirs["files"], *ours["files"]}):
        if not _follows_from_its_folder(path, theirs["files"], ours["files"]):
            yield from _file(path, theirs["files"].get(path), ours["files"].get(path))
    for key in ("packages", "units", "services"):
        yield from (f"{key}: {line}" for line in _lines(theirs[key], ours[key]))
    for command, output in theirs["asked"].items():
        yield from (f"asked {command!r}: {line}" for line in _lines(output.splitlines(), ours["asked"][command].splitlines()))


def _run(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for key in ("exit", "status", "counts"):
        if theirs.get(key) != ours.get(key):
            yield f"{key}: {theirs.get(key)!r}, ours {ours.get(key)!r}"
    if "logs" not in theirs or "logs" not in ours:
        yield from (f"printed {line}" for line in _lines(theirs["printed"].splitlines(), ours["printed"].splitlines()))
        return
    their_resources, our_resources = theirs["resources"], ours["resources"]
    for ref in sorted({*their_resources, *our_resources}):
        one, two = their_resources.get(ref), our_resources.get(ref)
        if one != two:
            yield f"{ref}: {_short(one)}, ours {_short(two)}"
    logs = [[f"{level} {source}: {message}" for level, source, message in run["logs"]] for run in (theirs, ours)]
    yield from (f"log {line}" for line in _lines(*logs))


def _follows_from_its_folder(path: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Return whether a file is missing on one side because its folder is."""
    folder = path.rpartition("/")[0]
    return any(path not in one and folder in other and folder not in one for one, other in ((theirs, ours), (ours, theirs)))


def _file(path: str, theirs: Mapping[str, Any] | None, ours: Mapping[str, Any] | None) -> Iterator[str]:
    if theirs == ours:
        return
    if theirs is None or ours is None:
        yield f"file {path}: {'not with the reference' if theirs is None else 'not with ours'}"
        return
    for key in sorted({*theirs, *ours} - {"text"}):
        if theirs.get(key) != ours.get(key):
            text = " | ".join(_lines(theirs.get("text", "").splitlines(), ours.get("text", "").splitlines()))
            yield f"file {path}: {key} {theirs.get(key)}, ours {ours.get(key)}" if key != "sha256" else f"file {path}: content {text}"


def _lines(theirs: Iterable[str], ours: Iterable[str]) -> Iterator[str]:
    """Return the lines that one of the two lacks, with `-` those that ours lacks."""
    for line in difflib.unified_diff(list(theirs), list(ours), lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            yield line


def _short(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
