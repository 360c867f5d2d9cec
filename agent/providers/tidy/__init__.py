"""Providers of the type `tidy`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .posix import TidyFinder

    return [TidyFinder(time.time)]
