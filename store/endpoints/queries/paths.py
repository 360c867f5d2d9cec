"""The paths below /pdb/query/v4: the entity and the restrictions of each path, and the subject that must exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...jsontext import Json
from ...queries.schema import entities
from .paging import COUNTING, DISTINCT, GENERAL, PAGING

Condition = list[Json]
"""A condition of the AST query language."""


@dataclass(frozen=True, slots=True)
class Subject:
    """
    One thing that a path names, unknown unless a row of `entity` fulfils the conditions.

    Attributes:
        kind: What PuppetDB calls it when it is not known.
    """

    kind: str
    name: str
    entity: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """
    The query of a path.

    Attributes:
        entity: The entity as queries name it; None: the query names it.
        conditions: Conditions of its rows, in addition to the query.
        subject: The subject that must exist; None: the path has none.
        is_single: Whether the answer is the subject itself, as one object.
        column: The column whose list is the answer; '' for the rows themselves.
        parameters: The names of parameters that may be sent.
    """

    entity: str | None
    conditions: tuple[Condition, ...] = ()
    subject: Subject | None = None
    is_single: bool = False
    column: str = ""
    parameters: frozenset[str] = GENERAL | PAGING


_ANY_NODE: Condition = ["=", "node_state", "any"]
ENTITIES = {name.replace("_", "-"): name for name in (*entities.ENTITIES, "event_counts", "aggregate_event_counts")}
"""The words of paths, with the names that queries have for the same."""
_EXTRA = {
    "events": DISTINCT | PAGING,
    "event-counts": DISTINCT | COUNTING | PAGING,
    "aggregate-event-counts": DISTINCT | COUNTING,
}
LEVELS = {"facts": ("name", "value"), "resources": ("type", "title")}  # the fields that further segments are values of


def target_of(segments: Sequence[str]) -> QueryTarget | None:
    """Return the query of the decoded segments after /pdb/query/v4; None when there is no such path."""
    match tuple(segments):
        case ():
            return QueryTarget(None, parameters=GENERAL | PAGING | {"ast_only"})
        case (name,) if name in ENTITIES:
            return QueryTarget(ENTITIES[name], parameters=GENERAL | _EXTRA.get(name, PAGING))
        case ("facts" | "resources" as name, *levels):
            return _levels(name, levels)
        case ("package-inventory", certname):
            return QueryTarget("package_inventory", (["=", "certname", certname], _ANY_NODE))
        case ("reports", digest, "events"):
            return QueryTarget("events", (["=", "report", digest],), _report(digest), parameters=GENERAL | _EXTRA["events"])
        case ("reports", digest, "logs" | "metrics" as column):
            report = _report(digest)
            return QueryTarget("reports", report.conditions, report, column=column, parameters=GENERAL)
        case (collection, name, *rest) if (subject := _subject(collection, name)) is not None:
            return _below(subject, collection, rest)
    return None


def _report(digest: str) -> Subject:
    return Subject("report", digest, "reports", (["=", "hash", digest], ["=", "type", "any"]))


def _subject(collection: str, name: str) -> Subject | None:
    if collection not in BELOW:
        return None
    field = "name" if collection in ("environments", "producers") else "certname"
    conditions: tuple[Condition, ...] = (["=", field, name],)
    if collection in ("nodes", "factsets"):
        conditions += (_ANY_NODE,)
    return Subject(collection.removesuffix("s"), name, collection, conditions)


BELOW: dict[str, tuple[str, frozenset[str]]] = {
    "nodes": ("certname", frozenset({"facts", "resources"})),
    "factsets": ("certname", frozenset({"facts"})),
    "catalogs": ("certname", frozenset({"resources", "edges"})),
    "environments": ("environment", frozenset({"facts", "resources", "reports", "events"})),
    "producers": ("producer", frozenset({"factsets", "catalogs", "reports"})),
}
"""For each collection the field by which rows belong to one of its members, and the collections that may follow in a path."""


def _below(subject: Subject, collection: str, rest: Sequence[str]) -> QueryTarget | None:
    """Return the query of a path that continues after the name of a subject."""
    if not rest:
        single = QueryTarget(subject.entity, subject.conditions, subject, is_single=True)
        return single if collection in ("nodes", "factsets", "catalogs") else replace(single, parameters=GENERAL)
    field, below = BELOW[collection]
    name, *levels = rest
    if name not in below:
        return None
    if collection == "factsets":  # the reference answers with the factset in an array
        return QueryTarget("factsets", subject.conditions, subject) if not levels else None
    inner = _levels(name, levels)
    return inner and replace(inner, conditions=(["=", field, subject.name], *inner.conditions), subject=subject)


def _levels(name: str, levels: Sequence[str]) -> QueryTarget | None:
    fields = LEVELS.get(name, ())
    if len(levels) > len(fields):
        return None
    conditions = tuple(["=", field, value] for field, value in zip(fields, levels, strict=False))
    parameters = GENERAL | _EXTRA.get(name, PAGING)
    return QueryTarget(ENTITIES[name], tuple(list[Json](condition) for condition in conditions), parameters=parameters)


_CLAUSES = ("group_by", "limit", "offset", "order_by")


def restrict(query: Json, conditions: Sequence[Condition]) -> Json:
    """Return a query whose rows also fulfil `conditions`; an invalid query is returned unchanged, for a later check."""
    if not conditions:
        return query
    if query is None:
        return conditions[0] if len(conditions) == 1 else ["and", *conditions]
    if isinstance(query, list) and query[:1] == ["extract"] and len(query) > 1:
        rest = query[2:]
        has_condition = bool(rest) and not (isinstance(rest[0], list) and bool(rest[0]) and rest[0][0] in _CLAUSES)
        condition = rest.pop(0) if has_condition else None
        return [*query[:2], restrict(condition, conditions), *rest]
    return ["and", *conditions, query]
