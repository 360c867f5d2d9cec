"""The master's facts: stored per node, searched by conditions. Source: protocol reference 3.2."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import BadRequest
from shared.indirector import Request, Terminus
from shared.indirector.core import Option
from shared.indirector.termini import StoredBodies
from shared.models.facts import Facts, NodeName
from shared.names import quoted_for_log, valid_certname

from ..pools.body_parser import BodyParser

log = logging.getLogger("puppet.indirector")

Compare = Callable[[Any, str], bool]


def _numbers(fact: Any, limit: str) -> tuple[float, float]:
    return float(fact), float(limit)


_OPERATORS: Mapping[str, Compare] = {
    "eq": lambda left, right: str(left) == right,
    "ne": lambda left, right: str(left) != right,
    "lt": lambda left, right: (pair := _numbers(left, right))[0] < pair[1],
    "le": lambda left, right: (pair := _numbers(left, right))[0] <= pair[1],
    "gt": lambda left, right: (pair := _numbers(left, right))[0] > pair[1],
    "ge": lambda left, right: (pair := _numbers(left, right))[0] >= pair[1],
}


class StoredFacts(Terminus[Facts]):
    """
    The facts of nodes, as one body a node.

    Args:
        files: A terminus on files or a database; other masters and commands write there, too.
        parser: Reads bodies; by default without processes of its own.
    """

    def __init__(self, files: StoredBodies[Facts], parser: BodyParser | None = None) -> None:
        self.files = files
        self.parser = parser or BodyParser()

    async def find(self, request: Request[Facts]) -> Facts | None:
        return await self.parser.stored(self.files, request.key)

    async def save(self, request: Request[Facts]) -> object:
        valid_certname(request.key)
        return await self.files.save(request)

    async def destroy(self, request: Request[Facts]) -> object:
        return 1 if await self.files.destroy(request) else None

    async def search(self, request: Request[Facts]) -> list[Facts] | None:
        """Return the names of the nodes whose facts meet all conditions."""
        tests = [condition(name, value) for name, value in request.options.items()]
        stored = await self.files.search(request)
        names: list[Any] = [NodeName(name=facts.name) for facts in stored if all(test(facts) for test in tests)]
        return names


def condition(name: str, value: Option) -> Callable[[Facts], bool]:
    """Return the test of `facts.<name>[.<op>]=value` or `meta.timestamp[.<op>]=value`; raise BadRequest for anything else."""
    kind, _, rest = name.partition(".")
    fact, dot, operator = rest.rpartition(".")
    if not dot or operator not in _OPERATORS:
        fact, operator = rest, "eq"
    if not fact or not isinstance(value, str) or (kind == "meta" and fact != "timestamp"):
        raise BadRequest(
            f"Facts cannot be searched by {quoted_for_log(name)}", hint="Write facts.<name> or facts.<name>.<eq|ne|lt|le|gt|ge>."
        )
    compare = _OPERATORS[operator]

    def test(facts: Facts) -> bool:
        fact_value = (facts.timestamp or "") if kind == "meta" else facts.values.get(fact)
        if fact_value is None:
            return False
        if kind == "meta":
            return _compare_times(fact_value, operator, value)
        try:
            return compare(_text(fact_value), value)
        except ValueError:
            return False

    return test


def _text(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _compare_times(time: str, operator: str, limit: str) -> bool:
    """Compare ISO times, which is done as text."""
    return {
        "eq": time == limit,
        "ne": time != limit,
        "lt": time < limit,
        "le": time <= limit,
        "gt": time > limit,
        "ge": time >= limit,
    }[operator]
