"""The functions through which the compiler uses Hiera."""

from __future__ import annotations

from typing import Any

from language.host import NO_ARGUMENTS, DataContext, LookupArguments, NotFoundInData
from language.values.core import MISSING, Value

from .data_layers import DataLayers
from .hierarchy.lookup_context import BackendCache, LookupContext
from .lookup import Lookup


def look_up(layers: DataLayers, key: str, context: DataContext, merge: Any, arguments: LookupArguments) -> Value:
    """
    Return the value of a key, for a function or a parameter of a class.

    Args:
        merge: a strategy as `merge_of` reads it; None: as lookup_options say.
        arguments: the further arguments of the function.
    Raises:
        NotFoundInData: there is none.
        EvaluationError: the data, its configuration, or `merge` is wrong.
    """
    lookup = Lookup.begin(layers, context, arguments, layers.running)
    if arguments.hiera_call:
        invocation = lookup.invocation
        invocation.hiera_call = True
        invocation.global_only = invocation.global_only or not layers.has_environment_data(context)
        invocation.extra_paths = arguments.extra_paths
    value = lookup.find(key, merge)
    if value is MISSING:
        raise NotFoundInData(key)
    return value


def detached_context(layers: DataLayers, context: DataContext, module: str | None) -> LookupContext:
    """Return a context that belongs to no lookup, for a function that a manifest calls itself."""
    invocation = Lookup.begin(layers, context, NO_ARGUMENTS, None).invocation
    return LookupContext(invocation, layers.sources, module, BackendCache(), detached=True)
