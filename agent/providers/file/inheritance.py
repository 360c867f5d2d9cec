"""The owner and mode that a new file inherits from the one it replaces, where the catalog sets none."""

from __future__ import annotations

import os
import stat

from .path_entries import PathEntry
from .replacement import Rights

SET_IDS = stat.S_ISUID | stat.S_ISGID


def inherited_rights(entry: PathEntry, info: os.stat_result) -> Rights:
    """
    Return owner and mode of a file that replaces a regular one.

    Owner and mode stay, as users expect who only manage a content. Never the set-id bits: otherwise the owner of the old file would
    decide that the new content runs as another user. And no stranger's ownership in a folder that everybody writes to, as /tmp is:
    anybody can have put the old file there, and would go on changing the new content. In a folder of their own, or in one that only
    root writes to, owners are whom they are meant to be.
    """
    mode = stat.S_IMODE(info.st_mode) & ~SET_IDS
    if _is_planted(entry, info):
        return Rights(mode=mode & ~0o022)
    own = info.st_uid == os.geteuid()
    return Rights(-1 if own else info.st_uid, info.st_gid, mode)


def _is_planted(entry: PathEntry, info: os.stat_result) -> bool:
    folder = os.fstat(entry.folder)
    return bool(folder.st_mode & stat.S_IWOTH) and info.st_uid not in (0, os.geteuid(), folder.st_uid)


def lost_rights(info: os.stat_result, rights: Rights, *, owner: bool, mode: bool) -> str:
    """Return in words which rights a new file does not inherit, except those that the catalog sets (`owner`, `mode`); '' when none."""
    lost = []
    if info.st_mode & SET_IDS and not mode:
        lost.append(f"the mode {stat.S_IMODE(info.st_mode):04o}")
    if rights.uid == -1 and info.st_uid != os.geteuid() and not owner:
        lost.append(f"the owner {info.st_uid}, as everybody may write to the folder")
    return " and ".join(lost)
