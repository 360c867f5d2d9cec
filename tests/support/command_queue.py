"""Commands to queue, and a database that a test can take away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from store.commands.commands import DatabaseUnavailable, DeactivateNode, ReceivedCommand
from store.commands.submission import Submission
from store.queue.processor import CommandProcessor
from tests.support.waiting import until


def submission(certname: str = "web1", number: int = 0, *, payload: bytes | None = None, wait: float | None = None) -> Submission:
    """Return a command of a node; `number` are the microseconds of its time, by which the writer knows it again."""
    content = b'{"certname":"%s","producer_timestamp":"2025-11-01T00:00:00.%06dZ"}' % (certname.encode(), number)
    return Submission("deactivate node", 3, certname, None, wait, content if payload is None else payload, "identity")


@dataclass
class FakeWriter:
    """
    A database in a list. It is away while `is_away`; `poison` are certnames whose commands it cannot store, `slow` ones whose commands take
    so long that it gives up.
    """

    is_away: bool = False
    poison: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    error: Exception | None = None
    calls: int = 0
    batches: list[list[tuple[str, int]]] = field(default_factory=list)

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        names = {received.command.certname for received in commands}
        if self.is_away or names & self.slow:
            raise DatabaseUnavailable("the database is away")
        if self.error is not None:
            raise self.error
        if names & self.poison:
            raise ValueError("poison")
        self.batches.append([_key(received) for received in commands])

    @property
    def stored(self) -> list[tuple[str, int]]:
        """The certnames and numbers of the stored commands, in their order."""
        return [key for batch in self.batches for key in batch]

    async def until_stored(self, count: int) -> None:
        await until(lambda: len(self.stored) >= count)


def _key(received: ReceivedCommand) -> tuple[str, int]:
    command = received.command
    number = command.producer_timestamp % 1_000_000 if isinstance(command, DeactivateNode) else 0
    return command.certname, number


@asynccontextmanager
async def running(processor: CommandProcessor) -> AsyncIterator[CommandProcessor]:
    """A processor at work."""
    task = asyncio.create_task(processor.run())
    try:
        yield processor
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
