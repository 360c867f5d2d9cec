"""Log destinations that take their time, or nothing at all, hold up nobody."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.process.log import ORIGIN, ConsoleHandler, FileFormatter, RequestOrigin, handler_for
from shared.process.logqueue import QueuedHandler, queued
from tests.support.fakes import logging_kept
from tests.support.waiting import wait_until

CAPACITY = 100


class Slow(logging.Handler):
    """A destination that takes nothing until it is opened; `full` has it refuse what comes."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = threading.Event()
        self.lines: list[str] = []
        self.full = False
        self.formatter = FileFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        assert self.opened.wait(30)
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.lines.append(self.format(record))


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("puppet.test-of-queues")
    logger.setLevel(logging.DEBUG)
    with logging_kept():
        yield logger
    logger.handlers.clear()


@pytest.fixture
def slow(logger: logging.Logger) -> Iterator[Slow]:
    slow = Slow()
    logger.addHandler(slow)
    yield slow
    slow.opened.set()


def test_after_a_line_others_gather_and_the_end_waits_for_none(logger: logging.Logger, slow: Slow) -> None:
    slow.opened.set()
    handler = QueuedHandler(slow, capacity=CAPACITY, gathering=3600)
    logger.addHandler(handler)
    logger.removeHandler(slow)
    logger.info("first")
    wait_until(lambda: bool(slow.lines))
    logger.info("second")
    logger.info("third")
    assert (len(slow.lines), handler.waiting) == (1, 2)
    assert handler.finish(10)
    assert [line.rsplit(": ", 1)[1] for line in slow.lines] == ["first", "second", "third"]


async def test_a_destination_that_takes_nothing_does_not_hold_up_the_loop(logger: logging.Logger, slow: Slow) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        for turns in range(1000):  # noqa: B007
            await asyncio.sleep(0)

    with queued(CAPACITY, [logger.name]) as queues:
        counting = asyncio.create_task(count())
        for number in range(3 * CAPACITY):
            logger.info("line %d", number)
            await asyncio.sleep(0)
        await counting
        assert (slow.lines, turns) == ([], 999)
        ((_, dropped),) = queues.drops()
        assert dropped in (2 * CAPACITY - 1, 2 * CAPACITY)  # one may be in the hands of the thread
        slow.opened.set()
    told = f"{dropped} lines of the log are missing before this one"
    numbers = [int(line.rsplit(" ", 1)[1]) for line in slow.lines[:-1]]
    # When the thread takes the first line after others were dropped, a later one has room again.
    assert numbers[:CAPACITY] == list(range(CAPACITY)) and numbers == sorted(set(numbers)) and len(numbers) == 3 * CAPACITY - dropped
    assert told in slow.lines[-1]


def test_order_and_number_of_lines_are_as_they_were_logged(logger: logging.Logger, slow: Slow) -> None:
    slow.opened.set()
    with queued(10 * CAPACITY, [logger.name]):
        for number in range(5 * CAPACITY):
            logger.info("line %d", number)
    logger.info("after")
    assert [line.rsplit(": ", 1)[1] for line in slow.lines] == [*(f"line {number}" for number in range(5 * CAPACITY)), "after"]


def test_a_line_carries_the_request_that_it_was_logged_in_and_its_traceback(logger: logging.Logger, slow: Slow) -> None:
    slow.opened.set()
    with queued(CAPACITY, [logger.name]):
        token = ORIGIN.set(RequestOrigin("4711", "192.0.2.1"))
        try:
            raise ValueError("why")
        except ValueError:
            logger.exception("failed with %s", "this")
        ORIGIN.reset(token)
        logger.info("elsewhere")
    first, last = slow.lines
    assert "failed with this\nTraceback" in first and "ValueError: why" in first and first.endswith(" [4711]")
    assert last.endswith("elsewhere")


def test_a_line_is_as_it_was_when_it_was_logged(logger: logging.Logger, slow: Slow) -> None:
    changing = ["before"]
    with queued(CAPACITY, [logger.name]):
        logger.info("%s", changing)
        changing.append("after")
        slow.opened.set()
    assert slow.lines[0].endswith("['before']")


