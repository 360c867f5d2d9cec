"""
Builtin functions, and the API that module authors declare theirs with: `api.py` shows how.

What is in `__all__` is public and stays: the declaration (`function`, `legacy_function`), what code is given (Context,
Closure, LookupMethods) and the classes of values that Python has none for. A module's `lib/puppet/functions/m/name.py` defines Functions
at its top level; their names count.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..host import LookupMethods
from ..values.core import DEFAULT, Binary, Deferred, Instance, Iterator, Sensitive, Value, entries, key_of, value_of
from ..values.times import Timespan, Timestamp
from ..values.uris import URI
from ..values.versions import SemVer, SemVerRange
from .api import Closure, Context, Dispatch, Function, Types, collect, function, legacy_function

__all__ = [
    "DEFAULT",
    "URI",
    "Binary",
    "Closure",
    "Context",
    "Deferred",
    "Dispatch",
    "EvaluationError",
    "Function",
    "Instance",
    "Iterator",
    "LookupMethods",
    "Regexp",
    "SemVer",
    "SemVerRange",
    "Sensitive",
    "Timespan",
    "Timestamp",
    "Types",
    "Value",
    "builtin_functions",
    "entries",
    "function",
    "key_of",
    "legacy_function",
    "value_of",
]


def builtin_functions() -> Mapping[str, Function]:
    """Return the core functions that need nothing of the catalog, by name."""
    from . import arithmetic, calls, control, conversion, digests, extremes, hashes, iteration, logging, scan, strings, substitution, time

    return collect(
        (arithmetic, calls, control, conversion, digests, extremes, hashes, iteration, logging, scan, strings, substitution, time)
    )
