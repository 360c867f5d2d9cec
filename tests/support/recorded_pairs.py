"""The questions and answers that were recorded of PuppetDB: which of them are whole questions, and when two answers are alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

import yaml

from store.queries.questions import Paging, Question
from tests.support.recorded_store import RECORDED

_ROOT = "/pdb/query/v4"
_OTHER_FILES = ("commands", "dataset", "meta", "pql-syntax", "puppetboard-pages", "terminus-exchanges")
_RECEIVED = re.compile(r"20(2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z")
_LISTED = re.compile(r"(.*(?:Acceptable fields are|Supported columns are) )(.*)", re.DOTALL)
_UNORDERED = ("data", "tags", "inputs")
_ANY_STATE = ["=", "node_state", "any"]

HASH = re.compile(r"@HASH\(([^,]+),(\d+)\)@")
"""What stands for the hash of a node's nth-newest report."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A recorded request with its answer, and what of it the store answers otherwise."""

    id: str
    request: dict[str, Any]
    answer: dict[str, Any]
    is_ordered: bool
    is_bug: bool
    differs: str

    @property
    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.request.get("params", {})
        return parameters


@cache
def deviations() -> dict[str, str]:
    """Return what is not compared of a pair, by its id."""
    entries = yaml.load((RECORDED / "deviations.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return {id_: entry["differs"] for entry in entries for id_ in entry["ids"]}


def groups() -> list[str]:
    """Return the names of the groups of pairs about queries."""
    return sorted(path.stem for path in RECORDED.glob("*.json") if path.stem not in _OTHER_FILES)


def pairs(group: str) -> Iterator[Pair]:
    """Yield the pairs of a group."""
    for entry in json.loads((RECORDED / f"{group}.json").read_text("utf-8")):
        is_bug = "bug" in entry
        is_ordered = entry["ordered"] and deviations().get(entry["id"]) != "order"
        yield Pair(entry["id"], entry["request"], entry["answer"], is_ordered, is_bug, deviations().get(entry["id"], ""))


def question_of(pair: Pair, hashes: dict[tuple[str, int], str]) -> Question | None:
    """Return the question of a request to an entity's endpoint; None where the request's form or its path is what the answer is about."""
    text = HASH.sub(lambda match: hashes[match[1], int(match[2])], json.dumps(pair.parameters))
    parameters = json.loads(text)
    path = pair.request["path"]
    if not path.startswith(_ROOT) or pair.request.get("method") not in ("GET", "POST") or pair.request.get("headers"):
        return None
    segments = [unquote(segment) for segment in path.removeprefix(_ROOT).split("/")[1:]]
    match segments:
        case []:
            entity, restriction = None, None
        case [name] if name not in ("nope",):
            entity, restriction = name, None
        case ["nodes" | "factsets" as name, certname]:
            entity, restriction = name, ["and", ["=", "certname", certname], _ANY_STATE]
        case ["catalogs" as name, certname]:
            entity, restriction = name, ["=", "certname", certname]
        case ["facts" as name, fact]:
            entity, restriction = name, ["=", "name", fact]
        case ["resources" as name, type_]:
            entity, restriction = name, ["=", "type", type_]
        case _:
            return None
    try:
        query = _query(parameters.get("query"), is_root=entity is None)
        paging = _paging(parameters)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if restriction is not None:
        query = restriction if query is None else ["and", restriction, query]
    others = {name: value for name, value in parameters.items() if name not in ("query", "limit", "offset", "order_by", "include_total")}
    if {"foo", "explain"} & set(others) or (entity is None and not query):
        return None
    return Question(None if entity is None else entity.replace("-", "_"), query, paging, others)


def _query(value: Any, *, is_root: bool) -> Any:
    """Return the query of a parameter: a value in JSON, or a text in PQL. ValueError says that an endpoint refuses it."""
    if not isinstance(value, str) or not value.strip() or (is_root and not value.lstrip().startswith("[")):
        return value or None
    query = json.loads(value)
    if query is not None and not isinstance(query, list):
        raise ValueError("an endpoint refuses what is no array")
    return query


def _paging(parameters: dict[str, Any]) -> Paging:
    order_by = parameters.get("order_by", [])
    orders = json.loads(order_by) if isinstance(order_by, str) else order_by
    if any(order.get("order", "asc").lower() not in ("asc", "desc") or set(order) - {"field", "order"} for order in orders):
        raise ValueError("an endpoint refuses this order")
    limit, offset = (int(parameters[name]) if name in parameters else None for name in ("limit", "offset"))
    if (limit is not None and limit < 1) or (offset is not None and offset < 0):
        raise ValueError("an endpoint refuses this page")
    is_total = parameters.get("include_total") in (True, "true")
    return Paging(limit, offset, tuple((order["field"], order.get("order", "asc").lower() == "desc") for order in orders), is_total)


def comparable(body: Any, pair: Pair) -> Any:
    """Return an answer without what may differ: times of receipt, the order of what has none, lists of fields, deviations."""
    if isinstance(body, str):
        body = body.partition("\n")[0] if body.startswith("PQL parse error") else body.strip()
        listed = _LISTED.fullmatch(body)
        body = listed[1] + " ".join(sorted(re.findall("'[^']*'", listed[2]))) if listed else body
        return "" if pair.differs == "text" else body
    body = _masked(body, "", pair.differs)
    return body if pair.is_ordered or not isinstance(body, list) else sorted(body, key=_sort_key)


def _masked(value: Any, key: str, differs: str) -> Any:
    if isinstance(value, dict):
        return {name: _masked(member, name, differs) for name, member in value.items() if (name, differs) != ("hash", "hash")}
    if isinstance(value, list):
        items = [_masked(item, "", differs) for item in value]
        return sorted(items, key=_sort_key) if key in _UNORDERED else items
    if isinstance(value, float) and differs == "last_digit":
        return round(value, 10)
    return "@RECEIVED@" if isinstance(value, str) and _RECEIVED.fullmatch(value) else value


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
