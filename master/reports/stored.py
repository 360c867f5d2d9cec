"""The latest stored report of each node, of which few lines are read, so that thousands take little memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from shared.names import is_certname

_FILE = re.compile(r"(\d{12})(?:-(\d{1,5}))?\.yaml", re.ASCII)
_FIELD = re.compile(rb"(status|environment|puppet_version|noop|corrective_change|cached_catalog_status): *(.*)")  # at a line's beginning
_FIELD_IN_BODY = re.compile(rb"\n" + _FIELD.pattern)  # resources and events have fields of these names too, further to the right
_FIELDS = 6
MAX_LINE = 64 * 1024  # bytes of a line; longer ones hold no field that is needed


@dataclass(frozen=True, slots=True)
class LatestReport:
    """
    A node and its last stored report.

    Attributes:
        received: When the master stored it, UTC, by its own clock to the minute; None: there is no report.
        status: failed, changed or unchanged; unknown when the file does not say, none without a report.
    """

    node: str
    received: datetime | None = None
    status: str = "none"
    environment: str = ""
    puppet_version: str = ""
    noop: bool = False
    corrective_change: bool = False
    cached_catalog: bool = False
    file: str = ""

    def is_silent(self, now: datetime, seconds: float) -> bool:
        """Return whether the node has sent nothing for this time."""
        return self.received is None or (now - self.received).total_seconds() > seconds


def latest_reports(root: Path, names: Iterable[str] = ()) -> Iterator[LatestReport]:
    """
    Yield the last run of each node that has a folder of reports below `root`, and of those in `names`, by name. Blocks; OSError.

    A report that cannot be read, or vanishes while it is, has the status `unknown`.
    """
    folders = {entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)} if root.is_dir() else set()
    for node in sorted(folders | set(names)):
        if not is_certname(node):
            continue  # not the folder of a node
        newest = newest_report(root / node) if node in folders else None
        yield LatestReport(node) if newest is None else read_latest_report(node, newest)


def newest_report(folder: Path) -> Path | None:
    """Return the newest report in a node's folder, by its name; None when there is none. Blocks; raises OSError."""
    newest: tuple[str, int, str] | None = None
    for entry in os.scandir(folder):
        match = _FILE.fullmatch(entry.name)
        if match and entry.is_file(follow_symlinks=False):
            candidate = (match[1], int(match[2] or 0), entry.name)
            newest = candidate if newest is None else max(newest, candidate)
    return folder / newest[2] if newest else None


def read_latest_report(node: str, file: Path) -> LatestReport:
    """Read only those fields of a report that are on lines of their own. Blocks."""
    try:
        with file.open("rb") as lines:
            return report_in(lines, node, _time_of(file.name), str(file))
    except OSError:
        return LatestReport(node, _time_of(file.name), "unknown", file=str(file))


def report_in(lines: IO[bytes], node: str, received: datetime | None, file: str = "") -> LatestReport:
    """Return what the YAML of a report says on lines of their own. Blocks; OSError."""
    fields: dict[str, str] = {}
    while len(fields) < _FIELDS and (line := lines.readline(MAX_LINE)):
        if match := _FIELD.match(line):
            fields.setdefault(match[1].decode("ascii"), _text(match))
        while line and not line.endswith(b"\n"):
            line = lines.readline(MAX_LINE)  # the rest of a line that is too long begins no field
    return _latest(fields, node, received, file)


def report_of(body: bytes, node: str, received: datetime) -> LatestReport:
    """Do the same for a report in memory."""
    fields: dict[str, str] = {}
    for match in _FIELD_IN_BODY.finditer(body):
        fields.setdefault(match[1].decode("ascii"), _text(match))
    return _latest(fields, node, received, "")


def _text(match: re.Match[bytes]) -> str:
    return match[2].decode("utf-8", "replace").strip().strip("'\"")


def _latest(fields: Mapping[str, str], node: str, received: datetime | None, file: str) -> LatestReport:
    return LatestReport(
        node,
        received,
        fields.get("status") or "unknown",
        fields.get("environment", ""),
        fields.get("puppet_version", ""),
        fields.get("noop") == "true",
        fields.get("corrective_change") == "true",
        fields.get("cached_catalog_status", "not_used") not in ("not_used", "null", ""),
        file,
    )


def _time_of(name: str) -> datetime | None:
    try:
        return datetime.strptime(name[:12], "%Y%m%d%H%M").replace(tzinfo=UTC)
    except ValueError:
        return None  # the digits are no time
