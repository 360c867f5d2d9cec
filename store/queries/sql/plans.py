"""The plan of a statement, executed or not: EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.selectable import Select

from ...database.engine import Dialect
from ...jsontext import Json


class Explanation(Executable, ClauseElement):
    """The statement for the plan of a statement. PostgreSQL carries it out and measures it; SQLite only plans it."""

    inherit_cache = False

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement


@compiles(Explanation, "sqlite")
def _explain_to_sqlite(explanation: Explanation, compiler: SQLCompiler, **options: Any) -> str:
    return f"EXPLAIN QUERY PLAN {compiler.process(explanation.statement, **options)}"


@compiles(Explanation, "postgresql")
def _explain_to_postgresql(explanation: Explanation, compiler: SQLCompiler, **options: Any) -> str:
    return f"EXPLAIN (ANALYZE, VERBOSE, BUFFERS, FORMAT JSON) {compiler.process(explanation.statement, **options)}"


def shown_plan(dialect: Dialect, rows: Sequence[Row[Any]]) -> Json:
    """Return a plan in the form of its database: PostgreSQL's own JSON; SQLite's steps, each with its substeps in `Plans`."""
    if dialect == "postgresql":
        plan: Json = rows[0][0]
        return plan
    steps: dict[int, list[Json]] = {0: []}
    for row in rows:
        below = steps[row.id] = []
        steps[row.parent].append({"Detail": row.detail, "Plans": below})
    return steps[0]
