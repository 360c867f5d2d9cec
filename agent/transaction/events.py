"""
Events between resources: which changes refresh which resources, and which events a refresh propagates.

Source: resource layer reference 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.ral import Type
from shared.ral.commands import keep_secret

from .graph import REFRESH, ContainerAnchor, Graph, Node
from .harness import failure_reason_of
from .status import EvaluationStatus, ResourceEvent

Log = Callable[[str, str, Node], None]


@dataclass(kw_only=True, eq=False)
class EventQueue:
    """The events that wait for their targets to be evaluated."""

    log: Log
    status: Callable[[Type], EvaluationStatus]
    simulated: Callable[[Node], bool]
    now: Callable[[], datetime]
    _waiting: dict[Node, list[ResourceEvent]] = field(default_factory=dict, init=False)

    def queue(self, graph: Graph, source: Node, events: Sequence[ResourceEvent]) -> None:
        """Queue the events of one resource for all targets of its edges."""
        by_name: dict[str, list[ResourceEvent]] = {}
        for event in events:
            by_name.setdefault(event.name, []).append(event)
        for name, same in by_name.items():
            for target, label in graph.edges_from(source):
                if label.callback == REFRESH and label.carries(name) and can_refresh(target):
                    self._queue_for(source, target, same)
            if isinstance(source, Type) and source.declaration.self_refresh and source.value_of("ensure") != "absent":
                self._queue_for(source, source, same[:1])
        if any(event.invalidate_refreshes for event in events):
            self.log("info", f"Unscheduling {REFRESH} on {source}", source)
            self._waiting.pop(source, None)

    def _queue_for(self, source: Node, target: Node, events: Sequence[ResourceEvent]) -> None:
        if isinstance(target, ContainerAnchor) and target.completed:
            self.log("debug", f"The container {target} will propagate my {REFRESH} event", source)
        else:
            self.log("info", f"Scheduling {REFRESH} of {target}", source)
        self._waiting.setdefault(target, []).extend(events)

    def drop(self, target: Node) -> None:
        """Drop the events for a target that is skipped."""
        if self._waiting.pop(target, None):
            self.log("info", f"Unscheduling all events on {target}", target)

    async def process(self, graph: Graph, target: Node) -> None:
        """Refresh a target that was just evaluated, if events wait for it; the refresh is an event itself."""
        events = self._waiting.pop(target, None)
        if not events:
            return
        count = f"{len(events)} event{'s' if len(events) > 1 else ''}"
        if self.simulated(target) or all(event.status == "noop" for event in events):
            self.log("notice", f"Would have triggered '{REFRESH}' from {count}", target)
            self.queue(graph, target, [ResourceEvent("noop_restart", "noop", self.now())])
            return
        if isinstance(target, Type):
            if not await self._refresh(target):
                return
            message = f"Triggered '{REFRESH}' from {count}"
            self.log("notice", message, target)
            status = self.status(target)
            status.add(ResourceEvent(REFRESH, "success", self.now(), message, redacted=False))
            status.restarted = True
        self.queue(graph, target, [ResourceEvent("restarted", "success", self.now())])

    async def _refresh(self, target: Type) -> bool:
        try:
            if target.handler is not None:
                with keep_secret(target.secrets()):
                    await target.handler.refresh(target)
        except Exception as err:  # noqa: BLE001  # a failed refresh fails its resource, not the run
            message = f"Failed to call {REFRESH}: {failure_reason_of(target, err)}"
            self.log("err", message, target)
            status = self.status(target)
            status.failed_to_restart = True
            status.fail(message, self.now())
            self.log("err", failure_reason_of(target, err), target)
            return False
        return True


def can_refresh(target: Node) -> bool:
    """Return whether a target reacts to events."""
    return isinstance(target, ContainerAnchor) or target.declaration.refreshable
