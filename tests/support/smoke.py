"""Parameters of tests of which a few belong to the smoke choice: the interop tests that the gate runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def with_smoke(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """Return values as parameters of a test, of which the chosen ones, which have to be among them, are marked `smoke`."""
    parameters = list(values)
    assert all(each in parameters for each in chosen), chosen
    return [pytest.param(value, marks=pytest.mark.smoke) if value in chosen else value for value in parameters]
