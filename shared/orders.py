"""An order to run now, as a master gives it to an agent that waits for one. It carries no code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from .errors import BadData
from .names import valid_environment

ORDERS: Final = "/puppet/v1/orders"
"""The path at which agents wait."""
LONGEST_WAIT: Final = 300.0
"""Seconds after which a master answers an agent for which there is no order."""
MAX_BODY: Final = 16 * 1024
MAX_LINES: Final = 100
"""Lines of a run's log that are sent at once."""
MAX_LINE: Final = 2000
"""Characters of one that are sent."""
_MAX_TAGS: Final = 50
_TAG = re.compile(r"[a-z0-9_][a-z0-9_:.-]{0,200}")
_ID = re.compile(r"[0-9a-f-]{1,64}")


@dataclass(frozen=True, slots=True)
class RunOrder:
    """
    An order.

    Attributes:
        id: The job_id of the run, by which its report is recognized.
        noop: Whether the run is in noop mode; without it the agent's own settings decide.
        tags: Only resources with one of these tags; () leaves that to the agent's settings.
        environment: '' leaves it to the agent's settings.
        log: Whether the agent shall send what the run logs while it lasts.
    """

    id: str
    noop: bool = False
    tags: tuple[str, ...] = ()
    environment: str = ""
    log: bool = False

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return the order in plain data; raise BadData, BadName."""
        if not isinstance(data, Mapping) or not data.keys() <= {name for name, _ in _DEFAULTS}:
            raise BadData("An order is an object with id, noop, tags, environment and log")
        number, noop, tags, environment, logs = (data.get(name, default) for name, default in _DEFAULTS)
        if not isinstance(number, str) or not _ID.fullmatch(number) or not isinstance(environment, str):
            raise BadData("The id and the environment of an order are texts")
        if not isinstance(noop, bool) or not isinstance(logs, bool):
            raise BadData("noop and log of an order are true or false")
        return cls(number, noop, valid_tags(tags), valid_environment(environment) if environment else "", logs)

    def to_data(self) -> dict[str, Any]:
        return {"id": self.id, "noop": self.noop, "tags": list(self.tags), "environment": self.environment, "log": self.log}


_DEFAULTS: Final = (("id", ""), ("noop", False), ("tags", ()), ("environment", ""), ("log", False))


class RunLines(NamedTuple):
    """
    Lines of the log of an ordered run, which lasts still.

    Attributes:
        order: The id of the order.
        first: The number of lines before these.
        lines: Level, source and message of each.
    """

    order: str
    first: int
    lines: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return the lines in plain data; raise BadData."""
        match data:
            case {"order": str(order), "first": int(first), "lines": list(lines)} if _ID.fullmatch(order) and first >= 0:
                if len(lines) <= MAX_LINES and all(map(_is_line, lines)):
                    return cls(order, first, tuple((level, source, message[:MAX_LINE]) for level, source, message in lines))
        raise BadData(f"Lines of a run are an object with order, first and lines, {MAX_LINES} at most")

    def to_data(self) -> dict[str, Any]:
        return self._asdict()


def _is_line(data: Any) -> bool:
    return isinstance(data, list) and len(data) == 3 and all(isinstance(part, str) and len(part) <= MAX_BODY for part in data)


def valid_tags(tags: Any) -> tuple[str, ...]:
    """Return tags in lower case; raise BadData for anything but a list of tags."""
    if not isinstance(tags, Sequence) or isinstance(tags, str) or len(tags) > _MAX_TAGS:
        raise BadData(f"The tags of an order are a list of at most {_MAX_TAGS}")
    lowered = tuple(tag.lower() if isinstance(tag, str) else "" for tag in tags)
    for tag in lowered:
        if not _TAG.fullmatch(tag):
            raise BadData(f"Invalid tag '{tag[:80]}' in an order")
    return lowered
