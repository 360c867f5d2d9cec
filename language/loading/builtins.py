"""All functions that are built into Puppet."""

from __future__ import annotations

from collections.abc import Mapping

from ..functions import Function, builtin_functions, catalog, data, files, puppetdb
from ..functions.api import collect


def all_functions() -> Mapping[str, Function]:
    """Return the functions of the core by name, those of the catalog included."""
    return {**builtin_functions(), **collect((catalog, data, files, puppetdb))}
