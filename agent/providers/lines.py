"""Providers of the types that own lines or settings of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from shared.ral import Provider

from ..state.runlog import RunLog

if TYPE_CHECKING:
    from .file.context import FileContext
    from .parsed.storage import FlatFiles

ProviderFactory = Callable[[], Sequence[Provider[Any]]]


class _Run:
    """The services of one run that these providers are created with."""

    def __init__(self, log: RunLog, files: Callable[[], FileContext] | None) -> None:
        self.log = log
        self._files = files
        self._context: FileContext | None = None

    def context(self) -> FileContext | None:
        """Return the context that all of them share; None: files cannot be managed."""
        if self._context is None and self._files is not None:
            self._context = self._files()
        return self._context

    def flat(self, *public: str, mode: int = 0o600) -> FlatFiles:
        """Return the storage of files that are read and written whole; `public` are the paths that everybody may read."""
        from .parsed.storage import FlatFiles

        files = self.context()
        return FlatFiles(files.buckets if files else None, self.log.log, mode, frozenset(public))

    def show_diff(self) -> bool:
        files = self.context()
        return files is not None and files.show_diff


def line_providers(log: RunLog, files: Callable[[], FileContext] | None) -> dict[str, ProviderFactory]:
    """Return for each type the function that creates its providers; see `builtin_providers`."""
    run = _Run(log, files)
    return {name: partial(make, run) for name, make in _FACTORIES.items()}


def _host(run: _Run) -> Sequence[Provider[Any]]:
    from .host.parsed import Hosts, HostsFormat

    return [Hosts(HostsFormat(), run.flat("/etc/hosts"), run.log, default_target="/etc/hosts")]


def _mount(run: _Run) -> Sequence[Provider[Any]]:
    from .mount.parsed import Fstab, FstabFormat

    return [Fstab(FstabFormat(), run.flat("/etc/fstab"), run.log, default_target="/etc/fstab")]


def _sshkey(run: _Run) -> Sequence[Provider[Any]]:
    from .sshkey.parsed import KnownHosts, KnownHostsFormat

    return [KnownHosts(KnownHostsFormat(), run.flat(mode=0o644), run.log, default_target="/etc/ssh/ssh_known_hosts")]


def _ssh_authorized_key(run: _Run) -> Sequence[Provider[Any]]:
    from .ssh_authorized_key.parsed import AuthorizedKeys, AuthorizedKeysFormat

    return [AuthorizedKeys(AuthorizedKeysFormat(), run.flat(), run.log)]


def _mailalias(run: _Run) -> Sequence[Provider[Any]]:
    from .mailalias.aliases import AliasesFormat, MailAliasFiles

    return [MailAliasFiles(AliasesFormat(), run.flat(), run.log, default_target="/etc/aliases")]


def _cron(run: _Run) -> Sequence[Provider[Any]]:
    from .cron.crontab import Crontab, CrontabFormat, Crontabs

    return [Crontab(CrontabFormat(), Crontabs(), run.log, default_target="root")]


def _file_line(run: _Run) -> Sequence[Provider[Any]]:
    from .file_line.ruby import FileLineRuby

    return [FileLineRuby()]


def _ini_setting(run: _Run) -> Sequence[Provider[Any]]:
    from .ini_setting.ruby import IniSettingRuby

    return [IniSettingRuby(run.show_diff)]


def _ini_subsetting(run: _Run) -> Sequence[Provider[Any]]:
    from .ini_subsetting.ruby import IniSubsettingRuby

    return [IniSubsettingRuby(run.show_diff)]


def _k5login(run: _Run) -> Sequence[Provider[Any]]:
    from .k5login.k5login import K5loginFiles

    return [K5loginFiles()]


def _yumrepo(run: _Run) -> Sequence[Provider[Any]]:
    from .yumrepo.inifile import Inifile

    return [Inifile()]


def _selboolean(run: _Run) -> Sequence[Provider[Any]]:
    from .selboolean.getsetsebool import Getsetsebool

    return [Getsetsebool()]


def _selmodule(run: _Run) -> Sequence[Provider[Any]]:
    from .selmodule.semodule import Semodule

    return [Semodule()]


def _augeas(run: _Run) -> Sequence[Provider[Any]]:
    from .augeas.augeas import AugeasContext, AugeasLibrary

    files = run.context()
    return [
        AugeasLibrary(AugeasContext(run.log, run.show_diff, files.differ, files.lenses) if files else AugeasContext(run.log, run.show_diff))
    ]


def _concat_file(run: _Run) -> Sequence[Provider[Any]]:
    from .concat_file.concat import Concat

    files = run.context()
    return [Concat(files.sources)] if files else []


# Each imports its provider when its type is first used.
_FACTORIES: Mapping[str, Callable[[_Run], Sequence[Provider[Any]]]] = {
    "augeas": _augeas,
    "concat_file": _concat_file,
    "cron": _cron,
    "file_line": _file_line,
    "host": _host,
    "ini_setting": _ini_setting,
    "ini_subsetting": _ini_subsetting,
    "k5login": _k5login,
    "mailalias": _mailalias,
    "mount": _mount,
    "selboolean": _selboolean,
    "selmodule": _selmodule,
    "ssh_authorized_key": _ssh_authorized_key,
    "sshkey": _sshkey,
    "yumrepo": _yumrepo,
}
