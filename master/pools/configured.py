"""The pool of compiling processes that the settings describe."""

from __future__ import annotations

from collections.abc import Callable

from environments.directories import Environments
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings

from ..observability.metrics import Metrics
from .compile_pool import CompilePool, OnQuestion, log_problem, processors, refuse_question


def compile_pool_for(
    settings: MasterSettings,
    environments: Environments,
    metrics: Metrics,
    supervisor: Supervisor | None = None,
    on_problem: Callable[[str], None] = log_problem,
    start_as: tuple[int, int] | None = None,
    on_question: OnQuestion = refuse_question,
    records: int | None = None,
) -> CompilePool:
    """Return the pool that the settings ask for, which the metrics describe."""
    pool = CompilePool(
        environments,
        size=settings.compile_workers or processors(),
        timeout=settings.compile_timeout,
        memory=settings.compile_memory,
        queue=settings.compile_queue,
        memo=settings.catalog_memo,
        cache=settings.code_cache,
        jobs=settings.compile_jobs,
        on_answer=lambda how, seconds: metrics.compiles.observe(seconds, how),
        on_problem=on_problem,
        start_as=start_as,
        supervisor=supervisor,
        on_question=on_question,
        records=records,
    )
    pool.describe(metrics)
    return pool
