"""Builtin functions, and the API that module authors declare theirs with: see `api.py`."""

from __future__ import annotations

from collections.abc import Mapping

from .api import Closure, Context, Dispatch, Function, Types, collect, function, legacy_function

__all__ = ["Closure", "Context", "Dispatch", "Function", "Types", "builtin_functions", "function", "legacy_function"]


def builtin_functions() -> Mapping[str, Function]:
    """The core functions that need nothing of the catalog, by name."""
    from . import arithmetic, calls, control, conversion, digests, extremes, hashes, iteration, logging, scan, strings, substitution, time

    return collect(
        (arithmetic, calls, control, conversion, digests, extremes, hashes, iteration, logging, scan, strings, substitution, time)
    )
