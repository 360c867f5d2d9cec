"""Every function that Puppet itself brings."""

from __future__ import annotations

from collections.abc import Mapping

from ..functions import Function, builtin_functions
from ..functions.api import collect

__all__ = ["all_functions"]


def all_functions() -> Mapping[str, Function]:
    """The functions of the core by name, those of the catalog included."""
    from ..functions import catalog, data, files

    return {**builtin_functions(), **collect((catalog, data, files))}
