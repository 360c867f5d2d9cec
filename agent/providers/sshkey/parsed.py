"""The provider of `sshkey`: the known hosts of all users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.types.sshkey import Sshkey

from ..parsed.base import ParsedFile
from ..parsed.records import LineFormat


class KnownHostsFormat(LineFormat):
    """A line is names, type, key; lines with markers (`@cert-authority`) and keys in the form of SSH 1 stay as they are."""

    def values_of(self, line: str) -> dict[str, Any] | None:
        if line.lstrip().startswith(("#", "@")):
            return None
        words = line.split(None, 3)
        if len(words) < 3 or words[1].isdigit():
            return None
        name, *aliases = words[0].split(",")
        return {"name": name, "type": words[1], "key": words[2], "host_aliases": aliases, "_comment": " ".join(words[3:])}

    def key(self, values: Mapping[str, Any]) -> str:
        return f"{values['name']}@{values['type']}"

    def line(self, values: Mapping[str, Any]) -> str:
        for field in ("name", "type", "key"):
            if not values.get(field):
                raise ResourceError(f"Field '{field}' is required")
        names = ",".join([values["name"], *values.get("host_aliases", ())])
        return " ".join(filter(None, (names, values["type"], values["key"], values.get("_comment"))))


class KnownHosts(ParsedFile[Sshkey], type=Sshkey, name="parsed"):
    """Manages one line a host and type of key."""

    def complete_values(self, resource: Sshkey, values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "type": resource.value_of("type")}
