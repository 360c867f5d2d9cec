"""Providers of the type `group`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from ..accounts import AccountDatabase
    from .groupadd import Groupadd

    return [Groupadd(AccountDatabase(), run.platform)]
