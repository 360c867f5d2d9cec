"""fact, os_version_gte: the node's facts, by a dotted path."""

from __future__ import annotations

import re
from typing import Any, Final

from shared.errors import EvaluationError

from ...callables.sprintf import to_integer
from ...values.core import Value, key_of
from ..api import Context, function
from ..strings import compare_versions

_PART: Final = re.compile(r'([^."]+)|"([^"]+)"')


@function("fact", "String fact_name")
def fact(context: Context, fact_name: str) -> Value:
    """Return the fact at a path such as `os.release.major` or `mountpoints."/a.b".size`; undef, with a warning, when it does not exist."""
    parts = [unquoted or quoted for unquoted, quoted in _PART.findall(fact_name)]
    if not parts:
        return context.variable("facts")
    return _walk(context, {parts[0]: context.fact(parts[0])}, parts, fact_name)


def _walk(context: Context, data: Value, parts: list[str], path: str) -> Value:
    walked: list[str] = []
    for part in parts:
        if data is None:
            return None
        data = _step(context, data, part, path, walked)
        walked.append(f'"{part}"' if "." in part else part)
    return data


def _step(context: Context, data: Value, part: str, path: str, walked: list[str]) -> Value:
    walked_path = ".".join(walked)
    if isinstance(data, dict):
        return data.get(key_of(part))
    if not isinstance(data, list):
        context.log("warning", f"fact request for {path} returning nil: '{walked_path}' is not a collection; cannot walk to '{part}'")
        return None
    try:
        index = to_integer(part)
    except EvaluationError:
        context.log("warning", f"fact request for {path} returning nil: '{walked_path}' is an array; cannot index to '{part}'")
        return None
    return data[index] if -len(data) <= index < len(data) else None


@function("stdlib::os_version_gte", "String[1] os", "String[1] version", returns="Boolean")
def os_version_gte(context: Context, os: str, version: str) -> bool:
    """Return whether the node runs this operating system in this major version or a later one."""
    try:
        os_fact: Any = context.fact("os")
        name, major = os_fact["name"], os_fact["release"]["major"]
    except (KeyError, TypeError) as error:
        raise EvaluationError(
            "stdlib::os_version_gte(): the node has no fact os.name or os.release.major", hint="Did it send its facts?"
        ) from error
    return name == os and compare_versions(str(major), version) >= 0
