"""States that are read before their turn: of what comes right after a resource that needed no change, as long as nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shared.ral import Provider, Type
from shared.ral.commands import keep_secret

from .harness import failure_reason_of
from .status import EvaluationStatus

MAX_READ_AHEAD = 32  # resources that are read at once


class ReadAhead:
    """
    Lets providers that can do so read what comes next at once.

    Args:
        successors: gives at most so many resources that come right after one, with the same provider, and will be evaluated.
    """

    def __init__(self, successors: Callable[[Type, int], Sequence[Type]]) -> None:
        self._successors = successors
        self._unchanged_provider: Provider[Any] | None = None  # had nothing to do for the resource before
        self._waiting: set[Type] = set()  # have been read, and their turn is still to come

    async def read_before(self, resource: Type) -> None:
        """A resource is about to be evaluated."""
        if resource in self._waiting:
            self._waiting.discard(resource)
            return
        self.discard()
        provider = resource.handler
        if provider is None or provider is not self._unchanged_provider or type(provider).read_ahead is Provider.read_ahead:
            return
        successors = self._successors(resource, MAX_READ_AHEAD - 1)
        if not successors:
            return
        self._waiting.update(successors)
        try:
            with keep_secret([text for waiting_resource in (resource, *successors) for text in waiting_resource.secrets()]):
                await provider.read_ahead([resource, *successors])
        except Exception as err:  # noqa: BLE001  # whose fault it is shows when each is read at its turn
            resource.log("debug", f"Could not read ahead: {failure_reason_of(resource, err)}")
            self.discard()

    def note_result(self, resource: Type, status: EvaluationStatus) -> None:
        """A resource was evaluated, and refreshed if need be."""
        touched = status.restarted or status.failed or (status.out_of_sync and not resource.simulated)
        self._unchanged_provider = None if touched else resource.handler
        if touched:
            self.discard()

    def discard(self) -> None:
        """Have all that was read read again at its turn."""
        for provider in {resource.handler for resource in self._waiting}:
            if provider is not None:
                provider.forget_ahead()
        self._waiting.clear()
