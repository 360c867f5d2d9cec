"""What many tests share: environments that are only names, and logging that is left as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def logging_kept() -> Iterator[None]:
    """Whatever handlers and levels are set while this lasts, it leaves logging as it was: of the root, and of all below `puppet`."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    states = {logger: (logger.level, logger.propagate) for logger in _puppet_loggers()}
    try:
        yield
    finally:
        for handler in root.handlers:
            if handler not in handlers:
                handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        for logger in _puppet_loggers():
            level, logger.propagate = states.get(logger, (logging.NOTSET, True))
            if logger.level != level:
                logger.setLevel(level)


def _puppet_loggers() -> list[logging.Logger]:
    """Return the logger `puppet` and all below it that exist by now."""
    named = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith("puppet.")]
    return [logging.getLogger("puppet"), *named]


class KnownEnvironments:
    """Environments by their names; `expired` holds what was to be forgotten."""

    def __init__(self, names: Iterable[str] = ("production",)) -> None:
        self.names = list(names)
        self.expired: list[str | None] = []

    async def exists(self, name: str) -> bool:
        return name in self.names

    async def listing(self) -> Mapping[str, Any]:
        return {"search_paths": ["file:///envs"], "environments": {name: {"settings": {}} for name in self.names}}

    async def expire(self, name: str | None) -> None:
        self.expired.append(name)
