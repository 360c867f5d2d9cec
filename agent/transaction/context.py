"""The settings and services of a run that a transaction works with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from shared.clock import utc_now
from shared.ral import Providers
from shared.settings import AgentSettings

from ..state.runlog import RunLog
from ..state.statefiles import StateFile, TransactionStore
from . import dot


@dataclass(frozen=True)
class ApplyContext:
    """
    The settings and services of a run other than its catalog.

    Attributes:
        providers: Do the work; they got file sources and buckets when they were made.
        stop: Called between two resources; once it returns true, the rest is marked as skipped.
        now: Returns the time in UTC.
    """

    log: RunLog
    providers: Providers
    state: StateFile
    store: TransactionStore | None = None  # None: no corrective change (puppet apply)
    noop: bool = False
    tags: Sequence[str] = ()
    skip_tags: Sequence[str] = ()
    ignore_schedules: bool = False
    evaltrace: bool = False
    merge_warnings: bool = False  # of failed dependencies: one for a class, none for its resources
    graphs: Path | None = None  # existing directory for the graphs of the run; None: they are not written
    stop: Callable[[], bool] = lambda: False
    now: Callable[[], datetime] = utc_now

    @classmethod
    async def of(cls, settings: AgentSettings, log: RunLog, providers: Providers, **more: Any) -> ApplyContext:
        """Return the context according to the settings; `more` are further attributes."""
        return cls(
            log=log,
            providers=providers,
            state=StateFile(settings.statefile, ttl=timedelta(seconds=settings.statettl or 0)),
            noop=settings.noop,
            tags=settings.tags,
            skip_tags=settings.skip_tags,
            ignore_schedules=settings.ignoreschedules,
            evaltrace=settings.evaltrace,
            merge_warnings=settings.merge_dependency_warnings,
            graphs=await asyncio.to_thread(dot.graph_directory, settings),
            **more,
        )
