"""Tasks that somebody watches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from shared.process.supervision import MOST_STARTS, STEADY, SupervisedTask, Supervisor, pause_before
from tests.support.waiting import turns, until

WATCH = SupervisedTask("watch the door")
SERVE = SupervisedTask("serve", essential=True)
TIDY = SupervisedTask("tidy up", ends=True)
TASKS = (WATCH, SERVE, TIDY)


class Work:
    """A task that fails as often as it is told to, and then runs until it is cancelled."""

    def __init__(self, failures: int, error: BaseException | None) -> None:
        self.failures = failures
        self.error = error
        self.starts = 0
        self.runs = asyncio.Event()

    async def __call__(self) -> None:
        self.starts += 1
        if self.starts <= self.failures:
            if self.error is None:
                return
            raise self.error
        self.runs.set()
        await asyncio.Event().wait()


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    """A supervisor that starts tasks again at once."""
    supervisor = Supervisor(TASKS, pause=lambda task, failures: 0.0)
    yield supervisor
    await supervisor.stop(*supervisor.tasks)


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("task", [WATCH, SERVE])
@pytest.mark.parametrize(
    "error", [ValueError("nobody foresaw it"), None, asyncio.CancelledError()], ids=["error", "end", "cancelled within"]
)
async def test_a_task_that_ends_unforeseen_is_logged_counted_and_started_again(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture, task: SupervisedTask, error: BaseException | None
) -> None:
    work = Work(2, error)
    supervisor.start(task.name, work)
    await asyncio.wait_for(work.runs.wait(), 5)
    assert (work.starts, supervisor.failures[task.name]) == (3, 2)
    assert len(errors(caplog)) == 2
    assert all(f"'{task.name}'" in record.getMessage() for record in errors(caplog))
    if isinstance(error, ValueError):
        assert all(record.exc_info is not None and record.exc_info[1] is error for record in errors(caplog))
    assert not supervisor.gave_up.is_set()


async def test_an_essential_task_that_fails_again_and_again_is_given_up_with_a_reason(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(1000, ValueError("always"))
    supervisor.start(SERVE.name, work)
    await asyncio.wait_for(supervisor.gave_up.wait(), 5)
    assert work.starts == MOST_STARTS == supervisor.failures[SERVE.name] == len(errors(caplog))
    assert "'serve' failed 6 times" in supervisor.reason
    assert not supervisor.is_sound


async def test_a_task_that_was_steady_before_it_failed_is_not_given_up() -> None:
    times = iter(range(0, 10**6, int(STEADY)))
    supervisor = Supervisor(TASKS, pause=lambda task, failures: 0.0, clock=lambda: next(times))
    work = Work(3 * MOST_STARTS, ValueError("now and then"))
    supervisor.start(SERVE.name, work)
    await asyncio.wait_for(work.runs.wait(), 5)
    assert not supervisor.gave_up.is_set()
    await supervisor.stop(SERVE.name)


async def test_a_task_that_ends_by_itself_is_not_started_again_whether_it_failed_or_not(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    failing, ending = Work(1, ValueError("once")), Work(1, None)
    supervisor.start(TIDY.name, failing)
    await until(lambda: supervisor.failures[TIDY.name])
    await turns(3)  # in which it would start again
    assert (failing.starts, supervisor.failures[TIDY.name], len(errors(caplog))) == (1, 1, 1)
    await supervisor.stop(TIDY.name)
    supervisor.start(TIDY.name, ending)
    await turns(5)
    assert (ending.starts, supervisor.failures[TIDY.name]) == (1, 1)


async def test_a_task_that_is_stopped_is_no_failure(supervisor: Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    work = Work(0, None)
    supervisor.start(WATCH.name, work)
    await work.runs.wait()
    await supervisor.stop(WATCH.name)
    assert errors(caplog) == []
    assert set(supervisor.failures.values()) == {0}


async def test_the_process_is_sound_while_each_essential_task_is_at_work() -> None:
    supervisor = Supervisor(TASKS, pause=lambda task, failures: 60.0)
    assert supervisor.is_sound
    supervisor.start(WATCH.name, Work(1, ValueError("not essential")))
    supervisor.start(SERVE.name, Work(1, ValueError("essential")))
    assert supervisor.is_sound
    await until(lambda: supervisor.failures == dict.fromkeys(supervisor.tasks, 0) | {WATCH.name: 1, SERVE.name: 1})
    assert not supervisor.is_sound
    await supervisor.stop(WATCH.name, SERVE.name)


async def test_what_a_short_task_raises_is_logged_and_counted_though_nobody_waits(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise ValueError("nobody foresaw it")

    task = supervisor.spawn(TIDY.name, fail())
    await asyncio.wait({task})
    await asyncio.sleep(0)
    assert (supervisor.failures[TIDY.name], len(errors(caplog))) == (1, 1)


async def test_a_task_that_is_not_in_the_table_is_refused(supervisor: Supervisor) -> None:
    with pytest.raises(ValueError, match="No supervised task is called 'dance'"):
        supervisor.start("dance", Work(0, None))


async def test_a_task_is_started_once(supervisor: Supervisor) -> None:
    supervisor.start(WATCH.name, Work(0, None))
    with pytest.raises(ValueError, match="runs already"):
        supervisor.start(WATCH.name, Work(0, None))


@pytest.mark.parametrize(
    ("task", "pauses"),
    [(WATCH, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]), (SERVE, [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2])],
)
def test_pauses_double_up_to_a_longest_one(task: SupervisedTask, pauses: list[float]) -> None:
    assert [pause_before(task, failures) for failures in range(1, len(pauses) + 1)] == pauses
