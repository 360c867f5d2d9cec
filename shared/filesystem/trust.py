"""Check that only a file of code's owner and the administrator can have put it in its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..errors import Denied

MAX_LINKS = 40


def check_place_of_code(path: Path) -> None:
    """
    Raise Denied when other users may change a file, or replace it, by any folder or link on the way to it.

    In a folder with the sticky bit, such as /tmp, only files of root or of this process' user count as safe. Blocks; OSError.
    """
    sticky = False
    for place in _places(path):
        status = place.lstat()
        if sticky and status.st_uid not in (0, os.geteuid()):
            raise Denied(f"{place} belongs to another user, in a folder to which everybody may write")
        sticky = False
        if stat.S_ISLNK(status.st_mode) or not status.st_mode & stat.S_IWOTH:
            continue
        if not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
            raise Denied(f"everybody may write to {place}", hint=f"chmod o-w {place}")
        sticky = True


def _places(path: Path) -> Iterator[Path]:
    """Yield every folder and link on the way to a file, and the file."""
    here, links = Path("/"), 0
    pending = list(reversed(path.absolute().parts[1:]))
    while pending:
        part = pending.pop()
        if part == "..":
            here = here.parent
            continue
        place = here / part
        yield place
        if not place.is_symlink():
            here = place
            continue
        links += 1
        if links > MAX_LINKS:
            raise Denied(f"there are more than {MAX_LINKS} links on the way to {path}")
        target = place.readlink()
        if target.is_absolute():
            here = Path("/")
        pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
