"""Providers: how resources are read and changed on this machine, one folder a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.ral import Provider

from ..runlog import RunLog

Makers = Mapping[str, Callable[[], Sequence[Provider[Any]]]]


def builtin_providers(*, log: RunLog) -> Makers:
    """For each type what makes its providers; nothing is imported before a catalog needs it."""

    def notify() -> Sequence[Provider[Any]]:
        from .notify.log import LogMessage

        return [LogMessage(log)]

    return {"notify": notify}
