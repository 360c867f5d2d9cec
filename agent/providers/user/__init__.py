"""Providers of the type `user`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from ..accounts import AccountDatabase
    from .useradd import Useradd

    return [Useradd(AccountDatabase(), run.platform)]
