"""Reading ahead: the states of the resources that follow one without changes are read together, and hold until something changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shared.ral import Type
from shared.ral.commands import keep_secret
from shared.ral.handling import Handler

from .harness import failure_reason_of
from .status import EvaluationStatus

MAX_READ_AHEAD = 32  # resources that are read at once


class ReadAhead:
    """
    Has providers that support it read the states of the next resources together.

    Args:
        successors: Returns at most the given number of resources that directly follow one, with the same provider, and will be evaluated.
    """

    def __init__(self, successors: Callable[[Type, int], Sequence[Type]]) -> None:
        self._successors = successors
        self._unchanged_provider: Handler[Any] | None = None  # had nothing to change in the resource before
        self._waiting: set[Type] = set()  # were read ahead and are not evaluated yet

    async def read_before(self, resource: Type) -> None:
        """Read ahead from a resource that is about to be evaluated, unless it was read ahead itself."""
        if resource in self._waiting:
            self._waiting.discard(resource)
            return
        self.discard()
        provider = resource.handler
        if provider is None:
            return
        if provider is not self._unchanged_provider:
            provider.forget_ahead()
            return
        if type(provider).read_ahead is Handler.read_ahead:
            return
        successors = self._successors(resource, MAX_READ_AHEAD - 1)
        if not successors:
            return
        self._waiting.update(successors)
        try:
            with keep_secret([text for waiting_resource in (resource, *successors) for text in waiting_resource.secrets()]):
                await provider.read_ahead([resource, *successors])
        except Exception as err:  # noqa: BLE001  # the resource at fault fails when each is read by itself
            resource.log("debug", f"Could not read ahead: {failure_reason_of(resource, err)}")
            self.discard()

    def note_result(self, resource: Type, status: EvaluationStatus) -> None:
        """Record that a resource was evaluated, and refreshed if need be; a change discards states that were read ahead."""
        touched = status.restarted or status.failed or (status.out_of_sync and not resource.simulated)
        self._unchanged_provider = None if touched else resource.handler
        if touched:
            self.discard()

    def discard(self) -> None:
        """Discard all states that were read ahead, so that each resource is read again when it is evaluated."""
        for provider in {resource.handler for resource in self._waiting}:
            if provider is not None:
                provider.forget_ahead()
        self._waiting.clear()