def test_lines_that_a_destination_refuses_are_counted_and_told_when_it_takes_some_again(logger: logging.Logger, slow: Slow) -> None:
    slow.full = True
    slow.opened.set()
    with queued(CAPACITY, [logger.name]) as queues:
        for _ in range(3):
            logger.info("lost")
        (handler,) = queues.handlers.values()
        wait_until(lambda: handler.dropped == 3)
        slow.full = False
        logger.info("there is room again")
    assert slow.lines[0].endswith("there is room again")
    assert "3 lines of the log are missing" in slow.lines[1]


def test_a_log_file_whose_folder_is_gone_raises_in_nobody_and_is_counted(logger: logging.Logger, tmp_path: Path) -> None:
    logger.addHandler(handler_for(str(tmp_path / "log" / "master.log"), colour="false", ident="x", facility="daemon"))
    with queued(CAPACITY, [logger.name]) as queues:
        (tmp_path / "log" / "master.log").unlink()
        (tmp_path / "log").rmdir()
        logger.info("where to?")
    assert [count for _, count in queues.drops()] == [1]
    logger.handlers[0].close()


def test_a_log_file_that_was_moved_is_opened_anew(logger: logging.Logger, tmp_path: Path) -> None:
    path = tmp_path / "master.log"
    logger.addHandler(handler_for(str(path), colour="false", ident="x", facility="daemon"))
    with queued(CAPACITY, [logger.name]) as queues:
        (handler,) = queues.handlers.values()
        logger.info("first")
        wait_until(lambda: bool(path.read_text()))
        path.rename(tmp_path / "master.log.1")
        logger.info("second")
    assert path.read_text().endswith("second\n") and handler.dropped == 0
    logger.handlers[0].close()


def test_the_characters_that_wait_are_bounded_too(slow: Slow) -> None:
    handler = QueuedHandler(slow, capacity=CAPACITY, max_characters=1000)
    for _ in range(10):
        handler.handle(logging.LogRecord("puppet.x", logging.INFO, "x.py", 1, "x" * 400, (), None))
    assert handler.dropped in (7, 8)
    slow.opened.set()
    assert handler.finish(30)


def test_a_destination_that_is_stuck_at_the_end_is_given_up_after_a_while(logger: logging.Logger, slow: Slow) -> None:
    with queued(CAPACITY, [logger.name], flush=0.05) as queues:
        for _ in range(2 * CAPACITY):
            logger.info("line")
    assert queues.stuck
    logger.info("nobody waits for this")


def test_each_destination_has_a_queue_of_its_own(logger: logging.Logger, slow: Slow) -> None:
    quick = Slow()
    quick.opened.set()
    logger.addHandler(quick)
    with queued(CAPACITY, [logger.name]) as queues:
        assert len(queues.handlers) == 2
        for part in range(1, 5):
            for _ in range(CAPACITY // 2):
                logger.info("line")
            wait_until(lambda: len(quick.lines) == part * (CAPACITY // 2))  # noqa: B023  # it is called at once
        assert slow.lines == []
        slow.opened.set()


def test_a_console_whose_pipe_is_full_holds_up_nobody(logger: logging.Logger) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading, "rb") as pipe:
        logger.addHandler(ConsoleHandler(colour="false", out=stream, err=stream))
        with queued(CAPACITY, [logger.name]) as queues:
            for number in range(3000):
                logger.info("%d %s", number, "x" * 100)  # 300 kB; a pipe takes 64
            assert next(iter(queues.drops()))[1] > 1000
            lines: list[bytes] = []
            reader = threading.Thread(target=lambda: lines.extend(pipe))
            reader.start()
        stream.close()
        reader.join(30)
    missing = [int(line.split()[1]) for line in lines if b"lines of the log are missing before this one" in line]
    numbers = [int(line.split()[1]) for line in lines if b"xxx" in line]
    assert numbers == sorted(numbers)
    assert missing and len(numbers) + sum(missing) == 3000
