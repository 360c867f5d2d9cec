"""Puppet's own types, one a file."""

from __future__ import annotations

from collections.abc import Mapping

from ..ral import Type
from .known import CORE, KNOWN, KnownType


def builtin_types() -> Mapping[str, type[Type]]:
    """All types that can be applied, by name; imports them."""
    from .anchor import Anchor
    from .augeas import Augeas
    from .concat_file import ConcatFile, ConcatFragment
    from .cron import Cron
    from .exec import Exec
    from .file import File
    from .file_line import FileLine
    from .filebucket import Filebucket
    from .group import Group
    from .host import Host
    from .ini_setting import IniSetting
    from .ini_subsetting import IniSubsetting
    from .mailalias import Mailalias
    from .mount import Mount
    from .notify import Notify
    from .package import Package
    from .resources import Resources
    from .schedule import Schedule
    from .service import Service
    from .ssh_authorized_key import SshAuthorizedKey
    from .sshkey import Sshkey
    from .stage import Stage
    from .tidy import Tidy
    from .user import User

    types: tuple[type[Type], ...] = (
        Anchor,
        Augeas,
        ConcatFile,
        ConcatFragment,
        Cron,
        Exec,
        File,
        FileLine,
        Filebucket,
        Group,
        Host,
        IniSetting,
        IniSubsetting,
        Mailalias,
        Mount,
        Notify,
        Package,
        Resources,
        Schedule,
        Service,
        SshAuthorizedKey,
        Sshkey,
        Stage,
        Tidy,
        User,
    )
    return {cls.declaration.name: cls for cls in types}


__all__ = ["CORE", "KNOWN", "KnownType", "builtin_types"]
