"""Comparisons with Ruby's version, by which modules serve releases that are long gone."""

from __future__ import annotations

import re

OLDEST = (2, 5)
"""The oldest release of Ruby that may run modules here."""
_TEST = re.compile(r"""Gem::Version\.new\(RUBY_VERSION\)\s*(<|>=)\s*Gem::Version\.new\((['"])(\d+(?:\.\d+)*)\2\)""")


def ruby_version_answer(text: str) -> bool | None:
    """Return what a comparison of Ruby's version gives with every release that may be used; None when that depends on the release."""
    match = _TEST.fullmatch(text)
    if match is None or tuple(map(int, match[3].split("."))) > OLDEST:
        return None
    return match[1] == ">="
