"""Answers questions: reads them, asks the database, and hands out the rows a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy.sql.selectable import Select

from ..database.engine import Database, Dialect
from ..jsontext import Json
from .batches import Batches, QueryAnswer, StatementPart, refusals
from .language.counting import read_counting, read_distinct
from .language.selections import read_query, with_paging
from .language.tree import ColumnFunction
from .questions import QueryLimits, Question, is_set
from .rows import shown_row
from .schema.entities import ENTITIES, NODES_WITH_EXPIRATION, Entity
from .schema.fields import Kind
from .sql.counts import count_events, page_counts, shown_counts, shown_totals, total_counts
from .sql.dialects import Sql
from .sql.plans import Explanation, shown_plan
from .sql.selects import Selects, count_rows
from .sql.sqlite import SqliteSql

_LONG = 8192  # characters of a text in PQL that takes several milliseconds to parse
_MANY = 1000  # members of a query as AST that takes as long to read
_COUNTS = ("event_counts", "aggregate_event_counts")


class QueryService:
    """
    Answers queries on the data in a database.

    `node_purge_ttl` are the seconds after which an inactive node is not even shown among the inactive ones; 0 for never.
    """

    def __init__(self, database: Database, limits: QueryLimits | None = None, *, node_purge_ttl: float = 0) -> None:
        self._database = database
        self._limits = limits or QueryLimits()
        self._node_purge_ttl = node_purge_ttl
        self._sql = _sql_of(database.dialect)

    def ast(self, question: Question) -> Json:
        """Return the query as AST, checked for its entity, without a query to the database. Raise QueryRefused for a faulty one."""
        query = _parsed(question)
        read_query(_entity_of(question), query, self._limits_of(question))
        return query

    async def answer(self, question: Question) -> QueryAnswer:
        """
        Return the answer to a query, after reading the first rows.

        QueryRefused is raised for a faulty query, or an answer that takes too long or is too large; PqlError where a text is no
        PQL. DatabaseUnavailable is raised when the database is away. All of them may also be raised while further rows are read.
        """
        # A thread costs more than parsing a usual query.
        parts = self._parts(question) if _is_short(question.query) else await asyncio.to_thread(self._parts, question)
        stack = AsyncExitStack()
        with refusals(self._limits):
            try:
                connection = await stack.enter_async_context(self._database.reading(self._limits.timeout))
                total = None
                # In the same transaction as the rows, so that both agree.
                if question.paging.include_total:
                    total = await connection.scalar(parts[0].total)
            except BaseException as err:
                await stack.__aexit__(type(err), err, err.__traceback__)
                raise
        batches = Batches(connection, stack, parts, self._limits)
        await batches.read_first()
        return QueryAnswer(batches, total)

    async def plans(self, question: Question) -> list[Json]:
        """
        Return how the database goes about a question: an object with `query plan` for each statement that it takes; raise as `answer`.

        PostgreSQL carries the question out to measure it, within the time that an answer may take.
        """
        parts = await asyncio.to_thread(self._parts, question)
        plans: list[Json] = []
        with refusals(self._limits):
            async with self._database.reading(self._limits.timeout) as connection:
                for part in parts:
                    rows = (await connection.execute(Explanation(part.page))).all()
                    plans.append({"query plan": shown_plan(self._database.dialect, rows)})
        return plans

    def _parts(self, question: Question) -> list[StatementPart]:
        since = int((time.time() - self._node_purge_ttl) * 1_000_000) if self._node_purge_ttl else 0
        selects = Selects(self._sql, since)
        query = _parsed(question)
        if question.entity in _COUNTS:
            return self._counts(selects, question, query)
        entity = _entity_of(question)
        selection = read_query(entity, query, self._limits_of(question))
        paging = question.paging
        selection = with_paging(selection, paging.limit, paging.offset, paging.order_by)
        distinct = read_distinct(question.parameters) if selection.entity.name == "events" else None
        statement = selects.statement(selection, distinct)
        columns = statement.columns
        batch = self._limits.batch
        if any(column.kind in (Kind.ROWS, Kind.PACKED, Kind.DOCUMENT) for column in columns):
            batch = self._limits.batch_of_documents
        if selection.entity.name == "fact_names" and not any(isinstance(column, ColumnFunction) for column in selection.columns or ()):
            return [self._part(statement.page, statement.total, lambda row: row[0], batch)]
        return [self._part(statement.page, statement.total, partial(shown_row, columns), batch)]

    def _limits_of(self, question: Question) -> QueryLimits:
        return self._limits if question.subqueries else replace(self._limits, subqueries=False)

    def _part(self, page: Select[Any], total: Select[Any], show: Callable[[Any], Json], batch: int) -> StatementPart:
        limit = page._limit  # the limit that the query has
        if self._limits.rows and (limit is None or limit > self._limits.rows):
            # One more than allowed tells a full answer from one that is too large.
            page = page.limit(self._limits.rows + 1)
        return StatementPart(page, total, show, batch)

    def _counts(self, selects: Selects, question: Question, query: Json) -> list[StatementPart]:
        is_aggregate = question.entity == "aggregate_event_counts"
        counting = read_counting(question.parameters, is_aggregate=is_aggregate)
        distinct = read_distinct(question.parameters)
        selection = read_query(ENTITIES["events"], query, self._limits_of(question))
        parts = []
        for subject in counting.subjects:
            rows = count_events(selects, self._sql, selection, counting, distinct, subject)
            if is_aggregate:
                totals = total_counts(rows)
                parts.append(StatementPart(totals, count_rows(totals), partial(shown_totals, subject), 1))
            else:
                page = page_counts(rows, self._sql, question.paging, subject)
                parts.append(self._part(page, count_rows(rows), partial(shown_counts, subject), self._limits.batch))
        return parts


def _sql_of(dialect: Dialect) -> Sql:
    if dialect == "sqlite":
        return SqliteSql()
    from .sql.postgresql import PostgresqlSql

    return PostgresqlSql()


def _is_short(query: Json) -> bool:
    """Return whether a query is read so fast that the event loop may do it."""
    if isinstance(query, str):
        return len(query) <= _LONG
    pending: list[Json] = [query]
    count = 0
    # Stops counting early: the query may have millions of members.
    while pending and count <= _MANY:
        member = pending.pop()
        if isinstance(member, list):
            count += len(member)
            pending += member
    return count <= _MANY


def _parsed(question: Question) -> Json:
    """Return the query of a question as AST: a text at the root is PQL."""
    if question.entity is None and (isinstance(question.query, str) or question.query is None):
        from .pql.parser import parse

        parsed: list[Any] = parse(question.query or "")
        return parsed
    return question.query


def _entity_of(question: Question) -> Entity | None:
    if question.entity is None:
        return None
    if question.entity == "nodes" and is_set(question.parameters.get("include_facts_expiration")):
        return NODES_WITH_EXPIRATION
    return ENTITIES[question.entity]
