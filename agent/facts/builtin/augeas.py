"""The fact augeas: the version of the library."""

from __future__ import annotations

import re
from typing import Any

from .host import Host

_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")
MAX_LIBRARY = 8 * 1024 * 1024  # bytes that are looked through


def parse_version(library: bytes) -> str:
    """Return the version number that the library's file contains, the one it would report itself; '' when none or several are there."""
    found = set(re.findall(rb"\0(\d+\.\d+\.\d+)\0", library))
    return found.pop().decode() if len(found) == 1 else ""


def resolve_augeas(host: Host) -> dict[str, Any]:
    """Return the fact augeas, from augparse or else from the library's file; loading the library would cost more than all other facts."""
    told = re.match(r"augparse (\d+\.\d+\.\d+)", host.run(["augparse", "--version"]))
    if told:
        return {"augeas": {"version": told[1]}}
    for folder in _FOLDERS:
        place = host.path(folder)
        for path in (place / "libaugeas.so.0", *sorted(place.glob("*-linux-*/libaugeas.so.0"))):
            try:
                with path.open("rb") as file:
                    version = parse_version(file.read(MAX_LIBRARY))
            except OSError:
                continue
            if version:
                return {"augeas": {"version": version}}
    return {}
