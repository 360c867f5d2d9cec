"""The fact augeas: the version of the library."""

from __future__ import annotations

import re
from typing import Any

from .host import Host

_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")
MAX_LIBRARY = 8 * 1024 * 1024  # bytes that are looked through


def parse_version(library: bytes) -> str:
    """Return the version number that the library's file contains, the one it would report itself; '' when none or several are there."""
    versions = set(re.findall(rb"\0(\d+\.\d+\.\d+)\0", library))
    return versions.pop().decode() if len(versions) == 1 else ""


def resolve_augeas(host: Host) -> dict[str, Any]:
    """Return the fact augeas, from augparse or else from the library's file; loading the library would cost more than all other facts."""
    match = re.match(r"augparse (\d+\.\d+\.\d+)", host.run(["augparse", "--version"]))
    if match:
        return {"augeas": {"version": match[1]}}
    for folder in _FOLDERS:
        library_folder = host.path(folder)
        for path in (library_folder / "libaugeas.so.0", *sorted(library_folder.glob("*-linux-*/libaugeas.so.0"))):
            try:
                with path.open("rb") as file:
                    version = parse_version(file.read(MAX_LIBRARY))
            except OSError:
                continue
            if version:
                return {"augeas": {"version": version}}
    return {}
