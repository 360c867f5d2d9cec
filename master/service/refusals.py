"""The audit of refused requests, through a queue, as the event loop must not wait for a disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from ca.audit import Audit
from shared.process.logqueue import FLUSH, QueuedHandler


class _TrailHandler(logging.Handler):
    """Writes the entries of log records to an audit trail."""

    def __init__(self, trail: Audit) -> None:
        super().__init__()
        self._trail = trail

    def emit(self, record: logging.LogRecord) -> None:
        self._trail(cast("dict[str, object]", vars(record)["entry"]))


class Refusals:
    """A queue of entries for `trail`. When `capacity` entries wait, further ones are dropped and counted in `queue.dropped`."""

    def __init__(self, trail: Audit, *, capacity: int) -> None:
        self.queue = QueuedHandler(_TrailHandler(trail), capacity=capacity)

    def record(self, entry: dict[str, object]) -> None:
        """Queue an entry, with the number of the request that is being answered."""
        self.queue.handle(logging.makeLogRecord({"msg": "refused", "levelno": logging.INFO, "entry": entry}))


@contextmanager
def queued_refusals(trail: Audit, *, capacity: int) -> Iterator[Refusals]:
    """Yield a queue for the trail; at the end, waiting entries are written within the seconds that logs have for it, which blocks."""
    refusals = Refusals(trail, capacity=capacity)
    try:
        yield refusals
    finally:
        refusals.queue.finish(FLUSH)
