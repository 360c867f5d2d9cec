"""The provider of `host`: lines of a file like /etc/hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.types.host import HostEntry

from ..parsed.base import ParsedFile
from ..parsed.records import LineFormat

_LINE = re.compile(r"([0-9a-f:]\S+)\s+([^#\s+]\S+)(.*)", re.IGNORECASE)


class HostsFormat(LineFormat):
    """A line is address, name, aliases, comment."""

    def values_of(self, line: str) -> dict[str, Any] | None:
        match = _LINE.fullmatch(line)
        if line.startswith("#") or not match:
            return None
        address, name, rest = match.groups()
        names, _, comment = rest.partition("#")
        values: dict[str, Any] = {"ip": address, "name": name, "comment": comment.lstrip()}
        if aliases := names.split():
            values["host_aliases"] = aliases
        return values

    def line(self, values: Mapping[str, Any]) -> str:
        for needed in ("ip", "name"):
            if not values.get(needed):
                raise ResourceError(f"{needed} is a required attribute for hosts")
        parts = [values["ip"], values["name"]]
        if "host_aliases" in values:
            aliases = values["host_aliases"]
            parts.append(aliases if isinstance(aliases, str) else " ".join(aliases))
        if values.get("comment"):
            parts.append(f"# {values['comment']}")
        return "\t".join(parts)


class Hosts(ParsedFile[HostEntry], type=HostEntry, name="parsed"):
    """Manages one line a host; addresses that name no host and comments stay as they are."""
