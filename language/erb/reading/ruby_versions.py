"""Comparisons with Ruby's version, by which modules support very old releases."""

from __future__ import annotations

import re

OLDEST = (2, 5)
"""The oldest release of Ruby that may run modules here."""
_TEST = re.compile(r"""Gem::Version\.new\(RUBY_VERSION\)\s*(<|>=)\s*Gem::Version\.new\((['"])(\d+(?:\.\d+)*)\2\)""")


def ruby_version_answer(text: str) -> bool | None:
    """Return the result of a comparison of Ruby's version for all supported releases; None when it differs between them."""
    match = _TEST.fullmatch(text)
    if match is None or tuple(map(int, match[3].split("."))) > OLDEST:
        return None
    return match[1] == ">="
