"""Generated questions that the store takes: entities, criteria of every kind, columns, groups and orders."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from store.queries.schema.entities import ENTITIES, Entity
from store.queries.schema.fields import Field, Kind
from store.queries.schema.relations import relation

TEXTS = (
    "web1.example.com", "db1.example.com", "old1.example.com", "nosuch", "production", "staging", "web", "role", "kernel", "mixed",
    "Linux", "File", "Package", "nginx", "failed", "changed", "agent", "notifies", "os", "", "ÜÑÍ", "a'b\"c",
)  # fmt: skip
PATTERNS = ("^web", "e", "[0-9]", "^(db|mail)1", "n.*x", "(?i)WEB", "\\d", "^$", ".", "z{2}", "kůň", "example\\.com$")
TIMES = ("2025-11-10", "2025-11-11T09:00:00Z", "2025-11-10T09:01:30.000Z", "2026-01-01", "2025-11-11T11:00:00+02:00")
VALUES = (*TEXTS[:13], 0, 1, -5, 7, 7.0, 2.5, 3.14, 99, 3600, 9007199254740993, True, False, [80, 443], {"count": 4}, [], {}, "42", 42)
NUMBERS = (0, 1, -1, 2.5, 7, 99, 3600, 10**12, 12345.0)
DOTTED = {
    "facts": (
        "facts.kernel", "facts.os.name", "facts.os", "facts.mixed", "facts.processors.models", "facts.nosuch.deep", "facts.numstr",
        'facts."dotted.name"', 'facts.weird."a.b"."c d"', 'facts.weird."dq\\"x"', "facts.uptime_seconds", "facts.nullfact",
        "facts.weird.5", "facts.list_of_hashes", "facts.empty", "facts.load_averages.1m",
    ),
    "trusted": ("trusted.extensions.pp_role", "trusted.hostname", "trusted.nosuch"),
    "parameters": ("parameters.ensure", "parameters.port", "parameters.ports", "parameters.vhosts.a.root", "parameters.nosuch"),
}  # fmt: skip
IN_FILTERS = (
    "facts.processors.models[0]", 'facts.disks.match("s.*").vendor', 'facts.match("(os|kernel)")', "facts.processors.models.0",
)  # fmt: skip
PATHS: tuple[list[str | int], ...] = (["os", "name"], ["processors", "models", 0], ["kernel"], ["weird", "5"], ["nosuch"])
PATH_PATTERNS: tuple[list[str | int], ...] = (
    ["os", ".*"],
    [".*"],
    ["processors", "models", 0],
    ["networking", "interfaces", "eth.*", "ip"],
)
ORDERED = (">", "<", ">=", "<=")

_ROWS = (Kind.ROWS, Kind.PACKED)


def _one(values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _comparisons(field: Field) -> st.SearchStrategy[Any]:
    """Return comparisons of a field."""
    name = st.just(field.name)
    checks: list[st.SearchStrategy[Any]] = []
    match field.kind:
        case Kind.TEXT:
            checks = [st.tuples(st.just("="), name, _one(TEXTS)), st.tuples(st.just("~"), name, _one(PATTERNS))]
            checks.append(st.tuples(st.just("in"), name, st.lists(_one(TEXTS), max_size=4).map(lambda values: ["array", values])))
        case Kind.INTEGER:
            checks = [st.tuples(_one(("=", *ORDERED)), name, _one(NUMBERS))]
        case Kind.TIME:
            checks = [st.tuples(_one(("=", *ORDERED)), name, _one(TIMES))]
        case Kind.BOOLEAN | Kind.LATEST_REPORT:
            checks = [st.tuples(st.just("="), name, st.booleans())]
        case Kind.JSON:
            checks = [st.tuples(st.just("="), name, _one(VALUES)), st.tuples(_one(ORDERED), name, _one(NUMBERS))]
            checks += [st.tuples(st.just("~"), name, _one(PATTERNS))]
            checks += [st.tuples(st.just("in"), name, st.lists(_one(VALUES), max_size=4).map(lambda values: ["array", values]))]
        case Kind.SERIALIZED | Kind.DOCUMENT:
            checks = [st.tuples(st.just("="), name, _one(VALUES))]
        case Kind.PATH:
            checks = [st.tuples(st.just("="), name, _one(PATHS)), st.tuples(st.just("~>"), name, _one(PATH_PATTERNS))]
        case Kind.LIST | Kind.TAG:
            checks = [st.tuples(st.just("="), name, _one(TEXTS)), st.tuples(st.just("~"), name, _one(PATTERNS))]
    if field.kind is not Kind.LATEST_REPORT:
        checks.append(st.tuples(st.just("null?"), name, st.booleans()))
    return st.one_of(checks).map(list)


def _dotted(entity: Entity) -> list[str]:
    return [name for field in entity.fields if field.has_dotted for name in DOTTED[field.name]]


def _leaves(entity: Entity) -> st.SearchStrategy[Any]:
    checks = [_comparisons(field) for field in entity.fields if field.is_queryable and field.kind is not Kind.STATE_TIME]
    if entity.has_node:
        checks.append(_one(("active", "inactive", "any")).map(lambda state: ["=", "node_state", state]))
        facts = st.tuples(st.just("fact"), _one(("kernel", "role", "mixed", "uptime_seconds", "nosuch"))).map(list)
        checks.append(st.tuples(st.just("="), facts, _one(VALUES)).map(list))
        checks.append(st.tuples(st.just("~"), facts, _one(PATTERNS)).map(list))
        checks.append(st.tuples(_one(ORDERED), facts, _one(NUMBERS)).map(list))
    if entity.name == "resources":
        parameters = _one(("ensure", "port", "ports", "nosuch")).map(lambda name: ["parameter", name])
        checks.append(st.tuples(st.just("="), parameters, _one(VALUES)).map(list))
        checks.append(st.tuples(st.just("~"), parameters, _one(("run.*", "[a-z]+", "06.*"))).map(list))
    if dotted := _dotted(entity):
        names = _one((*dotted, *(IN_FILTERS if entity.name == "inventory" else ())))
        checks.append(st.tuples(st.just("="), names, _one(VALUES)).map(list))
        checks.append(st.tuples(_one(ORDERED), names, _one((*NUMBERS, "a", True, [1], {"a": 1}))).map(list))
        checks.append(st.tuples(st.just("~"), names, _one(PATTERNS)).map(list))
        checks.append(st.tuples(st.just("null?"), names, st.booleans()).map(list))
    return st.one_of(checks)


def criteria(entity: Entity, *, depth: int = 2) -> st.SearchStrategy[Any]:
    """Return criteria for rows of an entity, with subqueries as far as `depth` says."""
    leaves = _leaves(entity)
    if depth:
        related = [name for name in ENTITIES if relation(entity.name, name) is not None]
        if related:
            inner = _one(related).flatmap(
                lambda name: criteria(ENTITIES[name], depth=depth - 1).map(lambda query: ["subquery", name, query])
            )
            leaves = st.one_of(leaves, leaves, leaves, inner)
        if entity.has_node:
            leaves = st.one_of(leaves, leaves, _one(("nodes", "facts", "resources", "reports")).flatmap(_in_certnames))
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.lists(parts, min_size=1, max_size=3).map(lambda items: ["and", *items]),
            st.lists(parts, min_size=1, max_size=3).map(lambda items: ["or", *items]),
            parts.map(lambda item: ["not", item]),
        ),
        max_leaves=4,
    )


def _in_certnames(name: str) -> st.SearchStrategy[Any]:
    return criteria(ENTITIES[name], depth=0).map(lambda query: ["in", "certname", ["from", name, ["extract", "certname", query]]])


def _groupable(entity: Entity) -> list[str]:
    kinds = (Kind.TEXT, Kind.TIME, Kind.BOOLEAN, Kind.INTEGER)
    return [field.name for field in entity.fields if field.is_projectable and field.is_queryable and field.kind in kinds]


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, Any]:
    """Return an entity and a query of its endpoint."""
    entity = ENTITIES[draw(_one(sorted(ENTITIES)))]
    where = draw(criteria(entity))
    shown = [field.name for field in entity.fields if field.is_projectable]
    match draw(_one(("rows", "rows", "columns", "groups"))):
        case "columns":
            return entity.name, ["extract", draw(st.lists(_one(shown + _dotted(entity)), min_size=1, max_size=4)), where]
        case "groups":
            groups = draw(st.lists(_one(_groupable(entity)), min_size=1, max_size=2, unique=True))
            counted = draw(_one((["function", "count"], *(["function", "count", name] for name in _groupable(entity)))))
            largest = ["function", draw(_one(("min", "max"))), draw(_one(_orderable(entity)))]
            return entity.name, ["extract", [*groups, counted, largest], where, ["group_by", *groups]]
    return entity.name, where


def _orderable(entity: Entity) -> list[str]:
    kinds = (Kind.TEXT, Kind.TIME, Kind.INTEGER, Kind.JSON)
    return [field.name for field in entity.fields if field.is_queryable and field.kind in kinds]


def orders(entity: Entity) -> st.SearchStrategy[Any]:
    """Return the fields by which rows of an entity can be sorted, each with whether it is descending."""
    kinds = (*_ROWS, Kind.LIST, Kind.TAG, Kind.LATEST_REPORT)
    names = [field.name for field in entity.fields if field.is_queryable and field.kind not in kinds]
    return st.lists(st.tuples(_one(names), st.booleans()), min_size=1, max_size=2).map(tuple)
