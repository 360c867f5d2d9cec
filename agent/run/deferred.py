"""The seam at which deferred values get their functions, which are the compiler's: whoever starts the agent hands them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.data.richdata import WireDeferred
from shared.settings import AgentSettings

from ..state.runlog import RunLog

Resolver = Callable[[WireDeferred], Any]
"""Calls a deferred value's function; PuppetError when it cannot. The value is plain data or of a class in `shared.data.richdata`."""

Deferring = Callable[[AgentSettings, str, Mapping[str, Any], RunLog], Resolver]
"""Makes the resolver of one run: settings, environment, facts, log. Blocks."""


def lazy_resolver(make: Callable[[], Resolver]) -> Resolver:
    """A resolver that is made when the first deferred value is met."""
    resolvers: list[Resolver] = []

    def resolve(deferred: WireDeferred) -> Any:
        if not resolvers:
            resolvers.append(make())
        return resolvers[0](deferred)

    return resolve
