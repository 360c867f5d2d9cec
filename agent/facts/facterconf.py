"""facter.conf: the facts that are blocked, and those that are cached between runs. Source: facts reference 7."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData
from shared.filesystem.files import read_regular, write_atomic

log = logging.getLogger("puppet.facts")

CONF_FILE = "/etc/puppetlabs/facter/facter.conf"
CACHE_FOLDER = "/opt/puppetlabs/facter/cache/cached_facts"

# Facter's groups, by the roots of their structured facts.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Xen": ("xen",),
    "augeas": ("augeas",),
    "desktop management interface": ("dmi",),
    "disks": ("disks",),
    "file system": ("mountpoints", "filesystems", "partitions"),
    "fips": ("fips_enabled",),
    "hypervisors": ("hypervisors",),
    "id": ("identity",),
    "kernel": ("kernel", "kernelversion", "kernelrelease", "kernelmajversion"),
    "load_average": ("load_averages",),
    "memory": ("memory",),
    "networking": ("networking",),
    "operating system": ("os",),
    "path": ("path",),
    "processor": ("processors",),
    "ssh": ("ssh",),
    "timezone": ("timezone",),
    "uptime": ("system_uptime",),
    "virtualization": ("virtual", "is_virtual"),
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONG = {"nano": "ns", "micro": "us", "milli": "ms", "sec": "s", "min": "m", "hour": "h", "day": "d"}


@dataclass(frozen=True, slots=True)
class FacterConf:
    """
    The content of facter.conf.

    Attributes:
        blocked: names of facts (dotted ones too) and of external facts' files; `legacy` among them: all flat names.
        ttls: seconds by group or fact.
        groups: facts by group; Facter's own and those of the file.
        external: folders of external facts, instead of the system's.
        custom: more folders of custom facts.
        no_external, no_custom, no_ruby: leave such facts out, wherever they are.
    """

    blocked: frozenset[str] = frozenset()
    ttls: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: GROUPS)
    external: tuple[Path, ...] = ()
    custom: tuple[Path, ...] = ()
    no_external: bool = False
    no_custom: bool = False
    no_ruby: bool = False

    def without_blocked(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return `facts` without those that are blocked, inside structures too."""
        unblocked: dict[str, Any] = {name: value for name, value in facts.items() if name not in self.blocked}
        for name in self.blocked:
            first, *rest = name.split(".")
            if rest and isinstance(unblocked.get(first), dict):
                unblocked[first] = _without(unblocked[first], rest)
        return unblocked


def _without(value: Any, path: list[str]) -> Any:
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: inner for name, inner in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def read_conf(path: Path) -> FacterConf:
    """Return the settings in the file; without the file, none. A file that cannot be read causes a warning. Blocks."""
    try:
        text = path.read_text("utf-8")
        from shared.data import hocon

        return parse_conf(hocon.loads(text))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError, BadData) as err:
        log.warning("Facter failed to read config file %s: %s", path, err)
    return FacterConf()


def parse_conf(data: Any) -> FacterConf:
    """Return the settings in the parsed file; raise BadData when it does not have the form of facter.conf."""
    section = data.get("facts", {}) if isinstance(data, dict) else {}
    own = data.get("fact-groups", {}) if isinstance(data, dict) else {}
    everything = data.get("global", {}) if isinstance(data, dict) else {}
    if not isinstance(section, dict) or not isinstance(own, dict) or not isinstance(everything, dict):
        raise BadData("global, facts and fact-groups must be maps")
    groups = {**GROUPS, **{str(name): tuple(map(str, _list(names))) for name, names in own.items()}}
    blocked = {name for entry in _list(section.get("blocklist")) for name in (str(entry), *groups.get(str(entry), ()))}
    ttls: dict[str, float] = {}
    for entry in _list(section.get("ttls")):
        for name, text in entry.items() if isinstance(entry, dict) else ():
            ttls[str(name)] = seconds_of(str(text))
    return FacterConf(
        frozenset(blocked),
        ttls,
        groups,
        external=tuple(Path(str(folder)) for folder in _list(everything.get("external-dir"))),
        custom=tuple(Path(str(folder)) for folder in _list(everything.get("custom-dir"))),
        no_external=everything.get("no-external-facts") is True,
        no_custom=everything.get("no-custom-facts") is True,
        no_ruby=everything.get("no-ruby") is True,
    )


def _list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def seconds_of(text: str) -> float:
    """Return the seconds that `30 days`, `1 hour` or `500` (milliseconds) mean; BadData for anything else."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text)
    unit = match[2] if match else "?"
    unit = next((short for long, short in _LONG.items() if unit.startswith(long)), unit)
    if match is None or unit not in _UNITS:
        raise BadData(f"Could not parse time unit {text!r} (try ns, us, ms, s, m, h, d, or their names)")
    return int(match[1]) * _UNITS[unit]


class FactCache:
    """
    Facts that are cached between runs, a JSON file for each group; `clock` gives seconds since 1970.

    The files have Facter's own form, so that either program can use the other's cache.
    """

    def __init__(self, conf: FacterConf, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.conf = conf
        self.folder = folder
        self.clock = clock
        self.stale: dict[str, tuple[str, ...]] = {}

    def load(self) -> dict[str, Any]:
        """Return the cached facts that have not expired; afterwards `stale` has the groups that have to be stored. Blocks."""
        cached: dict[str, Any] = {}
        for group, ttl in self.conf.ttls.items():
            path = self.folder / group
            try:
                young = path.stat().st_mtime + ttl > self.clock()
                data = plainjson.loads(read_regular(path)) if young else None
            except (OSError, BadData):
                data = None
            if isinstance(data, dict):
                cached |= _nest({name: value for name, value in data.items() if name != "cache_format_version"})
            else:
                self.stale[group] = self.conf.groups.get(group, (group,))
        return cached

    def store(self, facts: Mapping[str, Any]) -> None:
        """Write the groups that had expired, and remove files of groups without a ttl. A full disk causes a warning. Blocks."""
        for group, names in self.stale.items():
            cached = {name: facts[name] for name in names if name in facts}
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                write_atomic(self.folder / group, json.dumps({**cached, "cache_format_version": 1}, indent=2).encode(), mode=0o600)
            except OSError as err:
                log.warning("Could not write cache of %s: %s", group, err.strerror)
        for path in self._files():
            if path.name not in self.conf.ttls:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterable[Path]:
        try:
            return [path for path in self.folder.iterdir() if path.is_file()]
        except OSError:
            return []


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return Facter's cached form `{"os.name": …}` as structures: `{"os": {"name": …}}`."""
    structure: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        level = structure
        for part in path:
            level = level.setdefault(part, {})
        level[last] = value
    return structure
