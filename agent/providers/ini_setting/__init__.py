"""Providers of the type `ini_setting`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .ruby import IniSettingRuby

    return [IniSettingRuby(run.show_diff)]
