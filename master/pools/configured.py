"""The pool of compiling processes that the settings describe."""

from __future__ import annotations

from collections.abc import Callable

from environments.directories import Environments
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings

from ..observability.metrics import Metrics
from .compile_pool import CompilePool
from .process_pool import OnQuestion, PoolOptions, ProcessPool, log_problem, processors, refuse_question


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
    options = PoolOptions(
        size=settings.compile_workers or processors(),
        timeout=settings.compile_timeout,
        memory=settings.compile_memory,
        queue=settings.compile_queue,
        memo=settings.catalog_memo,
        cache=settings.code_cache,
        jobs=settings.compile_jobs,
        start_as=start_as,
        records=records,
    )
    processes = ProcessPool(
        environments,
        options,
        on_answer=lambda how, seconds: metrics.compiles.observe(seconds, how),
        on_problem=on_problem,
        supervisor=supervisor,
        on_question=on_question,
    )
    pool = CompilePool(processes)
    processes.describe(metrics)
    pool.origins.describe(metrics)
    return pool
