"""Providers of the type `file_line`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .ruby import FileLineRuby

    return [FileLineRuby()]
