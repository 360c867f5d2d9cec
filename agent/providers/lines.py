"""Providers of the types that own lines or settings of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shared.ral import Provider

from ..runlog import RunLog

if TYPE_CHECKING:
    from .file.posix import FileContext
    from .parsed.storage import FlatFiles

Maker = Callable[[], Sequence[Provider[Any]]]


def line_providers(log: RunLog, files: Callable[[], FileContext] | None) -> dict[str, Maker]:
    """For each type what makes its providers; see `builtin_providers`."""
    made: list[FileContext] = []  # one context serves all of them

    def context() -> FileContext | None:
        if files is not None and not made:
            made.append(files())
        return made[0] if made else None

    def flat(*public: str, mode: int = 0o600) -> FlatFiles:
        from .parsed.storage import FlatFiles

        run = context()
        return FlatFiles(run.buckets if run else None, log.log, mode, frozenset(public))

    def host() -> Sequence[Provider[Any]]:
        from .host.parsed import Hosts, HostsFormat

        return [Hosts(HostsFormat(), flat("/etc/hosts"), log, default_target="/etc/hosts")]

    def mount() -> Sequence[Provider[Any]]:
        from .mount.parsed import Fstab, FstabFormat

        return [Fstab(FstabFormat(), flat("/etc/fstab"), log, default_target="/etc/fstab")]

    def sshkey() -> Sequence[Provider[Any]]:
        from .sshkey.parsed import KnownHosts, KnownHostsFormat

        return [KnownHosts(KnownHostsFormat(), flat(mode=0o644), log, default_target="/etc/ssh/ssh_known_hosts")]

    def ssh_authorized_key() -> Sequence[Provider[Any]]:
        from .ssh_authorized_key.parsed import AuthorizedKeys, AuthorizedKeysFormat

        return [AuthorizedKeys(AuthorizedKeysFormat(), flat(), log)]

    def mailalias() -> Sequence[Provider[Any]]:
        from .mailalias.aliases import Aliases, AliasesFormat

        return [Aliases(AliasesFormat(), flat("/etc/aliases"), log, default_target="/etc/aliases")]

    def cron() -> Sequence[Provider[Any]]:
        from .cron.crontab import Crontab, CrontabFormat, Crontabs

        return [Crontab(CrontabFormat(), Crontabs(), log, default_target="root")]

    def file_line() -> Sequence[Provider[Any]]:
        from .file_line.ruby import Ruby

        return [Ruby()]

    def show_diff() -> bool:
        run = context()
        return run is not None and run.show_diff

    def ini_setting() -> Sequence[Provider[Any]]:
        from .ini_setting.ruby import Ruby

        return [Ruby(show_diff)]

    def ini_subsetting() -> Sequence[Provider[Any]]:
        from .ini_subsetting.ruby import Ruby

        return [Ruby(show_diff)]

    def k5login() -> Sequence[Provider[Any]]:
        from .k5login.k5login import Files

        return [Files()]

    def yumrepo() -> Sequence[Provider[Any]]:
        from .yumrepo.inifile import Inifile

        return [Inifile()]

    def selboolean() -> Sequence[Provider[Any]]:
        from .selboolean.getsetsebool import Getsetsebool

        return [Getsetsebool()]

    def selmodule() -> Sequence[Provider[Any]]:
        from .selmodule.semodule import Semodule

        return [Semodule()]

    def augeas() -> Sequence[Provider[Any]]:
        from .augeas.augeas import AugeasContext, AugeasLibrary

        run = context()
        return [AugeasLibrary(AugeasContext(log, show_diff, lenses=run.lenses if run else ()))]

    def concat_file() -> Sequence[Provider[Any]]:
        from .concat_file.concat import Concat

        run = context()
        return [Concat(run.sources)] if run else []

    return {
        "augeas": augeas,
        "concat_file": concat_file,
        "cron": cron,
        "file_line": file_line,
        "host": host,
        "ini_setting": ini_setting,
        "ini_subsetting": ini_subsetting,
        "k5login": k5login,
        "mailalias": mailalias,
        "mount": mount,
        "selboolean": selboolean,
        "selmodule": selmodule,
        "ssh_authorized_key": ssh_authorized_key,
        "sshkey": sshkey,
        "yumrepo": yumrepo,
    }
