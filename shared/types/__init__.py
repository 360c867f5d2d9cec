"""Puppet's own types, one a file."""

from __future__ import annotations

from collections.abc import Mapping

from ..ral import Type
from .known import CORE, KNOWN, KnownType


def builtin_types() -> Mapping[str, type[Type]]:
    """All types that can be applied, by name; imports them."""
    from .exec import Exec
    from .file import File
    from .filebucket import Filebucket
    from .group import Group
    from .notify import Notify
    from .package import Package
    from .resources import Resources
    from .schedule import Schedule
    from .service import Service
    from .stage import Stage
    from .tidy import Tidy
    from .user import User

    types: tuple[type[Type], ...] = (
        Exec,
        File,
        Filebucket,
        Group,
        Notify,
        Package,
        Resources,
        Schedule,
        Service,
        Stage,
        Tidy,
        User,
    )
    return {cls.declaration.name: cls for cls in types}


__all__ = ["CORE", "KNOWN", "KnownType", "builtin_types"]
