"""Plain data in the order of puppetserver, which sorts the keys of all maps as Clojure sorts keywords."""

from __future__ import annotations

from typing import Any


def sorted_as_clojure(data: Any) -> Any:
    """Return `data` with its keys sorted at every level: text before a slash is a namespace, and keys without one come first."""
    if isinstance(data, dict):
        return {key: sorted_as_clojure(data[key]) for key in sorted(data, key=_clojure_key)}
    if isinstance(data, list):
        return [sorted_as_clojure(element) for element in data]
    return data


def _clojure_key(key: str) -> tuple[bool, str, str]:
    namespace, slash, name = key.partition("/")
    return (True, namespace, name) if slash and key != "/" else (False, "", key)
