"""Sizes as Facter writes them for people."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human(count: int) -> str:
    """Return a number of bytes as Facter writes it: `23.54 GiB`, `1.00 KiB`; below 1024 `N bytes`. Source: facts reference 2.1."""
    if count < 1024:
        return f"{count} bytes"
    size = float(count)
    for unit in _UNITS:
        size /= 1024
        if round(size, 2) < 1024 or unit == _UNITS[-1]:
            return f"{size:.2f} {unit}"
    raise AssertionError("unreachable")


def capacity(used: int, total: int) -> str:
    """Return the used share as `17.78%`; of a total of 0 it is 100%."""
    if total == 0 or used == total:
        return "100%"
    return f"{used / total * 100:.2f}%" if used else "0%"
