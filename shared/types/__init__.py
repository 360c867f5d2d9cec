"""Puppet's own types, one a file."""

from __future__ import annotations

from collections.abc import Mapping

from ..ral import Type
from .known import KNOWN, STAYED, KnownType


def builtin_types() -> Mapping[str, type[Type]]:
    """All types that can be applied, by name; imports them."""
    from .exec import Exec
    from .file import File
    from .filebucket import Filebucket
    from .notify import Notify
    from .resources import Resources
    from .schedule import Schedule
    from .stage import Stage
    from .tidy import Tidy

    types: tuple[type[Type], ...] = (Exec, File, Filebucket, Notify, Resources, Schedule, Stage, Tidy)
    return {cls.declaration.name: cls for cls in types}


__all__ = ["KNOWN", "STAYED", "KnownType", "builtin_types"]
