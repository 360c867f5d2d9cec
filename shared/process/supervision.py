"""
Supervised tasks: an unexpected exception is logged with its traceback and counted.

A long task is started again after a pause. The process ends when one that it cannot do without fails again and again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

log = logging.getLogger("puppet.supervision")

T = TypeVar("T")

STEADY = 60.0  # seconds: a task that ran so long before it failed starts anew with the shortest pause
MOST_STARTS = 6  # of an essential task in succession, none of which was steady
LONGEST_PAUSE = 300.0  # seconds
LONGEST_ESSENTIAL_PAUSE = 2.0


async def wait_for_first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, but not for longer; return whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SupervisedTask:
    """
    A task of a process by its name, as logs and metrics show it.

    Attributes:
        essential: The process cannot do without it. It ends when the task fails again and again.
        ends: The task ends by itself, and a failed one is not started again.
    """

    name: str
    essential: bool = False
    ends: bool = False


def pause_before(task: SupervisedTask, failures: int) -> float:
    """Return the seconds to wait before a task restarts after this number of failures in succession."""
    shortest, longest = (0.1, LONGEST_ESSENTIAL_PAUSE) if task.essential else (1.0, LONGEST_PAUSE)
    return float(min(longest, shortest * 2 ** min(failures - 1, 20)))


class Supervisor:
    """
    Starts and watches the tasks of one process.

    Args:
        tasks: All tasks there can be. Others are refused, so that each of them is in the metrics from the start.
        pause: Returns the seconds before a failed task starts again.
        clock: Returns seconds that only grow.
    """

    def __init__(
        self,
        tasks: Iterable[SupervisedTask],
        *,
        pause: Callable[[SupervisedTask, int], float] = pause_before,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.failures = dict.fromkeys(self.tasks, 0)
        self.gave_up = asyncio.Event()  # set when an essential task cannot be kept running
        self.reason = ""  # why, for people
        self._pause = pause
        self._clock = clock
        self._started: dict[str, asyncio.Task[None]] = {}
        self._at_work: set[str] = set()

    @property
    def is_sound(self) -> bool:
        """True if every essential task that was started is running."""
        return all(name in self._at_work for name in self._started if self.tasks[name].essential)

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start a task; `work` is called again for each further start."""
        if name in self._started:
            raise ValueError(f"The task '{name}' runs already")
        task = self._named(name)
        self._at_work.add(name)
        self._started[name] = asyncio.create_task(self._watch(task, work), name=name)

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a short task, of which there may be many. Its exception is logged; no caller has to await it."""
        self._named(name)
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self.report)
        return task

    def report(self, task: asyncio.Task[Any]) -> None:
        """Log and count the exception of a finished task with one of our names."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._count(task.get_name(), error, "")

    async def stop(self, *names: str) -> None:
        """Cancel tasks of these names that were started, and wait for their end."""
        tasks = [task for name in names if (task := self._started.pop(name, None)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # _watch raises nothing but its own cancellation

    @asynccontextmanager
    async def stopping(self) -> AsyncIterator[None]:
        """Stop, at the end of the context, the tasks that were started in it."""
        earlier = set(self._started)
        try:
            yield
        finally:
            await self.stop(*(self._started.keys() - earlier))

    def _named(self, name: str) -> SupervisedTask:
        if name not in self.tasks:
            raise ValueError(f"No supervised task is called '{name}': add it to the table of this process")
        return self.tasks[name]

    async def _watch(self, task: SupervisedTask, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        failures = 0
        while True:
            began = self._clock()
            error: BaseException | None = None
            self._at_work.add(task.name)
            try:
                await work()
                if task.ends:
                    return
            except asyncio.CancelledError as err:
                if (current := asyncio.current_task()) is None or current.cancelling():
                    raise
                error = err  # nobody cancelled this task: something that it awaited was cancelled
            except Exception as err:  # noqa: BLE001  # whatever it is, it must not end the task unseen
                error = err
            finally:
                self._at_work.discard(task.name)
            failures = failures + 1 if self._clock() - began < STEADY else 1
            if task.ends:
                self._count(task.name, error, "")
                return
            if task.essential and failures >= MOST_STARTS:
                self._give_up(task, error)
                return
            pause = self._pause(task, failures)
            self._count(task.name, error, f"; it starts again in {pause:g} seconds")
            await asyncio.sleep(pause)

    def _count(self, name: str, error: BaseException | None, what_next: str) -> None:
        self.failures[name] += 1
        if error is None:
            log.error("The task '%s' ended though it should run on%s", name, what_next)
        else:
            log.error("The task '%s' failed%s: %r", name, what_next, error, exc_info=error)

    def _give_up(self, task: SupervisedTask, error: BaseException | None) -> None:
        self.reason = f"The task '{task.name}' failed {MOST_STARTS} times in succession, and nothing works without it"
        self._count(task.name, error, "")
        self.gave_up.set()
