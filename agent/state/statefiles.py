"""
The state files of an agent: state.yaml, transactionstore.yaml, and the last_run files that other programs read.

A file that cannot be read is moved aside to `<name>.bad` and replaced by a new one: state never stops a run.
Source: protocol reference 6.5, resource layer reference 3.6.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shared.data import plainjson, plainyaml
from shared.data.plainyaml import Symbol, YamlTimestamp
from shared.data.yamlscalars import Psych
from shared.errors import BadData
from shared.filesystem.files import make_directory, read_regular, sweep, write_atomic
from shared.ral.catalog import RalCatalog
from shared.ral.components import Component
from shared.settings import AgentSettings

from .runlog import RunLog

DEFAULT_TTL = timedelta(days=32)


def _load(path: Path, log: RunLog, what: str) -> dict[str, Any]:
    """Return the map in a YAML file; {} for a missing file, and for a broken one, which is moved aside. Blocks."""
    try:
        data = _read(read_regular(path))
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise BadData("not a map")
    except FileNotFoundError:
        return {}
    except (BadData, OSError) as err:
        reason = err.message if isinstance(err, BadData) else str(err.strerror)
        log.err(f"{what} {path} is corrupt ({reason}); replacing")
        _move_aside(path, log)
        return {}
    return data


_TIMES = Psych(times=True)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\d* ([+-]\d\d:\d\d)")


def _read(body: bytes) -> Any:
    """Return the data in a state file. The lines that agents write are read one by one, many times faster than YAML; all else as YAML."""
    if body.startswith(b"{"):
        return plainjson.loads(body)
    times = _read_times(body)
    return plainyaml.loads(body, aliases=True, scalars=_TIMES) if times is None else times


def _read_times(body: bytes) -> dict[str, dict[str, datetime]] | None:
    """Return a map of resources to `:checked` and `:synced`; None when there is anything else in the file."""
    times_by_resource: dict[str, dict[str, datetime]] = {}
    entry: dict[str, datetime] = {}
    try:
        lines = body.decode().splitlines()
    except UnicodeDecodeError:
        return None
    if not lines or lines[0] != "---":
        return None
    for line in lines[1:]:
        if line.startswith("  :"):
            name, _, value = line[3:].partition(": ")
            when = _TIME.fullmatch(value)
            if name not in ("checked", "synced") or when is None:
                return None
            entry[name] = datetime.fromisoformat(when[1] + when[2])
        elif line.endswith("':") and line.startswith("'"):
            entry = times_by_resource.setdefault(line[1:-2].replace("''", "'"), {})
        elif line.endswith(":") and line[0].isalpha() and ": " not in line and " #" not in line:
            entry = times_by_resource.setdefault(line[:-1], {})
        else:
            return None
    return times_by_resource


def _move_aside(path: Path, log: RunLog) -> None:
    try:
        path.rename(path.with_name(path.name + ".bad"))
    except OSError as err:
        log.err(f"Could not rename corrupt {path}: {err.strerror}; remove it manually")


def _timestamp(when: datetime) -> YamlTimestamp:
    utc = when.astimezone(UTC)
    return YamlTimestamp(utc.strftime("%Y-%m-%d %H:%M:%S.") + f"{utc.microsecond:06d}000 +00:00")


def remove_leftovers(settings: AgentSettings) -> int:
    """
    Remove the files that killed runs left half-written an hour ago or more, among them cached catalogs with their secrets. Blocks.

    Returns how many files were removed.
    """
    caches = [folder for root in (settings.client_datadir, settings.clientyamldir) if root.is_dir() for folder in root.iterdir()]
    ssl = [settings.ssldir, settings.certdir, settings.requestdir, settings.privatekeydir, settings.publickeydir]
    return sum(sweep(folder) for folder in (settings.statedir, settings.publicdir, *caches, *ssl) if folder.is_dir())


class StateFile:
    """
    Times and audited values by resource reference; `checked` and `synced` are times, other names are audited properties.

    The file has Puppet's format (`:checked: <time>`), so that either agent can take over from the other.
    """

    def __init__(self, path: Path | None, *, ttl: timedelta = DEFAULT_TTL) -> None:
        self.path = path
        self.ttl = ttl  # entries not checked for that long are dropped; zero: never
        self._entries: dict[str, dict[str, Any]] = {}

    async def load(self, log: RunLog) -> None:
        if self.path is not None:
            loaded = await asyncio.to_thread(_load, self.path, log, "State file")
            self._entries = {str(ref): _entry_of(entry) for ref, entry in loaded.items() if isinstance(entry, dict)}

    def entry(self, ref: str) -> dict[str, Any]:
        """Return the entry of one resource, a map that may be changed."""
        return self._entries.setdefault(ref, {})

    def last_checked(self, ref: str) -> datetime:
        """Return when a resource was last evaluated, in local time; the epoch when it never was."""
        when = self._entries.get(ref, {}).get("checked")
        return when.astimezone() if isinstance(when, datetime) else datetime.fromtimestamp(0).astimezone()

    async def store(self, log: RunLog, now: datetime) -> None:
        """Write the file; a full disk or a forbidden directory is an error in the log, not the end of the run."""
        if self.path is None:
            return
        cutoff = now - self.ttl if self.ttl else None
        current_entries = {ref: entry for ref, entry in self._entries.items() if entry and not _is_expired(entry, cutoff)}
        data = {ref: {Symbol(name): _yaml_value(value) for name, value in entry.items()} for ref, entry in current_entries.items()}
        if not self.path.exists():
            log.info(f"Creating state file {self.path}")
        await _write(self.path, data, 0o660, log)


def _entry_of(entry: dict[Any, Any]) -> dict[str, Any]:
    return {str(name).removeprefix(":"): _with_zone(value) for name, value in entry.items()}


def _with_zone(value: Any) -> Any:
    """Return a time with its zone: YAML reads times without one when they were written in UTC."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _yaml_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return _timestamp(value)
    return Symbol("absent") if value == "absent" else value


