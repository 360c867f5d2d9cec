"""
Mount points below a directory: their content belongs to another file system, or to another directory of the same one.

A recursion stops at them, and a directory that has one is not removed: the reference deletes the mounted files and fails at the
    mount point itself. Bind mounts have the device number of the directory around them, so that only the kernel's table tells.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from shared.errors import ResourceError

TABLE = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")
MAX_SHOWN = 10


def mount_points_below(folder: str, *, table: Path | None = None) -> list[str]:
    """
    Return the mount points in a directory, relative to it and sorted; `.` when the directory is one. Blocks.

    Args:
        folder: links in its path are followed.
        table: a file with the kernel's mountinfo(5).
    Raises:
        OSError: there is no table.
    """
    real = os.path.realpath(os.fsencode(folder))
    prefix = real.rstrip(b"/") + b"/"
    points = set()
    for line in (table or TABLE).read_bytes().splitlines():
        fields = line.split(b" ", 5)
        if len(fields) < 6:
            continue
        point = _ESCAPE.sub(lambda match: bytes((int(match[1], 8),)), fields[4])
        if point == real:
            points.add(".")
        elif point.startswith(prefix):
            points.add(os.fsdecode(point[len(prefix) :]))
    return sorted(points)


def leads_to_mount(relative: str, points: Sequence[str]) -> bool:
    """Return whether a mount point is below a path."""
    return any(point.startswith(f"{relative}/") for point in points)


def refuse_mounts(folder: str) -> None:
    """Raise ResourceError when removing a directory would remove mounted files. Blocks."""
    points = mount_points_below(folder)
    if points:
        where = folder if points[0] == "." else f"{folder.rstrip('/')}/{points[0]}"
        raise ResourceError(
            f"Refusing to remove the directory {folder}: {where} is a mount point", hint="Unmount it first, with a mount resource perhaps."
        )


def describe_mounts(folder: str, points: Sequence[str]) -> str:
    """Return mount points as text for a message, at most MAX_SHOWN of them."""
    more = f" and {len(points) - MAX_SHOWN} more" if len(points) > MAX_SHOWN else ""
    return ", ".join(f"{folder.rstrip('/')}/{point}" for point in points[:MAX_SHOWN]) + more
