"""Cases of which the gate runs some, and the full run all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_gate(cases: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """The cases for `parametrize`, of which all but those chosen are marked `full`."""
    cases = list(cases)
    assert all(each in cases for each in chosen), "a case that is chosen is none"
    return [
        case if case in chosen else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full) for case in cases
    ]
