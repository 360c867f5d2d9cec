"""The master's facts: stored per node, searched by conditions. Source: protocol reference 3.2."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import BadData, BadRequest
from shared.filesystem.files import Stamp, stamp_of
from shared.indirector import Request, Terminus
from shared.indirector.core import Model, Option
from shared.indirector.termini import FilePerKey, Json
from shared.models.facts import Facts, PackedFacts
from shared.names import certname, shown
from shared.wire.dialects import Dialect

from ..pools.parse_pool import IN_PLACE, Parsers

log = logging.getLogger("puppet.indirector")

MAX_PACKED = 128 * 2**20  # bytes of large facts that are remembered

Compare = Callable[[Any, str], bool]


def _number(left: Any, right: str) -> tuple[float, float]:
    return float(left), float(right)


_OPERATORS: Mapping[str, Compare] = {
    "eq": lambda left, right: str(left) == right,
    "ne": lambda left, right: str(left) != right,
    "lt": lambda left, right: (pair := _number(left, right))[0] < pair[1],
    "le": lambda left, right: (pair := _number(left, right))[0] <= pair[1],
    "gt": lambda left, right: (pair := _number(left, right))[0] > pair[1],
    "ge": lambda left, right: (pair := _number(left, right))[0] >= pair[1],
}


class NodeName(Model):
    """A search for facts answers with names only."""

    def to_data(self, dialect: Dialect) -> Any:
        return self.name


class StoredFacts(Terminus[Facts]):
    """
    Facts on disk, one file a node (`files` is a Yaml or Json terminus), and those of the last large ones in memory.

    Other masters and commands write there, too. Large facts are remembered as the process that parsed them gave them, since to read
    their file would hold up all that the master does; `remembered` bytes of them.
    """

    def __init__(self, files: FilePerKey[Facts], *, remembered: int = MAX_PACKED, parsers: Parsers | None = None) -> None:
        self.files = files
        self.parsers = parsers
        self.remembered = remembered
        self._large: OrderedDict[str, tuple[Stamp, PackedFacts]] = OrderedDict()

    async def find(self, request: Request[Facts]) -> Facts | None:
        stamp, facts = self._large.get(request.key, (None, None))
        if facts is not None and stamp == await self._stamp(request.key):
            return facts.afresh()
        if self.parsers is None or await asyncio.to_thread(self._size, request.key) < IN_PLACE:
            return await self.files.find(request)
        return await self._large_of_file(request.key, self.parsers)

    def _size(self, key: str) -> int:
        """The bytes of a file; 0 when there is none."""
        try:
            return self.files.path(key).stat().st_size
        except FileNotFoundError:
            return 0

    async def _large_of_file(self, key: str, parsers: Parsers) -> Facts | None:
        """Facts of a large file, which a process parses; None when it holds none, with a warning as for a small one."""
        path = self.files.path(key)
        stamp = await self._stamp(key)
        try:
            body = await asyncio.to_thread(self.files.body, key)
            facts = None if body is None else await parsers.stored_facts(key, body, "json" if isinstance(self.files, Json) else "yaml")
        except BadData as err:
            log.warning("Ignoring %s, which does not hold facts: %s", path, err)
            return None
        if facts is not None:
            self._remember(key, stamp, facts)
        return facts

    def _remember(self, key: str, stamp: Stamp, facts: PackedFacts) -> None:
        self._large.pop(key, None)
        self._large[key] = stamp, facts.afresh()
        while sum(len(facts.packed_values.packed) for _, facts in self._large.values()) > self.remembered:
            self._large.popitem(last=False)

    async def save(self, request: Request[Facts]) -> object:
        certname(request.key)
        result = await self.files.save(request)
        self._large.pop(request.key, None)
        if isinstance(request.instance, PackedFacts):
            self._remember(request.key, await self._stamp(request.key), request.instance)
        return result

    async def destroy(self, request: Request[Facts]) -> object:
        self._large.pop(request.key, None)
        return 1 if await self.files.destroy(request) else None

    async def _stamp(self, key: str) -> Stamp:
        return await asyncio.to_thread(stamp_of, self.files.path(key))

    async def search(self, request: Request[Facts]) -> list[Facts] | None:
        """The names of the nodes whose facts meet all conditions."""
        tests = [condition(name, value) for name, value in request.options.items()]
        stored = await self.files.search(request)
        names: list[Any] = [NodeName(name=facts.name) for facts in stored if all(test(facts) for test in tests)]
        return names


def condition(name: str, value: Option) -> Callable[[Facts], bool]:
    """The test that `facts.<name>[.<op>]=value` or `meta.timestamp[.<op>]=value` asks for; BadRequest for anything else."""
    kind, _, rest = name.partition(".")
    fact, dot, operator = rest.rpartition(".")
    if not dot or operator not in _OPERATORS:
        fact, operator = rest, "eq"
    if not fact or not isinstance(value, str) or (kind == "meta" and fact != "timestamp"):
        raise BadRequest(f"Facts cannot be searched by {shown(name)}", hint="Write facts.<name> or facts.<name>.<eq|ne|lt|le|gt|ge>.")
    compare = _OPERATORS[operator]

    def test(facts: Facts) -> bool:
        found = (facts.timestamp or "") if kind == "meta" else facts.values.get(fact)
        if found is None:
            return False
        if kind == "meta":
            return _in_order(found, operator, value)
        try:
            return compare(_text(found), value)
        except ValueError:
            return False

    return test


def _text(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _in_order(left: str, operator: str, right: str) -> bool:
    """ISO times compare as text."""
    return {
        "eq": left == right,
        "ne": left != right,
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
    }[operator]
