"""
Log destinations behind bounded queues: code that logs never waits for a destination.

Each destination has a queue and a thread of its own, so that a blocked destination delays no other.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from logging.handlers import QueueHandler

from .log import ORIGIN

log = logging.getLogger("puppet.log")

FLUSH = 5.0  # seconds that all destinations together have at the end
MAX_CHARACTERS = 32 * 1024 * 1024  # of all lines that wait for one destination
GATHERING = 0.02  # seconds after a line in which others only queue up: to wake the thread for each of them takes longer than to write it
_TELL_AFTER = 1000  # lines written, after which drops are told though more lines wait


class QueuedHandler(QueueHandler):
    """
    Hands records to the thread that writes them to `destination`.

    A record is dropped, and counted in `dropped`, when the queue is full or the destination refuses it. The number of missing records
    is logged as soon as the destination accepts records again.
    """

    def __init__(
        self, destination: logging.Handler, *, capacity: int, max_characters: int = MAX_CHARACTERS, gathering: float = GATHERING
    ) -> None:
        self.records: queue.Queue[logging.LogRecord | None] = queue.Queue(capacity)
        super().__init__(self.records)
        self.setLevel(destination.level)
        self.destination = destination
        self.max_characters = max_characters
        self.gathering = gathering
        self._put = self._taken = 0  # characters; each is changed by one thread at a time
        self._not_queued = self._not_written = 0
        self._written = 0
        self._failed = False
        self._dropped_when_told = self._written_when_told = 0
        destination.handleError = self._note_failure  # type: ignore[method-assign]  # it would print a traceback for each line
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of records that the destination lacks."""
        return self._not_queued + self._not_written

    @property
    def waiting(self) -> int:
        """The number of pending records."""
        return self.records.qsize()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a copy that holds on to nothing of its caller, with the request that it belongs to."""
        prepared = logging.LogRecord.__new__(logging.LogRecord)
        vars(prepared).update(vars(record))  # copy.copy takes several times as long
        prepared.msg, prepared.args = record.getMessage(), None
        if record.exc_info and not record.exc_text:
            prepared.exc_text = _TRACEBACKS.formatException(record.exc_info)
        prepared.exc_info = None
        prepared.origin = ORIGIN.get()
        return prepared

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue the record or drop it; never wait."""
        size = _size(record)
        if self._put - self._taken + size > self.max_characters:
            self._not_queued += 1
            return
        try:
            self.records.put_nowait(record)
            self._put += size
        except queue.Full:
            self._not_queued += 1

    def finish(self, seconds: float) -> bool:
        """Let the thread write pending records and end; return whether it did within `seconds`."""
        end = time.monotonic() + seconds
        self._ending.set()
        try:
            self.records.put(None, timeout=seconds)
        except queue.Full:
            return False
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            return False
        vars(self.destination).pop("handleError", None)
        return True

    def _write_all(self) -> None:
        while (record := self.records.get()) is not None:
            self._taken += _size(record)
            ORIGIN.set(vars(record)["origin"])
            if not self._write(record):
                self._not_written += 1
            else:
                self._written += 1
                if self.records.empty() or self._written - self._written_when_told >= _TELL_AFTER:
                    self._tell_drops()
            if self.records.empty():
                self._ending.wait(self.gathering)
        self._tell_drops()

    def _tell_drops(self) -> None:
        dropped, self._written_when_told = self.dropped, self._written
        if dropped > self._dropped_when_told:
            ORIGIN.set(None)
            text = "%d lines of the log are missing before this one: they came faster than they were read, or could not be written"
            missing = (dropped - self._dropped_when_told,)
            if self._write(logging.LogRecord(log.name, logging.WARNING, __file__, 0, text, missing, None)):
                self._dropped_when_told = dropped

    def _write(self, record: logging.LogRecord) -> bool:
        """Write the record to the destination; return whether it succeeded."""
        self._failed = False
        try:
            # Not `handle`: its lock would be held while nobody reads, and whoever closes all handlers at the end waits for it.
            self.destination.emit(record)
        except Exception:  # noqa: BLE001  # an error of one line ends neither the thread nor the lines after it
            return False
        return not self._failed

    def _note_failure(self, record: logging.LogRecord) -> None:
        self._failed = True


_TRACEBACKS = logging.Formatter()


def _size(record: logging.LogRecord) -> int:
    return len(str(record.msg)) + len(record.exc_text or "")


class LogQueues:
    """The queued destinations of a process. `stuck`: one of them took nothing any more when they were flushed at the end."""

    def __init__(self) -> None:
        self.handlers: dict[str, QueuedHandler] = {}  # by logger and number
        self.stuck = False

    def drops(self) -> Iterator[tuple[tuple[str], int]]:
        """Yield how many lines each destination lacks, as samples of a metric."""
        for name, handler in self.handlers.items():
            yield (name,), handler.dropped

    def waits(self) -> Iterator[tuple[tuple[str], int]]:
        """Yield how many lines wait for each destination, as samples of a metric."""
        for name, handler in self.handlers.items():
            yield (name,), handler.waiting


@contextmanager
def queued(capacity: int, loggers: Sequence[str] = ("", "puppet.access"), *, flush: float = FLUSH) -> Iterator[LogQueues]:
    """
    Put the destinations of these loggers behind queues for as long as the block lasts; fork before it, not in it.

    At the end all lines are written, within `flush` seconds. A destination that is stuck even then is not put back.

    Args:
        capacity: Lines that may wait for one destination.
    """
    queues = LogQueues()
    replaced: list[tuple[logging.Logger, QueuedHandler]] = []
    for logger in map(logging.getLogger, loggers):
        for destination in list(logger.handlers):
            if isinstance(destination, logging.NullHandler):
                continue
            handler = QueuedHandler(destination, capacity=capacity)
            queues.handlers[_name(logger, destination, queues.handlers)] = handler
            logger.removeHandler(destination)
            logger.addHandler(handler)
            replaced.append((logger, handler))
    try:
        yield queues
    finally:
        end = time.monotonic() + flush
        for logger, handler in replaced:
            logger.removeHandler(handler)
        for logger, handler in replaced:
            if handler.finish(max(0.0, end - time.monotonic())):
                logger.addHandler(handler.destination)
            else:
                queues.stuck = True
                logger.addHandler(logging.NullHandler())  # without any, Python would write to standard error


def _name(logger: logging.Logger, destination: logging.Handler, handlers: dict[str, QueuedHandler]) -> str:
    """Return the name of a destination in the metrics: its file or kind, with the prefix `access log` for that log's."""
    place = getattr(destination, "baseFilename", "") or type(destination).__name__.removesuffix("Handler").lower()
    name = f"{logger.name.removeprefix('puppet.')} log: {place}" if logger.name != "root" else str(place)
    return name if name not in handlers else f"{name} {len(handlers)}"
