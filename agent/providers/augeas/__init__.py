"""Providers of the type `augeas`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .augeas import AugeasContext, AugeasLibrary

    files = run.files()
    return [
        AugeasLibrary(AugeasContext(run.log, run.show_diff, files.differ, files.lenses) if files else AugeasContext(run.log, run.show_diff))
    ]
