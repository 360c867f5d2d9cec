"""Counts of events as SELECT statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Row, case, func, select
from sqlalchemy.sql.selectable import Select

from ..language.counting import COUNTS, SUBJECTS, Counting, Distinct, Subject
from ..language.messages import list_names
from ..language.tree import Selection
from ..questions import Paging, QueryRefused
from .dialects import Sql
from .selects import Selects
from .sqlite import COMPARE


def count_events(
    selects: Selects, sql: Sql, selection: Selection, counting: Counting, distinct: Distinct | None, subject: Subject
) -> Select[Any]:
    """Return the SELECT of a row for each subject with events: its fields, named as those of events, and the counts."""
    fields = tuple(SUBJECTS[subject].values())
    selection = replace(selection, columns=None, limit=None, offset=None, order_by=())
    names = {name: name for name in dict.fromkeys((*fields, "status", "certname"))}
    rows = selects.rows_of(selection, names, distinct)
    inner = (rows.distinct() if counting.by_node else rows).subquery()
    counts = [func.sum(case((inner.c.status == status, 1), else_=0)).label(count) for count, status in COUNTS.items()]
    keys = [inner.c[field] for field in fields]
    counted = select(*keys, *counts).group_by(*keys).subquery()
    result = select(*(counted.c[name] for name in (*fields, *COUNTS)))
    if counting.filter is not None:
        wanted = counting.filter
        result = result.where(COMPARE[wanted.operator](counted.c[wanted.count], sql.number_parameter(wanted.value)))
    return result


def page_counts(rows: Select[Any], sql: Sql, paging: Paging, subject: Subject) -> Select[Any]:
    """Return the SELECT of counts, sorted and cut by the request's paging."""
    fields = tuple(SUBJECTS[subject].values())
    for name, descending in paging.order_by:
        if name not in (*fields, *COUNTS):
            raise QueryRefused(
                f"Unrecognized column '{name}' specified in :order_by; Supported columns are {list_names([*fields, *COUNTS])}"
            )
        column = rows.selected_columns[name]
        key = sql.sorted_text(column) if name in fields else column
        rows = rows.order_by(key.desc().nulls_first() if descending else key.asc().nulls_last())
    if paging.limit is not None:
        rows = rows.limit(paging.limit)
    return rows.offset(paging.offset) if paging.offset else rows


def total_counts(rows: Select[Any]) -> Select[Any]:
    """Return the SELECT of a single row: the numbers of subjects with events of each kind, and of all subjects."""
    inner = rows.subquery()
    totals = [func.coalesce(func.sum(case((inner.c[count] > 0, 1), else_=0)), 0).label(count) for count in COUNTS]
    return select(*totals, func.count().label("total")).select_from(inner)


def shown_counts(subject: Subject, row: Row[Any]) -> dict[str, Any]:
    """Return a row of counts as an answer shows it."""
    members = {member: row._mapping[field] for member, field in SUBJECTS[subject].items()}
    return {**{count: int(row._mapping[count]) for count in COUNTS}, "subject_type": subject, "subject": members}


def shown_totals(subject: Subject, row: Row[Any]) -> dict[str, Any]:
    """Return the row of an aggregate as an answer shows it."""
    return {"summarize_by": subject, **{name: int(row._mapping[name]) for name in (*COUNTS, "total")}}
