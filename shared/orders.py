"""An order to run now, as a master gives it to an agent that waits for one. It carries no code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from .errors import BadData
from .names import valid_environment

ORDERS: Final = "/puppet/v1/orders"
"""The path at which agents wait."""
LONGEST_WAIT: Final = 300.0
"""Seconds after which a master answers an agent for which there is no order."""
MAX_BODY: Final = 16 * 1024
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
    """

    id: str
    noop: bool = False
    tags: tuple[str, ...] = ()
    environment: str = ""

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return the order in plain data; raise BadData, BadName."""
        if not isinstance(data, Mapping) or not data.keys() <= {"id", "noop", "tags", "environment"}:
            raise BadData("An order is an object with id, noop, tags and environment")
        number, noop, tags, environment = (data.get(name, default) for name, default in _DEFAULTS)
        if not isinstance(number, str) or not _ID.fullmatch(number) or not isinstance(noop, bool) or not isinstance(environment, str):
            raise BadData("The id and the environment of an order are texts, noop is true or false")
        return cls(number, noop, valid_tags(tags), valid_environment(environment) if environment else "")

    def to_data(self) -> dict[str, Any]:
        return {"id": self.id, "noop": self.noop, "tags": list(self.tags), "environment": self.environment}


_DEFAULTS: Final = (("id", ""), ("noop", False), ("tags", ()), ("environment", ""))


def valid_tags(tags: Any) -> tuple[str, ...]:
    """Return tags in lower case; raise BadData for anything but a list of tags."""
    if not isinstance(tags, Sequence) or isinstance(tags, str) or len(tags) > _MAX_TAGS:
        raise BadData(f"The tags of an order are a list of at most {_MAX_TAGS}")
    lowered = tuple(tag.lower() if isinstance(tag, str) else "" for tag in tags)
    for tag in lowered:
        if not _TAG.fullmatch(tag):
            raise BadData(f"Invalid tag '{tag[:80]}' in an order")
    return lowered
