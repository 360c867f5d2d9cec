"""The parameters of questions about events: which of several events count, and how they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from ...jsontext import Json, load_json
from ...timestamps import parse_timestamp
from ..questions import QueryRefused, is_set
from .messages import show_value
from .tree import Operator

Count = Literal["failures", "skips", "successes", "noops"]
Subject = Literal["certname", "resource", "containing_class"]

COUNTS: Mapping[Count, str] = {"failures": "failure", "skips": "skipped", "successes": "success", "noops": "noop"}
"""The counts, each with the status of its events."""

SUBJECTS: Mapping[Subject, Mapping[str, str]] = {
    "certname": {"title": "certname"},
    "resource": {"type": "resource_type", "title": "resource_title"},
    "containing_class": {"title": "containing_class"},
}
"""For what events are counted: the members that name it in an answer, with the fields of events that they come from."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """Of each node's events of the same property, only the newest between two times, in microseconds since the epoch, counts."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CountsFilter:
    """A filter of the shown rows of counts."""

    operator: Operator
    count: Count
    value: float


@dataclass(frozen=True, slots=True)
class Counting:
    """The kind of counted events, whether each event counts or each node, and the filter of the shown counts."""

    subjects: tuple[Subject, ...]
    by_node: bool
    filter: CountsFilter | None


def read_distinct(parameters: Mapping[str, Json]) -> Distinct | None:
    """Return the options of `distinct_resources` and its two times; raise QueryRefused for an invalid combination."""
    start, end = parameters.get("distinct_start_time"), parameters.get("distinct_end_time")
    is_distinct = parameters.get("distinct_resources")
    if is_distinct is None:
        if start is not None or end is not None:
            raise QueryRefused(
                "'distinct_resources' query parameter must accompany parameters 'distinct_start_time' and 'distinct_end_time'"
            )
        return None
    if start is None or end is None:
        raise QueryRefused(
            "'distinct_resources' query parameter requires accompanying parameters 'distinct_start_time' and 'distinct_end_time'"
        )
    try:
        distinct = Distinct(parse_timestamp(str(start)), parse_timestamp(str(end)))
    except ValueError as err:
        times = f"{start} {end}"
        raise QueryRefused(
            f"query parameters 'distinct_start_time' and 'distinct_end_time' must be valid datetime strings: {times}"
        ) from err
    return distinct if is_set(is_distinct) else None


def read_counting(parameters: Mapping[str, Json], *, is_aggregate: bool) -> Counting:
    """Return how events are counted; aggregates are about one or several subjects, separated by commas."""
    summarize_by = parameters.get("summarize_by")
    if summarize_by is None:
        raise QueryRefused("Missing required query parameter 'summarize_by'")
    names = [name.strip() for name in str(summarize_by).split(",")] if is_aggregate else [str(summarize_by)]
    for name in names:
        if name not in SUBJECTS:
            raise QueryRefused(f"Unsupported value for 'summarize_by': '{summarize_by}'")
    count_by = parameters.get("count_by") or "resource"
    if count_by not in ("resource", "certname"):
        raise QueryRefused(f"Unsupported value for 'count_by': '{count_by}'")
    subjects = tuple(cast(Subject, name) for name in dict.fromkeys(names))
    return Counting(subjects, count_by == "certname", _read_filter(parameters.get("counts_filter")))


def _read_filter(value: Json) -> CountsFilter | None:
    if isinstance(value, str):
        try:
            value = load_json(value.encode()) if value.strip() else None
        except ValueError as err:
            raise QueryRefused(f"Illegal value '{value}' for :counts_filter; expected a JSON array.") from err
    match value:
        case None:
            return None
        case ["=" | ">" | "<" | ">=" | "<=" as operator, str(count), int() | float() as number] if not isinstance(number, bool):
            if count not in COUNTS:
                raise QueryRefused(f"{count} is not a queryable object for event counts")
            return CountsFilter(operator, cast(Count, count), number)
        case ["=" | ">" | "<" | ">=" | "<=" as operator, *_]:
            raise QueryRefused(f"{operator} requires a count and a number")
        case [str(operator), *_]:
            raise QueryRefused(f"{show_value(value)} is not well-formed: query operator '{operator}' is unknown")
    raise QueryRefused(f"{show_value(value)} is not well-formed: a filter is an operator, a count and a number")
