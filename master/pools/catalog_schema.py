"""The schema of the body of `POST /puppet/v4/catalog`; errors have the texts of puppetserver's schemas, which refuse unknown keys, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, BadName, BadRequest
from shared.names import valid_environment

Check = Callable[[Any], str]  # returns the problem of a value; '' when there is none

MAX_SHOWN = 19  # characters of a value that is shown in a message; of longer ones only their kind is
MAX_MESSAGE = 2000  # characters of the list of problems
_KINDS: Mapping[type, str] = {
    str: "a-java.lang.String",
    list: "a-clojure.lang.PersistentVector",
    dict: "a-clojure.lang.PersistentArrayMap",
    int: "a-java.math.BigInteger",
    float: "a-java.lang.Double",
}


def _printed(value: Any) -> str:
    """Return a scalar as Clojure prints it."""
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)


def _value_in_message(value: Any) -> str:
    """Return a value as a message shows it: a small one as it is, of any other only its kind."""
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    if len(inside) > MAX_SHOWN or any(isinstance(item, list | dict) for item in inside):
        return _KINDS[type(value)]
    if isinstance(value, dict):
        text = plain = "{" + ", ".join(f"{_printed(key)} {_printed(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, list):
        text = plain = "[" + " ".join(map(_printed, value)) + "]"
    else:
        text, plain = _printed(value), value if isinstance(value, str) else _printed(value)
    return text if len(plain) <= MAX_SHOWN else _KINDS[type(value)]


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else f"(not (instance? java.lang.String {_value_in_message(value)}))"


def _boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else f"(not (instance? java.lang.Boolean {_value_in_message(value)}))"


def _map(value: Any) -> str:
    return "" if isinstance(value, dict) else f"(not (map? {_value_in_message(value)}))"


def _environment(value: Any) -> str:
    if not isinstance(value, str):
        return _text(value)
    try:
        valid_environment(value)
    except BadName:
        return f"(not (puppetlabs.services.master.master-core/valid-env-name? {_value_in_message(value)}))"
    return ""


def _level(value: Any) -> str:
    is_level = isinstance(value, str) and value in ("warning", "err", "info", "debug")
    return "" if is_level else f'(not (#{{"warning" "err" "info" "debug"}} {_value_in_message(value)}))'


@dataclass(frozen=True, slots=True)
class Shape:
    """A map with these keys and no others."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check]

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return _map(value)
        problem_by_key = {name: check(value[name]) if name in value else "missing-required-key" for name, check in self.required.items()}
        problem_by_key |= {name: check(value[name]) for name, check in self.optional.items() if name in value}
        problem_by_key |= {name: "disallowed-key" for name in value if name not in problem_by_key}
        problems = [f"{_printed(name)} {problem}" for name, problem in problem_by_key.items() if problem]
        return "{" + ", ".join(problems) + "}" if problems else ""


_VALUES = Shape({"values": _map}, {})
_OPTIONS = Shape({}, {"capture_logs": _boolean, "log_level": _level, "prefer_requested_environment": _boolean})
_REQUEST = Shape(
    {"certname": _text, "persistence": Shape({"facts": _boolean, "catalog": _boolean}, {}), "environment": _environment},
    {"trusted_facts": _VALUES, "facts": _VALUES, "job_id": _text, "transaction_uuid": _text, "options": _OPTIONS},
)


def parse_catalog_body(body: bytes) -> dict[str, Any]:
    """Return the data in a body; BadRequest when it is not JSON, or of another shape."""
    try:
        data: Any = plainjson.loads(body) if body.strip() else None
    except BadData as err:
        raise BadRequest(f"Error parsing JSON: {err.message}") from err
    wrong = _REQUEST(data)
    if wrong:
        raise BadRequest(f"Invalid input: {wrong[:MAX_MESSAGE]}")
    checked_data: dict[str, Any] = data
    return checked_data
