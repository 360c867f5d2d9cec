"""
The types through which deferred values get their functions.

The functions belong to the compiler, which the agent does not import: the program that starts the agent passes a `ResolverFactory`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.data.richdata import WireDeferred
from shared.settings import AgentSettings

from ..state.runlog import RunLog

Resolver = Callable[[WireDeferred], Any]
"""Calls a deferred value's function; PuppetError when it cannot. The value is plain data or of a class in `shared.data.richdata`."""

ResolverFactory = Callable[[AgentSettings, str, Mapping[str, Any], RunLog], Resolver]
"""Makes the resolver of one run from settings, environment, facts and log. Blocks."""


def lazy_resolver(make: Callable[[], Resolver]) -> Resolver:
    """Return a resolver that calls `make` at the first deferred value."""
    resolvers: list[Resolver] = []

    def resolve(deferred: WireDeferred) -> Any:
        if not resolvers:
            resolvers.append(make())
        return resolvers[0](deferred)

    return resolve
