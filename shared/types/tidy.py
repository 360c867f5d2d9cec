"""`tidy`: old or large files are removed. Source: resource layer reference 10.7."""

from __future__ import annotations

import os.path
import re
from typing import Any

from ..ral import Param, Type
from ..ral.attributes import as_list, text_of

_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZES = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def _amount(value: Any, units: dict[str, int], default: str, word: str) -> int:
    match = re.fullmatch(r"([0-9]+)(?:(\w)\w*)?", value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"Invalid tidy {word} {text_of(value)}")
    unit = (match[2] or default).lower()
    if unit not in units:
        raise ValueError(f"Invalid {word} unit '{unit}'")
    return int(match[1]) * units[unit]


def _recurse(value: Any) -> bool | int:
    text = text_of(value)
    if text in ("true", "inf", "false"):
        return text != "false"
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    raise ValueError(f'Invalid recurse value "{text}"')


class TidyMatches(Param[list[str]]):
    """Patterns for entries that recursion finds; they do not apply to the path itself."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        if not resource.value_of("recurse"):
            raise ValueError("Tidy can't use matches with recurse 0, false, or undef")
        return [text_of(value) for value in as_list(raw)]


class Tidy(Type, name="tidy", isomorphic=False, depth_first=True, providers=False):
    """Removes files that reach an age or a size; files that are managed otherwise are left alone."""

    path = Param(str, namevar=True, munge=lambda path: os.path.normpath(text_of(path)), doc="A file or directory.")
    recurse = Param(object, munge=_recurse, doc="Whether to look below a directory: true, false, inf, or how deep.")
    max_files = Param(int, default=0, match=r"[0-9]+", doc="The most entries to search; 0: no limit, with a warning above 1000.")
    matches = TidyMatches(str, many=True, doc="Globs; one of them has to match the last part of a path.")
    backup = Param(object, default=False, doc="As of the type file.")
    age = Param(int, munge=lambda v: _amount(v, _AGES, "d", "age"), doc="At least so old: a number and s, m, h, d or w (default days).")
    size = Param(int, munge=lambda v: _amount(v, _SIZES, "k", "size"), doc="At least so large: a number and b, k, m, g or t (default k).")
    type = Param(str, values=("atime", "mtime", "ctime"), default="atime", doc="Which time the age is measured by.")
    rmdirs = Param(bool, default=False, doc="Whether directories that are empty then are removed too.")

    def has_reached(self, *, seconds: float, size: int) -> bool:
        """Return whether a file of that age and size should be removed."""
        if self.age is None and self.size is None:
            return True
        return (self.age is not None and seconds >= self.age) or (self.size is not None and size >= self.size)
