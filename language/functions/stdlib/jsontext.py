"""JSON text as Ruby's generator writes it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import EvaluationError

from ...values.core import Value, entries
from ...values.text import float_text
from ..strings import ruby_text


@dataclass(frozen=True, slots=True)
class Layout:
    """The texts between the parts; the names are those of Ruby's JSON.generate."""

    indent: str = ""
    space: str = ""
    space_before: str = ""
    object_nl: str = ""
    array_nl: str = ""
    allow_nan: bool = False
    max_nesting: int = 100  # levels; 0: any number


COMPACT = Layout()
PRETTY = Layout(indent="  ", space=" ", object_nl="\n", array_nl="\n")


def change_layout(layout: Layout, options: Mapping[str, Any]) -> Layout:
    """Return `layout` with the options that are not undef; max_nesting -1 means any depth."""
    values = {name: getattr(layout, name) for name in Layout.__slots__}
    values |= {name: value for name, value in options.items() if value is not None}
    values["max_nesting"] = max(values["max_nesting"], 0)
    return Layout(**values)


def dump(value: Value, layout: Layout = COMPACT, depth: int = 0) -> str:
    """
    Return a value as JSON text.

    Raises:
        EvaluationError: it contains a number that JSON does not have, or is nested deeper than `max_nesting`.
    """
    if isinstance(value, dict | list):
        depth += 1
        if layout.max_nesting and depth > layout.max_nesting:
            raise EvaluationError(f"nesting of {depth - 1} is too deep")
        return _object(value, layout, depth) if isinstance(value, dict) else _array(value, layout, depth)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value) and not layout.allow_nan:
            raise EvaluationError(f"{float_text(value)} not allowed in JSON")
        return float_text(value)
    if isinstance(value, int):
        return str(value)
    return json.dumps(ruby_text(value), ensure_ascii=False)


def _array(items: list[Value], layout: Layout, depth: int) -> str:
    indent = layout.indent * depth
    inner = ("," + layout.array_nl).join([indent + dump(item, layout, depth) for item in items])
    return "[" + layout.array_nl + inner + layout.array_nl + layout.indent * (depth - 1) + "]"


def _object(hash_: dict[Value, Value], layout: Layout, depth: int) -> str:
    lead = layout.object_nl + layout.indent * depth
    middle = f"{layout.space_before}:{layout.space}"
    inner = ",".join(
        [lead + json.dumps(ruby_text(key), ensure_ascii=False) + middle + dump(item, layout, depth) for key, item in entries(hash_)]
    )
    return "{" + inner + layout.object_nl + layout.indent * (depth - 1) + "}"
