"""Previews over HTTP: one line of JSON for each finished node, and the result in the last line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from environments.directories import Environments
from shared.data import plainjson
from shared.errors import PuppetError
from shared.indirector import Indirector
from shared.settings import MasterSettings

from ..endpoints.preview import PreviewQuestion
from ..pools.process_pool import OnQuestion
from ..puppetdb.client import PuppetDbClient
from .nodes import NodeSelector, PreviewNodes
from .pool import PreviewPool, Sides
from .result import PreviewResult, PreviewSide
from .run import run_preview


@dataclass(frozen=True, slots=True)
class PreviewService:
    """Makes previews of the environments of a running master, in processes of their own (`preview_workers`)."""

    settings: MasterSettings
    environments: Environments
    indirector: Indirector
    client: PuppetDbClient
    on_question: OnQuestion

    async def lines(self, question: PreviewQuestion) -> AsyncIterator[bytes]:
        """
        Yield `{"node", "state"}` for each node that is done, then `{"result"}`, or `{"error"}` when it failed after the first line.

        Raises:
            NotFound: There is no such environment. PuppetError: The nodes cannot be found, or there is no preview.
        """
        sides = await asyncio.to_thread(self._sides, question)
        nodes = PreviewNodes(
            settings=self.settings,
            facts=self.indirector.facts,
            nodes=self.indirector.node,
            client=self.client,
            environment=question.environment,
            classification=question.classification,
        )
        names = await NodeSelector(self.indirector.facts, self.client)(question)
        done: asyncio.Queue[bytes | None] = asyncio.Queue()  # as many as there are nodes at most, a short line each
        pool = PreviewPool.of(self.settings, self.environments, size=self.settings.preview_workers, on_question=self.on_question)
        running = asyncio.create_task(
            run_preview(
                pool,
                sides,
                nodes,
                names,
                on_outcome=lambda node, outcome: done.put_nowait(_line({"node": node, "state": outcome["state"]})),
            )
        )
        running.add_done_callback(lambda task: done.put_nowait(None))
        has_sent = False
        try:
            while (line := await done.get()) is not None:
                yield line
                has_sent = True
            try:
                result = await running
            except PuppetError as err:
                if not has_sent:
                    raise
                last = _line({"error": {"message": err.message, "hint": err.hint}})
            else:
                last = await asyncio.to_thread(_result_line, result)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await pool.processes.close()
        yield last  # whoever has it may ask for the next preview at once: no process of this one is left

    def _sides(self, question: PreviewQuestion) -> Sides:
        """Return the two environments as they are now; raise NotFound when one does not exist. Blocks."""
        before, after = (PreviewSide.of_environment(name, self.environments.root_of(name)) for name in (question.before, question.after))
        return Sides(question.environment, before, after)


def _line(data: dict[str, Any]) -> bytes:
    return plainjson.dumps(data) + b"\n"


def _result_line(result: PreviewResult) -> bytes:
    return _line({"result": result.data()})
