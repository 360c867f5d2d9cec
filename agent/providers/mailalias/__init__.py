"""Providers of the type `mailalias`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .aliases import AliasesFormat, MailAliasFiles

    return [MailAliasFiles(AliasesFormat(), run.flat(), run.log, default_target="/etc/aliases")]