def _is_expired(entry: Mapping[str, Any], cutoff: datetime | None) -> bool:
    checked = entry.get("checked")
    return cutoff is not None and isinstance(checked, datetime) and checked < cutoff


class TransactionStore:
    """The value of each property at the end of the last run, which distinguishes a repair of drift from a changed manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._old: dict[str, Any] = {}
        self._new: dict[str, Any] = {}

    async def load(self, log: RunLog) -> None:
        loaded = await asyncio.to_thread(_load, self.path, log, "Transaction store file")
        resources = loaded.get("resources")
        self._old = resources if isinstance(resources, dict) else {}

    def system_value(self, ref: str, name: str) -> list[Any] | None:
        """Return the value that a property had when the last run ended; None when it is unknown."""
        try:
            value = self._old[ref]["parameters"][name]["system_value"]
        except (KeyError, TypeError):
            return None
        return value if isinstance(value, list) or value is None else [value]

    def remember(self, ref: str, name: str, value: list[Any] | None) -> None:
        self._new.setdefault(ref, {}).setdefault("parameters", {})[name] = {"system_value": value}

    def carry_over(self, ref: str) -> None:
        """Keep the old values of a resource that was not evaluated."""
        if ref in self._old:
            self._new[ref] = self._old[ref]

    async def store(self, log: RunLog) -> None:
        await _write(self.path, plainjson.dumps({"resources": self._new}), 0o640, log)  # JSON is YAML, and much faster to read


async def _write(path: Path, data: bytes | dict[str, Any], mode: int, log: RunLog, *, folder_mode: int | None = None) -> None:
    """Write a file; log an error when that fails. With `folder_mode` a missing directory is created with that mode."""

    def write() -> None:
        if folder_mode is not None:
            make_directory(path.parent, mode=folder_mode)
        write_atomic(path, data if isinstance(data, bytes) else plainyaml.dumps(data), mode=mode)

    try:
        await asyncio.to_thread(write)
    except OSError as err:
        log.err(f"Could not write {path}: {err.strerror}")


async def write_report(path: Path, body: bytes, log: RunLog) -> None:
    """Write last_run_report.yaml, readable by its owner and group only, because of the diffs in it."""
    await _write(path, body, 0o640, log)


async def write_summary(path: Path, summary: Mapping[str, Any], log: RunLog) -> None:
    """Write last_run_summary.yaml, which monitoring reads, with the sections of `Report.to_summary`."""
    await _write(path, dict(summary), 0o644, log, folder_mode=0o755)


async def write_classes(path: Path, classes: Iterable[str], log: RunLog) -> None:
    """Write classes.txt: one class a line, in the catalog's order."""
    await _write(path, "".join(f"{name}\n" for name in classes).encode(), 0o640, log)


async def write_resources(path: Path, resources: RalCatalog, log: RunLog) -> None:
    """Write resources.txt: the references of all managed resources, in lower case."""
    managed = (str(r.ref).lower() for r in resources.order if not isinstance(r, Component) and r.manages_anything)
    await _write(path, "".join(f"{ref}\n" for ref in managed).encode(), 0o640, log)
