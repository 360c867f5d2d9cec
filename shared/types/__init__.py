"""Puppet's own types, one a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from importlib import import_module

from ..ral import Type
from .known import CORE, KNOWN, UnsupportedType

# Name → module and class. A type is imported when somebody looks it up: a catalog uses few of them.
_TYPES: Mapping[str, str] = {
    "anchor": "anchor.Anchor",
    "augeas": "augeas.Augeas",
    "concat_file": "concat_file.ConcatFile",
    "concat_fragment": "concat_file.ConcatFragment",
    "cron": "cron.Cron",
    "exec": "exec.Exec",
    "file": "file.File",
    "file_line": "file_line.FileLine",
    "filebucket": "filebucket.Filebucket",
    "group": "group.Group",
    "host": "host.HostEntry",
    "ini_setting": "ini_setting.IniSetting",
    "ini_subsetting": "ini_subsetting.IniSubsetting",
    "k5login": "k5login.K5login",
    "mailalias": "mailalias.Mailalias",
    "mount": "mount.MountPoint",
    "notify": "notify.Notify",
    "package": "package.Package",
    "resources": "resources.ResourcesMetatype",
    "schedule": "schedule.Schedule",
    "selboolean": "selboolean.Selboolean",
    "selmodule": "selmodule.Selmodule",
    "service": "service.Service",
    "ssh_authorized_key": "ssh_authorized_key.SshAuthorizedKey",
    "sshkey": "sshkey.Sshkey",
    "stage": "stage.Stage",
    "tidy": "tidy.Tidy",
    "user": "user.User",
    "yumrepo": "yumrepo.Yumrepo",
}


class _Builtin(Mapping[str, type[Type]]):
    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        self._loaded: dict[str, type[Type]] = {}

    def __getitem__(self, name: str) -> type[Type]:
        loaded = self._loaded.get(name)
        if loaded is None:
            module, _, cls = self._places[name].partition(".")
            loaded = self._loaded[name] = getattr(import_module(f".{module}", __name__), cls)
        return loaded

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def builtin_types(*, without: Set[str] = frozenset()) -> Mapping[str, type[Type]]:
    """Return all types that can be applied, by name, but for those of the names `without`; one is imported when it is looked up."""
    return _Builtin({name: place for name, place in _TYPES.items() if name not in without} if without else _TYPES)


__all__ = ["CORE", "KNOWN", "UnsupportedType", "builtin_types"]
