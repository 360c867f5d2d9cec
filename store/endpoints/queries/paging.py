"""The parameters of a query: those that each endpoint accepts, and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.errors import BadRequest

from ...jsontext import Json, load_json
from ...queries.language.messages import show_value
from ...queries.questions import Paging, is_set

GENERAL = frozenset(
    ["query", "pretty", "explain", "optimize_drop_unused_joins", "include_facts_expiration", "include_package_inventory", "origin"]
)
PAGING = frozenset({"limit", "offset", "order_by", "include_total"})
DISTINCT = frozenset({"distinct_resources", "distinct_start_time", "distinct_end_time"})
COUNTING = frozenset({"summarize_by", "count_by", "counts_filter"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def check_names(parameters: Mapping[str, Json], allowed: frozenset[str]) -> None:
    """Raise BadRequest for the first parameter that the endpoint does not have."""
    for name in parameters:
        if name not in allowed:
            raise BadRequest(f"Unsupported query parameter '{name}'")


def paging_of(parameters: Mapping[str, Json]) -> Paging:
    """Return the paging that parameters ask for, typed as in a JSON body or texts as in a URL; raise BadRequest."""
    return Paging(
        limit=_number(parameters, "limit", 1, "a positive non-zero integer"),
        offset=_number(parameters, "offset", 0, "a non-negative integer"),
        order_by=_order_by(parameters.get("order_by")),
        include_total=is_set(parameters.get("include_total")),
    )


def _number(parameters: Mapping[str, Json], name: str, least: int, expected: str) -> int | None:
    value = parameters.get(name)
    if value is None:
        return None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise BadRequest(f"Illegal value '{_shown(value)}' for :{name}; expected {expected}.")
    return value


def _order_by(value: Json) -> tuple[tuple[str, bool], ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        try:
            value = load_json(value.encode())
        except ValueError as err:
            raise BadRequest(f"Illegal value '{value}' for :order_by; expected a JSON array of maps.") from err
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadRequest(f"Illegal value '{_shown(value)}' for :order_by; expected an array of maps.")
    return tuple(_ordering(item) for item in value if isinstance(item, dict))


def _ordering(item: dict[str, Json]) -> tuple[str, bool]:
    illegal = f"Illegal value '{show_value(item)}' in :order_by; "
    if "field" not in item:
        raise BadRequest(illegal + "missing required key field.")
    order = item.get("order", "asc")
    if not isinstance(order, str) or order.lower() not in ("asc", "desc"):
        raise BadRequest(illegal + "'order' must be either 'asc' or 'desc'")
    if unknown := next((key for key in item if key not in ("field", "order")), ""):
        raise BadRequest(illegal + f"unknown key '{unknown}'.")
    field = item["field"]
    return field if isinstance(field, str) else show_value(field), order.lower() == "desc"


def _shown(value: Json) -> str:
    """Return a value as messages show it; a string as it is."""
    return value if isinstance(value, str) else show_value(value)
