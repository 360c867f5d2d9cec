"""The rows of an answer, read from the database a few at a time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.selectable import Select

from ..database.async_engine import AsyncConnection, AsyncResult
from ..database.engine import StatementTimeout
from ..jsontext import Json
from .questions import QueryLimits, QueryRefused

_log = logging.getLogger(__name__)

_INVALID_REGEX = "2201B"
_LIMITS_OF_SQLITE = {
    "parser stack overflow": "is nested too deeply",  # its parser holds a hundred levels of brackets and operators
    "Expression tree is too large": "has too many alternatives",
    "too many SQL variables": "has too many values",
}
"""The texts for exceeded limits of SQLite, by the beginning of its error."""


@dataclass(frozen=True, slots=True)
class StatementPart:
    """
    A statement of an answer, the statement that counts its rows without paging, the form of a row, and the number of rows read at a time.
    """

    page: Select[Any]
    total: Select[Any]
    show: Callable[[Any], Json]
    batch: int


class Batches(AsyncIterator[list[Json]]):
    """
    The rows of some statements, one after the other.

    `stack` holds the transaction; it is closed after the last row, after an error, and by `aclose`.
    """

    def __init__(self, connection: AsyncConnection, stack: AsyncExitStack, parts: Sequence[StatementPart], limits: QueryLimits) -> None:
        self._connection = connection
        self._stack = stack
        self._pending = list(parts)
        self._limits = limits
        self._part = self._pending.pop(0)
        self._result: AsyncResult[Any] | None = None
        self._first: list[Json] | None = None
        self._number = 0
        self._is_open = True

    async def read_first(self) -> None:
        """Read the first rows, so that errors of the statement come before anything of the answer is used."""
        self._first = await self._read()

    async def __anext__(self) -> list[Json]:
        if self._first is not None:
            batch, self._first = self._first, None
        else:
            batch = await self._read()
        if not batch:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        """End the transaction; more than once does no harm."""
        self._is_open = False
        result, self._result = self._result, None
        if result is not None:
            await result.close()
        await self._stack.aclose()

    async def _read(self) -> list[Json]:
        """Return the next rows, none after the last one."""
        if not self._is_open:
            return []
        with refusals(self._limits):
            try:
                rows = await self._fetch()
            except BaseException as err:
                self._is_open = False
                await self._stack.__aexit__(type(err), err, err.__traceback__)
                raise
        self._number += len(rows)
        if self._limits.rows and self._number > self._limits.rows:
            await self.aclose()
            raise QueryRefused(f"The answer has more than {self._limits.rows} rows; ask for fewer with limit and offset")
        return rows

    async def _fetch(self) -> list[Json]:
        while True:
            if self._result is None:
                self._result = await self._connection.stream(self._part.page)
            rows = await self._result.fetchmany(self._part.batch)
            shown = [self._part.show(row) for row in rows]
            if len(rows) < self._part.batch:
                if not self._pending:
                    await self.aclose()
                    return shown
                await self._result.close()
                self._result = None
                self._part = self._pending.pop(0)
            if shown:
                return shown


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """
    The rows of an answer in batches, and their number without limit and offset if it was requested.

    Whoever does not read all of `batches` closes it (`aclose`), so that its connection becomes free.
    """

    batches: Batches
    total: int | None = None


async def first_row(answer: QueryAnswer) -> dict[str, Json] | None:
    """Return the first row of an answer, which is closed; None when there is none."""
    async with aclosing(answer.batches) as batches:
        async for batch in batches:
            for row in batch:
                return row if isinstance(row, dict) else None
    return None


@contextmanager
def refusals(limits: QueryLimits) -> Iterator[None]:
    """Turn errors of the database that a query causes into QueryRefused."""
    try:
        yield
    except StatementTimeout as err:
        raise QueryRefused(f"The query takes longer than {limits.timeout:g} seconds") from err
    except DBAPIError as err:
        text = str(err.orig).partition("\n")[0]
        if getattr(err.orig, "sqlstate", None) == _INVALID_REGEX:
            raise QueryRefused(f"ERROR: {text}") from err
        if text == "user-defined function raised exception":  # of SQLite's functions only regexp has a reason to
            raise QueryRefused("A regular expression of the query takes too long") from err
        if reason := next((reason for begin, reason in _LIMITS_OF_SQLITE.items() if text.startswith(begin)), ""):
            raise QueryRefused(f"The query {reason} for SQLite") from err
        _log.warning("the database refused a query: %s", text)
        raise QueryRefused("The database cannot answer this query") from err
