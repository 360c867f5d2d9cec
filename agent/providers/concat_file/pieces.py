"""Pieces of a file: sorted, and merged by the file's format. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.data import plainjson, plainyaml, yamlwriter
from shared.errors import BadData, ResourceError


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of the file; `order` is its sort key."""

    order: str
    name: str
    text: str


def merge_pieces(pieces: Sequence[Piece], *, order: str, form: str, force: bool = False) -> str:
    """Return the file's text; ResourceError when pieces do not fit together."""
    ordered = sorted(pieces, key=_numeric if order == "numeric" else lambda piece: (piece.order, piece.name))
    if form == "plain":
        return "".join(piece.text for piece in ordered)
    values = [_read(piece, form) for piece in ordered]
    if form in ("json-array", "json-array-pretty"):
        return _json(values, pretty=form.endswith("pretty"))
    merged: Any = {}
    for value in values:
        merged = _merge(merged, value, force)
    return yamlwriter.write(merged) if form == "yaml" else _json(merged, pretty=form.endswith("pretty"))


def _numeric(piece: Piece) -> tuple[Any, ...]:
    return tuple((0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in (piece.order, piece.name))


def _read(piece: Piece, form: str) -> Any:
    try:
        if form == "yaml":
            return plainyaml.loads(piece.text)
        plainjson.check_values(piece.text.encode("utf-8", "surrogatepass"))
        return json.loads(piece.text)
    except (BadData, ValueError) as err:
        raise ResourceError(f"The piece {piece.name} is not {form.partition('-')[0].upper()}: {err}") from err


def _json(value: Any, *, pretty: bool) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if pretty else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _merge(first: Any, second: Any, force: bool) -> Any:
    if not second:
        return first
    if not first:
        return second
    if isinstance(first, list) and isinstance(second, list):
        joined = first + second
        return [piece for number, piece in enumerate(joined) if piece not in joined[:number]]
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        raise ResourceError("Pieces that are merged have to be all hashes or all arrays")
    result = dict(first)
    for key, value in second.items():
        if key not in result:
            result[key] = value
        elif (isinstance(result[key], Mapping) and isinstance(value, Mapping)) or (
            isinstance(result[key], list) and isinstance(value, list)
        ):
            result[key] = _merge(result[key], value, force)
        elif result[key] != value and not force:
            raise ResourceError(
                f"Duplicate key '{key}' found with values '{result[key]}' and {value}'. Use 'force' attribute to merge keys."
            )
    return result
