"""The names that a module's file may define, derived from its path."""

from __future__ import annotations

from pathlib import PurePath

MISPLACED = "::"
"""The namespace of a module's file outside its four folders; no name begins with it."""

_FOLDERS = frozenset(("manifests", "functions", "types", "plans"))


def namespace_of(relative: PurePath) -> str:
    """
    Return the beginning that names in a module's file must have; `relative` is its path below the modulepath's folder.

    `apache/manifests/mod/ssl.pp` is `apache::mod::ssl`, `apache/manifests/init.pp` is `apache`; MISPLACED elsewhere in a module.
    Source: language reference 5.
    """
    parts = [part.lower() for part in relative.parts]
    if len(parts) < 3 or parts[1] not in _FOLDERS:
        return MISPLACED
    names = [parts[0], *parts[2:-1]]
    if len(parts) != 3 or parts[-1] != "init.pp":
        names.append(parts[-1].removesuffix(".pp"))
    return "::".join(names)
