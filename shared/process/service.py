"""
The owner of a master's directories: its account, even when one of root's commands creates them.

A command of root's makes what is missing for that account before it writes (`make_room`), and new files in a directory belong to
whom the directory belongs to (`files.owner_in`). `puppet master`, also with --compile, and `puppet deploy` become that account.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ..errors import ConfigError
from ..settings import MasterSettings, setting_texts
from ..settings.common import CommonSettings
from . import daemon

_SHARED = {"vardir": 0o751, "logdir": 0o750, "rundir": 0o755, "ssldir": 0o771}  # of agent and master, with the modes of new ones


def account_of(settings: MasterSettings) -> tuple[int, int] | None:
    """Return the ids of the account that a master of root's becomes; None when we are not root, or it stays root, or has no account."""
    return _account(settings.user, settings.group)


def _account(user: str, group: str) -> tuple[int, int] | None:
    if os.geteuid() != 0 or user == "root":
        return None
    try:
        return daemon.account(user, group)
    except ConfigError:
        return None


def make_room(settings: CommonSettings, folders: Mapping[Path, int] = MappingProxyType({})) -> None:
    """
    Create missing directories for the account of this host's master, if it has one, so that root's command does not own them.

    A directory that cannot be created causes an error later, where it is used.

    Args:
        folders: More than those that agent and master share, the outer ones first, with their modes.
    """
    if os.geteuid() != 0:
        return
    try:
        if isinstance(settings, MasterSettings):
            user, group, is_master = settings.user, settings.group, True
        else:
            (user, group), is_master = _account_of_master_beside(settings), False
        if (account := _account(user, group)) is None:
            return
        for name, mode in _SHARED.items():
            # Agents trust the account `puppet` with their $vardir, and no other: for others it is root's, and lets them through.
            roots = name == "vardir" and not is_master and user != "puppet"
            daemon.own({getattr(settings, name): mode}, *((0, 0) if roots else account))
        daemon.own(folders, *account)
    except (ConfigError, OSError):
        return


def _account_of_master_beside(settings: CommonSettings) -> Sequence[str]:
    """Return user and group of the master that may be on an agent's host."""
    places = {name: str(getattr(settings, name)) for name in ("confdir", *_SHARED)}
    return setting_texts(MasterSettings, ("user", "group"), section="master", flags=places)
