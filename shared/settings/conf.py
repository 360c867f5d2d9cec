"""puppet.conf: reading it, and changing one setting of it without touching the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError, Location

_SECTION = re.compile(r"\s*\[([\w.-]+)\]\s*", re.ASCII)
_SETTING = re.compile(r"\s*([\w.-]+)\s*=\s*(.*\S|)\s*", re.ASCII)
_METADATA = re.compile(r"(.*\S|)\s*\{[^{}]*(?:owner|group|mode)\s*=[^{}]*\}")
SECTIONS = frozenset({"main", "server", "master", "agent", "user"})


@dataclass(frozen=True, slots=True)
class ConfEntry:
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Conf:
    """The settings of a file by section (`server` is stored as `master`); names with `-` turned into `_`."""

    path: Path | None = None
    sections: Mapping[str, Mapping[str, ConfEntry]] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, str]:
        return {key: entry.value for key, entry in self.sections.get(name, {}).items()}


def parse(text: str, path: Path | None = None, *, any_section: bool = False) -> Conf:
    """
    Return the settings in a puppet.conf.

    Settings before any section belong to `main`. There are no trailing comments: they are part of the value. The suffix
    `{owner = …, mode = …}` of 3.x is cut off.

    Raises:
        ConfigError: with file and line; Puppet ignores the whole file then, which is for the caller to decide.
    Source: command line reference 5.1.
    """
    sections: dict[str, dict[str, ConfEntry]] = {}
    current = "main"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if match := _SECTION.fullmatch(line):
            current = {"server": "master"}.get(match[1], match[1])
            if current not in SECTIONS and not any_section:
                raise ConfigError(
                    f"Illegal section '{match[1]}' in config file",
                    where=_at(path, number),
                    hint=f"Sections are {', '.join(sorted(SECTIONS))}.",
                )
            sections.setdefault(current, {})
        elif match := _SETTING.fullmatch(line):
            value = match[2]
            if value.endswith("}") and (metadata := _METADATA.fullmatch(value)):
                value = metadata[1]
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            sections.setdefault(current, {})[match[1].replace("-", "_")] = ConfEntry(value, number)
        else:
            raise ConfigError(f"Could not match line {line.strip()[:80]!r}", where=_at(path, number), hint="Write: name = value")
    return Conf(path, sections)


def read(path: Path) -> Conf:
    """Return the file's settings; none when there is no file."""
    try:
        return parse(path.read_text("utf-8"), path)
    except FileNotFoundError:
        return Conf(path)
    except UnicodeDecodeError as err:
        raise ConfigError(f"{path} is not UTF-8") from err
    except OSError as err:
        raise ConfigError(f"Could not read {path}: {err.strerror}") from err


def _at(path: Path | None, line: int) -> Location:
    return Location(str(path) if path else None, line)


def with_setting(text: str, section: str, name: str, value: str) -> str:
    """Return `text` with one setting changed or added; comments and order stay."""
    lines = text.splitlines()
    start, end = _bounds(lines, section)
    for index in range(start, end):
        if (match := _SETTING.fullmatch(lines[index])) and match[1].replace("-", "_") == name and not lines[index].lstrip().startswith("#"):
            lines[index] = f"{name} = {value}"
            return "\n".join(lines) + "\n"
    if start < 0:
        return "\n".join([*lines, f"[{section}]", f"{name} = {value}"]) + "\n"
    while end > start and not lines[end - 1].strip():
        end -= 1
    lines.insert(end, f"{name} = {value}")
    return "\n".join(lines) + "\n"


def without_setting(text: str, section: str, name: str) -> tuple[str, str | None]:
    """Return `text` without one setting, and the line that was taken out (None: it was not there)."""
    lines = text.splitlines()
    start, end = _bounds(lines, section)
    for index in range(max(start, 0), end):
        if (match := _SETTING.fullmatch(lines[index])) and match[1].replace("-", "_") == name and not lines[index].lstrip().startswith("#"):
            removed_line = lines.pop(index)
            return "\n".join(lines) + "\n", removed_line.strip()
    return text, None


def _bounds(lines: list[str], section: str) -> tuple[int, int]:
    """Return the first and the last line (exclusive) of a section's settings; (-1, -1) when there is no such section."""
    names = {"master", "server"} if section in ("master", "server") else {section}
    start = -1
    for index, line in enumerate(lines):
        match = _SECTION.fullmatch(line)
        if match and start >= 0:
            return start, index
        if match and match[1] in names:
            start = index + 1
    return (start, len(lines)) if start >= 0 else (-1, -1)
