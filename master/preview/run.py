"""One preview: all nodes go through the processes, whose findings go into the result."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shared.clock import utc_now
from shared.errors import CompileError, PuppetError, first_error, text_with_hint

from ..dependencies.records import CatalogRecords
from ..pools.jobs import CompileJob
from .nodes import PreviewNodes
from .pool import PreviewPool, Sides
from .result import PreviewResult

log = logging.getLogger("puppet.preview")

OnOutcome = Callable[[str, Mapping[str, Any]], None]


async def run_preview(
    pool: PreviewPool,
    sides: Sides,
    nodes: PreviewNodes,
    names: Sequence[str],
    *,
    on_outcome: OnOutcome = lambda node, outcome: None,
) -> PreviewResult:
    """
    Compile nodes from both sides and return the differences; save dependency records as the settings require.

    Args:
        on_outcome: called with each finished node and its result.
    Raises:
        NotFound: The facts of a node are not known. PuppetError: No process can be started, or the code changed in between.
    """
    size = nodes.settings.preview_records_size
    records = CatalogRecords(nodes.settings.preview_records) if size else None
    result = PreviewResult(sides.before, sides.after, sides.environment, time=utc_now().isoformat(timespec="seconds"))
    began = time.monotonic()
    waiting: Iterator[str] = iter(names)

    async def work() -> None:
        for name in waiting:
            job: CompileJob | None = await nodes.job(name)
            if job is None:
                result.elsewhere.append(name)
                continue
            try:
                outcome = await pool.preview(job, sides, records.folder if records is not None else None)
            except CompileError as err:
                outcome = failure(err)
            result.add(name, outcome)
            on_outcome(name, outcome)
            if problem := outcome.get("not_kept"):
                problems.add(problem)

    problems: set[str] = set()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(2 * pool.processes.options.size, len(names))):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    result.classified_now = nodes.classified_now
    result.seconds = time.monotonic() - began
    if records is not None:
        try:
            await asyncio.to_thread(records.limit, size)
        except PuppetError as err:
            problems.add(text_with_hint(err))
    for problem in sorted(problems)[:1]:
        log.warning("%s", problem)
    return result


def failure(error: CompileError) -> Mapping[str, Any]:
    """Return the outcome of a node whose compilation took more memory or time than it may, so that its process was ended."""
    message = {"message": error.message, "file": None, "line": None, "hint": error.hint, "state": "new"}
    nothing: dict[str, Any] = {"changes": [], "warnings": [], "findings": [], "unstable": []}
    return {"state": "failed", "compiled": False, "compilations": 0, "errors": [message], **nothing}
