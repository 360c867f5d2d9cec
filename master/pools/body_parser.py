"""Where a body is parsed: in the event loop, in a thread, or in a process that the kernel can end. Nothing else decides that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shared.errors import BadData
from shared.indirector.core import Indirection, M
from shared.indirector.termini import StoredBodies
from shared.models.facts import FACTS, Facts
from shared.models.report import REPORT
from shared.process.turns import LoopTurns
from shared.wire.dialects import Dialect
from shared.wire.formats import Format
from shared.wire.percent import decode_percent

from .catalog_schema import parse_catalog_body
from .parse_pool import ParsePool

T = TypeVar("T")

IN_PLACE = 64 * 1024  # bytes of JSON, or of a form, up to which the event loop parses them itself, in one to three milliseconds
REPORT_IN_PROCESS = 512 * 1024  # bytes of a report as JSON from which a process parses it; a smaller one takes some milliseconds


@dataclass(frozen=True, slots=True)
class BodyParser:
    """
    Parses what peers send, and large files of ours.

    A process gets YAML of any size, reports from REPORT_IN_PROCESS on, and facts, requests for catalogs and files from IN_PLACE on.

    Args:
        pool: The processes; None: threads do their work.
        turns: Spreads what is parsed in the event loop over its iterations.
    """

    pool: ParsePool | None = None
    turns: LoopTurns = field(default_factory=LoopTurns)

    async def load(self, indirection: Indirection[M], body: bytes, dialect: Dialect, form: Format) -> M:
        """Return the instance in a body; BadData when it is none, or takes too long, Unavailable when too many wait."""
        is_yaml = "yaml" in form.name
        is_large = len(body) >= (IN_PLACE if indirection is FACTS else REPORT_IN_PROCESS) and indirection in (FACTS, REPORT)
        if self.pool is not None and (is_yaml or is_large):
            return await self.pool.load(indirection, body, dialect, form)
        return await self.parse(lambda: dialect.load(indirection, body, form), len(body), in_thread=is_yaml)

    async def load_escaped_facts(self, text: str, dialect: Dialect, form: Format) -> Facts | None:
        """Return the facts in a field of a form, which are escaped once more than the form; None for `null`. Raises as `load`."""
        is_yaml = "yaml" in form.name
        if self.pool is not None and (is_yaml or len(text) >= IN_PLACE):
            # The remaining escapes are plain text, which is at least as long as the characters it stands for.
            body = await asyncio.to_thread(_escaped_body, text)
            return await self.pool.load_escaped(FACTS, body, dialect, form)
        return await self.parse(lambda: _escaped_facts(text, dialect, form), len(text), in_thread=is_yaml)

    async def catalog_request(self, body: bytes) -> dict[str, Any]:
        """Return what a body of /puppet/v4/catalog says; BadRequest when it is none."""
        if self.pool is not None and len(body) >= IN_PLACE:
            return await self.pool.catalog_request(body)
        return await self.parse(lambda: parse_catalog_body(body), len(body))

    async def stored(self, place: StoredBodies[M], key: str) -> M | None:
        """Return the instance that is stored under a key; None when there is none, or when it does not parse, with a warning."""
        try:
            body = await place.fetch(key)
            if body is None:
                return None
            if self.pool is None or len(body) < IN_PLACE:
                return await asyncio.to_thread(place.load, key, body)
            return await self.pool.stored(place, key, body)
        except BadData as err:
            place.warn(key, err)
            return None

    async def parse(self, parse: Callable[[], T], size: int, *, in_thread: bool = False) -> T:
        """Return what `parse` makes of so many bytes, which needs no process: here when they are few, unless it shall be `in_thread`."""
        if in_thread or size >= IN_PLACE:
            return await asyncio.to_thread(parse)
        await self.turns.take()
        return parse()


def _escaped_body(text: str) -> bytes:
    return text.replace("+", " ").encode("utf-8", "surrogateescape")


def _escaped_facts(text: str, dialect: Dialect, form: Format) -> Facts | None:
    body = decode_percent(_escaped_body(text))
    return None if body.strip() == b"null" else dialect.load(FACTS, body, form)
