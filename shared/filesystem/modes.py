"""File modes as Puppet writes them: octal text and symbolic expressions. Pure. Source: resource layer reference 5.3."""

from __future__ import annotations

import re
from typing import Final

from ..errors import ResourceError

_OCTAL = re.compile(r"0?[0-7]{1,4}")
_SYMBOLIC = re.compile(r"[ugoa]*[-=+][-=+rstwxXugo]*(,[ugoa]*[-=+][-=+rstwxXugo]*)*")
_SHIFT: Final = {"u": 6, "g": 3, "o": 0}
_BITS: Final = {"r": 4, "w": 2, "x": 1}
_SPECIAL: Final = {("s", "u"): 4, ("s", "g"): 2, ("s", "o"): 1, ("t", "u"): 1, ("t", "g"): 1, ("t", "o"): 1}


def is_octal(text: str) -> bool:
    """Return whether `text` is one to four octal digits, perhaps with a zero before them."""
    return _OCTAL.fullmatch(text) is not None


def is_mode(text: str) -> bool:
    """Return whether `text` is allowed in a `mode` attribute; applying a symbolic expression may still fail."""
    return is_octal(text) or _SYMBOLIC.fullmatch(text) is not None


def octal(bits: int) -> str:
    """Return the bits as Puppet shows them: four digits."""
    return f"{bits & 0o7777:04o}"


def searchable(bits: int) -> int:
    """Return `bits` with the right to search wherever there is the right to read: the meaning of an octal mode for a directory."""
    return bits | (bits & 0o444) >> 2


def apply_mode(mode: str, current: int, *, directory: bool) -> int:
    """
    Return the bits that result from `mode`.

    Args:
        current: The bits before; octal modes ignore them.
        directory: Matters to `X`, and to octal modes, which give the right to search with the right to read.
    Raises:
        ResourceError: an impossible part, named.
    """
    if is_octal(mode):
        return searchable(int(mode, 8)) if directory else int(mode, 8)
    bits = current & 0o7777
    for part in mode.split(","):
        try:
            bits = _part(part.strip(), bits, current, directory)
        except ValueError as err:
            where = f' at "{part}"' if part != mode else ""
            raise ResourceError(f'{err}{where} in symbolic mode "{mode}"') from err
    return bits


def _part(part: str, before: int, original: int, directory: bool) -> int:
    """Return the result of one comma-separated part applied to `before`; `original` decides the meaning of `X`."""
    who = part[: len(part) - len(part.lstrip("ugoa"))]
    everyone = dict.fromkeys((who or "a").replace("a", "ugo"))
    special = before >> 9
    result = before & 0o777
    for one in everyone:
        value = before >> _SHIFT[one] & 7
        action = ""
        for letter in part[len(who) :]:
            if letter in "-+=":
                action = letter
                value = 0 if letter == "=" else value
            elif not action:
                raise ValueError("Missing operation (-, =, or +)")
            elif letter in "st":
                bit = _SPECIAL[letter, one]
                special = special & ~bit if action == "-" else special | bit
            else:
                bit = _value(letter, action, before, original, directory)
                value = value & ~bit if action == "-" else value | bit
        result = result & ~(7 << _SHIFT[one]) | value << _SHIFT[one]
    return special << 9 | result


def _value(letter: str, action: str, before: int, original: int, directory: bool) -> int:
    if letter in _SHIFT:
        return before >> _SHIFT[letter] & 7
    if letter != "X":
        return _BITS[letter]
    if action != "+":
        raise ValueError("X only works with the '+' operator")
    return 1 if directory or original & 0o111 else 0


def in_sync(mode: str, current: str, *, directory: bool) -> bool:
    """Return whether the bits in `current` (octal) are the result of `mode` on them; False too for `absent` and an impossible `mode`."""
    if not is_octal(current):
        return False
    try:
        return apply_mode(mode, int(current, 8), directory=directory) == int(current, 8)
    except ResourceError:
        return False
