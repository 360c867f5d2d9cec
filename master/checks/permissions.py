"""Check that the master's account can use its files and folders, and that other accounts cannot read the private ones."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ca.configured import ca_files, ca_place
from shared.errors import ConfigError
from shared.process import daemon
from shared.settings import MasterSettings

from ..puppetdb.configured import CONFIGURATION
from ..service.folders import written_folders
from .findings import Finding

AREA: Final = "permissions"
READ, WRITE, ENTER = 4, 2, 1


@dataclass(frozen=True, slots=True)
class MasterAccount:
    """The account that a master runs as."""

    name: str
    uid: int
    groups: frozenset[int]

    @classmethod
    def of(cls, settings: MasterSettings) -> MasterAccount:
        """
        Return the account in the settings when root starts the master, otherwise the current user; raise ConfigError when there is none.
        """
        if os.geteuid() != 0 or settings.user == "root":
            uid = os.geteuid()
            try:
                name = pwd.getpwuid(uid).pw_name
            except KeyError:
                name = f"uid {uid}"
            return cls(name, uid, frozenset((os.getegid(), *os.getgroups())))
        uid, gid = daemon.account(settings.user, settings.group)
        members = (entry.gr_gid for entry in grp.getgrall() if settings.user in entry.gr_mem)
        return cls(settings.user, uid, frozenset((gid, *members)))

    def may(self, path: Path, access: int) -> bool:
        """Return whether the modes of a file give this account the `access`; root may do everything."""
        info = path.stat()
        if self.uid == 0:
            return True
        shift = 6 if info.st_uid == self.uid else 3 if info.st_gid in self.groups else 0
        return (info.st_mode >> shift) & access == access


def check(settings: MasterSettings) -> Iterator[Finding]:
    """Yield the files that the master cannot read or write, and those that other accounts can."""
    try:
        account = MasterAccount.of(settings)
    except ConfigError:
        return  # reported with the settings
    files = ca_files(settings)
    private = [settings.hostprivkey, *((files.cakey, files.capass) if settings.ca else ())]
    read = [settings.config, settings.rest_authconfig, settings.fileserverconfig, settings.hostcert, *private]
    read += [settings.route_file, settings.confdir / CONFIGURATION]
    written = list(written_folders(settings))
    if settings.ca:
        is_in_files = ca_place(settings) == "files"
        written += [files.cadir, *((files.csrdir, files.signeddir) if is_in_files else ())]
        read += [files.cacert, files.cacrl, *((files.serial, files.cert_inventory) if is_in_files else ())]
    for path in read:
        if _exists(path) and not _can_reach(account, path, READ):
            yield Finding(AREA, "error", f"{account.name} cannot read {path}", _hint_for(path, account))
    for path in written:
        if _exists(path) and not (_can_reach(account, path, READ | WRITE | ENTER) or _is_handed_over_at_start(path)):
            yield Finding(AREA, "error", f"{account.name} cannot write into {path}", _hint_for(path, account))
        elif not _exists(path) and os.geteuid() != 0 and not _can_reach(account, _nearest(path), WRITE | ENTER):
            yield Finding(AREA, "error", f"{account.name} cannot make {path}", f"Make it: install -d -o {account.name} -m 0750 {path}")
    for path in private:
        if _exists(path) and path.stat().st_mode & stat.S_IRWXO:
            yield Finding(AREA, "error", f"The private file {path} is open to everybody", f"chmod 0640 {path}; others may have copied it.")
    for path in (settings.confdir, settings.codedir, *settings.environmentpath, settings.config, settings.rest_authconfig):
        if _exists(path) and path.stat().st_mode & stat.S_IWOTH:
            yield Finding(AREA, "error", f"{path} is writable for all users, who can thereby control every agent", f"chmod o-w {path}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True


def _can_reach(account: MasterAccount, path: Path, access: int) -> bool:
    """Return whether the account has the access, the folders above included."""
    try:
        return all(account.may(folder, ENTER) for folder in path.parents) and account.may(path, access)
    except OSError:
        return False


def _is_handed_over_at_start(path: Path) -> bool:
    """Return whether a start by root hands the folder over: it is root's, and empty."""
    return os.geteuid() == 0 and path.is_dir() and path.stat().st_uid == 0 and not any(path.iterdir())


def _nearest(path: Path) -> Path:
    return next(folder for folder in path.parents if _exists(folder))


def _hint_for(path: Path, account: MasterAccount) -> str:
    return f"Look at {path} and the folders above it: chown {account.name}, or give a group of that account the right."
