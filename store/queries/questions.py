"""A query to the store, its limits and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import BadRequest

from ..jsontext import Json


class QueryRefused(BadRequest):
    """The query is invalid or too expensive; the client gets the text."""


@dataclass(frozen=True, slots=True)
class Paging:
    """
    The selected rows and their order. It overrides the query's own clauses.

    `order_by` are names of fields, each with whether it is descending.
    """

    limit: int | None = None
    offset: int | None = None
    order_by: tuple[tuple[str, bool], ...] = ()
    include_total: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """
    A query to the store.

    `entity` is the one of an endpoint; None means the root, where the query names it itself (`["from", "nodes", ...]`). `query` is
    the AST, a text in PQL, or None for no restriction. `parameters` are those that only some entities have: `distinct_resources`,
    `distinct_start_time`, `distinct_end_time`, `summarize_by`, `count_by`, `counts_filter`, `include_facts_expiration`. Without
    `subqueries` it may have none: whoever asks may see this entity only.
    """

    entity: str | None
    query: Json = None
    paging: Paging = field(default_factory=Paging)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    subqueries: bool = True


def is_set(value: Json) -> bool:
    """Return whether a parameter is true: as JSON has it, or the word."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits on the cost of a query."""

    timeout: float = 60
    """Seconds that the database may take for an answer."""
    rows: int = 0
    """Rows of an answer; 0 for any number."""
    subqueries: bool = True
    """True: a query may also use other entities."""
    depth: int = 100
    """The deepest nesting of a query's lists."""
    terms: int = 1000
    """Comparisons and other criteria in a query. Alternatives for one field (`or` of `=`) count as one."""
    values: int = 100_000
    """Values in the lists of a query."""
    batch: int = 200
    """Rows that are in memory at a time."""
    batch_of_documents: int = 10
    """The same for rows that hold whole catalogs, factsets or logs."""
