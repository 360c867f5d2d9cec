"""The declaration of a fact in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .builtin.host import Host
from .known import Known

Resolver = Callable[[Host, Known], Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """
    One way to resolve a fact.

    `confine` maps other facts (dotted names reach into structures) to the value or values they must have; `weight`
    decides between several ways (None: the number of confines, as Facter counts); `timeout` is in seconds.
    """

    name: str
    resolve: Resolver
    confine: Mapping[str, Any] = field(default_factory=dict)
    weight: int | None = None
    timeout: float = 30.0

    @property
    def heaviness(self) -> int:
        return len(self.confine) if self.weight is None else self.weight

    def suits(self, known: Known) -> bool:
        """Return whether all confines hold; texts are compared in lower case."""
        return all(_fits(known.get(name), allowed) for name, allowed in self.confine.items())


def _fits(actual: Any, allowed: Any) -> bool:
    choices = allowed if isinstance(allowed, list | tuple | set | frozenset) else (allowed,)
    return actual is not None and _lower(actual) in [_lower(choice) for choice in choices]


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def fact(
    name: str = "", *, confine: Mapping[str, Any] | None = None, weight: int | None = None, timeout: float = 30.0
) -> Callable[[Resolver], Declaration]:
    """Declare the decorated function as a fact; it is called with the Host and the facts known so far, in a thread of its own."""

    def declare(function: Resolver) -> Declaration:
        return Declaration((name or function.__name__).lower(), function, dict(confine or {}), weight, timeout)

    return declare
