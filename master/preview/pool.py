"""The pool of the processes that compile for one preview; agents' catalogs have a pool and a priority of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.directories import Environments
from shared.data import plainjson
from shared.errors import PuppetError
from shared.settings import MasterSettings

from ..pools.compile_pool import CompilePool
from ..pools.jobs import CompileJob, message_of
from ..pools.process_pool import OnQuestion, PoolOptions, ProcessPool, processors, refuse_question
from ..pools.worker_process import PYTHON
from .result import PreviewSide

COMPILATIONS = 4
"""Of one node at most: twice from each side."""


class PreviewPool:
    """Previews from the processes of a pool, which compile nodes from two sides of the code; `compile_pool` has catalogs from them."""

    def __init__(self, processes: ProcessPool) -> None:
        self.processes = processes
        self.compile_pool = CompilePool(processes)

    @classmethod
    def of(
        cls, settings: MasterSettings, environments: Environments, *, size: int = 0, on_question: OnQuestion = refuse_question
    ) -> PreviewPool:
        """Return a pool as the settings describe the master's; `size` 0: as many processes as there are processors."""
        workers = size or processors()
        options = PoolOptions(
            size=workers,
            timeout=settings.compile_timeout * COMPILATIONS,
            memory=settings.compile_memory,
            queue=4 * workers,
            cache=settings.code_cache,
        )
        return cls(ProcessPool(environments, options, command=(*PYTHON, "master.preview"), on_question=on_question))

    async def preview(self, job: CompileJob, sides: Sides, records: Path | None = None) -> Mapping[str, Any]:
        """
        Return the differences for a node (see `PreviewResult.add`).

        Args:
            records: the folder of dependency records; None: each node is compiled.

        Raises:
            PuppetError: The code changed in between, or the process failed.
        """
        options = {"sides": sides.data(), "each": self.processes.timeout / COMPILATIONS, "records": str(records or "")}
        answer = await self.processes.ask({"ask": "preview", **message_of(job), **options}, f"The preview of {job.certname}")
        outcome: Mapping[str, Any] = plainjson.loads_trusted(answer.body)
        if "aborted" in outcome:
            raise PuppetError(outcome["aborted"], hint="Preview again, when nothing is deployed at the same time.")
        return outcome


@dataclass(frozen=True, slots=True)
class Sides:
    """The two states of the code, and the environment's name in both."""

    environment: str
    before: PreviewSide
    after: PreviewSide

    def data(self) -> dict[str, Any]:
        return {"environment": self.environment, "roots": [self.before.root, self.after.root]}
