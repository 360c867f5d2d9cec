"""Queries of PuppetDB as trees that hypothesis invents, and as texts of PQL."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

ENTITIES = ("nodes", "facts", "fact_contents", "fact_paths", "resources", "reports", "inventory", "packages", "package_inventory")
FUNCTIONS = ("count", "avg", "sum", "min", "max", "to_string")

# Words of the language are names of fields, too.
_names = st.sampled_from(("certname", "value", "latest_report?", "limit", "in", "facts", "is", "count", "order", "nodes2", "or_", "true"))
_parts = st.one_of(
    st.sampled_from(("os", "a-b", "x::y", "models[0]", "5", "f(x)", 'match("e.*")')),
    st.text("ab ._[]=~,'!{}", max_size=5).map(lambda text: f'"{text}"').filter(lambda part: not part[:-1].endswith("\\")),
)
_dotted = st.builds(
    lambda root, parts: ".".join([root, *parts]),
    st.sampled_from(("facts", "trusted", "parameters")),
    st.lists(_parts, min_size=1, max_size=3),
)
fields = st.one_of(_names, _dotted)
strings = st.text(st.characters(codec="utf-8"), max_size=8)
integers = st.integers(-(2**70), 2**70)
numbers = st.one_of(integers, st.floats(allow_nan=False, allow_infinity=False))
literals = st.recursive(st.one_of(strings, numbers, st.booleans()), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=4)
_arguments = st.lists(strings, max_size=2)
_functions = st.one_of(
    st.builds(lambda name: ["function", name], st.sampled_from(FUNCTIONS)),
    st.builds(lambda name, field, rest: ["function", name, field, *rest], st.sampled_from(FUNCTIONS), _names, _arguments),
)
columns = st.lists(st.one_of(fields, _functions), min_size=1, max_size=3)
_keys = st.one_of(fields, st.builds(lambda field, way: [field, way], fields, st.sampled_from(("asc", "desc"))))
_paging = st.lists(
    st.one_of(
        st.builds(lambda number: ["limit", number], st.integers(0, 99)),
        st.builds(lambda number: ["offset", number], st.integers(0, 99)),
        st.builds(lambda keys: ["order_by", keys], st.lists(_keys, min_size=1, max_size=3)),
    ),
    max_size=3,
)
_leaves = st.one_of(
    st.builds(lambda field, value: ["=", field, value], fields, literals),
    st.builds(lambda field, value: ["~", field, value], fields, strings),
    st.builds(
        lambda order, field, value: [order, field, value], st.sampled_from((">", "<", ">=", "<=")), fields, st.one_of(numbers, strings)
    ),
    st.builds(lambda field, value: ["~>", field, value], fields, st.lists(strings, min_size=1, max_size=3)),
    st.builds(lambda field, value: ["null?", field, value], fields, st.booleans()),
    st.builds(lambda field, value: ["in", field, ["array", value]], st.one_of(fields, columns), st.lists(literals, min_size=1, max_size=3)),
    st.builds(lambda entity: ["subquery", entity], st.sampled_from(ENTITIES)),
)


def _query(entity: str, shown: list[Any] | None, condition: list[Any] | None, end: list[Any]) -> list[Any]:
    clauses = [condition] if condition else []
    if end and end[0] == "group_by":
        clauses, end = [*clauses, end], []
    return ["from", entity, *([["extract", shown, *clauses]] if shown is not None else clauses), *end]


def _queries(conditions: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    grouping = columns.map(lambda shown: ["group_by", *shown])
    end = st.one_of(_paging, grouping)
    return st.builds(_query, st.sampled_from(ENTITIES), st.none() | columns | st.just([]), st.none() | conditions, end)


conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(lambda word, parts: [word, *parts], st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda part: ["not", part], inner),
        st.builds(lambda entity, part: ["subquery", entity, part], st.sampled_from(ENTITIES), inner),
        st.builds(lambda field, query: ["in", field, query], fields, _queries(inner)),
    ),
    max_leaves=5,
)
queries = _queries(conditions)


def text_of(query: list[Any]) -> str:
    """Return a query as PQL."""
    _, entity, *clauses = query
    shown = ""
    if clauses and clauses[0][0] == "extract":
        _, names, *inner = clauses[0]
        shown = f"[{_columns_text(names)}]"
        clauses = [*inner, *clauses[1:]]
    return f"{entity}{shown} {{ {' '.join(map(_clause_text, clauses))} }}"


def _columns_text(shown: list[Any]) -> str:
    return " , ".join(_column_text(column) for column in shown) + " "  # a blank ends a name in quotes


def _column_text(column: Any) -> str:
    if isinstance(column, str):
        return column
    _, name, *arguments = column
    texts = [*arguments[:1], *(json.dumps(argument) for argument in arguments[1:])]
    return f"{name}({', '.join(texts)})"


def _clause_text(clause: list[Any]) -> str:
    match clause:
        case ["limit" | "offset", number]:
            return f"{clause[0]} {number}"
        case ["order_by", keys]:
            return "order by " + " , ".join(key if isinstance(key, str) else " ".join(key) for key in keys)
        case ["group_by", *shown]:
            return "group by " + _columns_text(shown)
    return _condition_text(clause)


def _condition_text(condition: list[Any]) -> str:
    match condition:
        case ["and" | "or", *parts]:
            return f" {condition[0]} ".join(f"({_condition_text(part)})" for part in parts)
        case ["not", part]:
            return f"! ({_condition_text(part)})"
        case ["subquery", entity, *inner]:
            return f"{entity} {{ {' '.join(map(_condition_text, inner))} }}"
        case ["null?", field, value]:
            return f"{field} {'is null' if value else 'is not null'}"
        case ["in", field, ["array", values]]:
            return f"{_field_text(field)} in [{', '.join(map(_literal_text, values))}]"
        case ["in", field, query]:
            return f"{_field_text(field)} in {text_of(query)}"
        case [operator, field, value]:
            return f"{field} {operator} {_literal_text(value)}"
    raise AssertionError(condition)


def _field_text(field: Any) -> str:
    return field if isinstance(field, str) else f"[{_columns_text(field)}]"


def _literal_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal_text, value))}]"
    if isinstance(value, float):
        text = repr(value)
        whole, exponent, power = text.partition("e")
        return text if "." in whole else f"{whole}.0{exponent}{power}"
    return json.dumps(value, ensure_ascii=False)
