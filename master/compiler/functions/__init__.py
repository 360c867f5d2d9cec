"""Builtin functions, and the API that module authors declare theirs with: see `api.py`."""

from __future__ import annotations

from collections.abc import Mapping

from .api import Closure, Context, Dispatch, Function, Types, collect, function

__all__ = ["Closure", "Context", "Dispatch", "Function", "Types", "builtin_functions", "function"]


def builtin_functions() -> Mapping[str, Function]:
    """The core functions that need nothing of the catalog, by name."""
    from . import control, conversion, digests, hashes, iteration, logging, numbers, selection, strings, texts, times

    return collect((control, conversion, digests, hashes, iteration, logging, numbers, selection, strings, texts, times))
