"""The connection between a run's log and Python's `logging`: each line is printed once and is in the report once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from shared.models.report import Log, iso_time
from shared.process.log import LEVELS, level_name

from .runlog import RunLog

PRINTED = "puppet.run"  # the logger of lines that come from a RunLog


def print_line(line: Log) -> None:
    """Send a line of a RunLog to the logs of this process."""
    extra = {"source": line.source, "tags": line.tags, "manifest": line.file, "manifest_line": line.line}
    logging.getLogger(PRINTED).log(LEVELS[line.level], "%s", line.message, extra=extra)


class _Keeper(logging.Handler):
    """A handler that records in the run's log the lines of other parts of the agent."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == PRINTED:
            return
        level = level_name(record.levelno)
        source = getattr(record, "source", "") or "Puppet"
        when = iso_time(datetime.fromtimestamp(record.created, UTC))
        self.log.keep(Log(level=level, message=record.getMessage(), source=source, tags=[level], time=when))


class _Mask(logging.Filter):
    """A filter that masks the Sensitive values of a run's resources in the logs of this process."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self.log = log

    def filter(self, record: logging.LogRecord) -> bool:
        if self.log.secrets:
            record.msg, record.args = self.log.secrets.mask(record.getMessage()), ()
        return True


@contextmanager
def record_logging(log: RunLog) -> Iterator[None]:
    """Within this block, record lines of the logger `puppet` in `log` too, and mask Sensitive values for all its handlers."""
    keeper, mask = _Keeper(log), _Mask(log)
    logger = logging.getLogger("puppet")
    logger.addHandler(keeper)
    handlers = [*logger.handlers, *logging.getLogger().handlers]
    for handler in handlers:
        handler.addFilter(mask)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(mask)
        logger.removeHandler(keeper)
