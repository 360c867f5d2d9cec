"""The events and the status of one resource while it is evaluated; they become its part of the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.models import report
from shared.ral import Type
from shared.ral.attributes import text_of
from shared.ral.references import type_label


@dataclass(slots=True)
class ResourceEvent:
    """A change that was made, simulated, audited or failed; without `property` it concerns the resource as a whole."""

    name: str
    status: str  # success, noop, failure, audit
    time: datetime
    message: str = ""
    property: str | None = None
    previous_value: Any = None
    desired_value: Any = None
    historical_value: Any = None
    audited: bool = False
    redacted: bool | None = None
    corrective: bool = False
    invalidate_refreshes: bool = False

    def to_report(self) -> report.Event:
        return report.Event(
            audited=self.audited,
            property=self.property,
            previous_value=plain_data(self.previous_value),
            desired_value=plain_data(self.desired_value),
            historical_value=plain_data(self.historical_value),
            message=self.message,
            name=self.name,
            status=self.status,
            time=report.iso_time(self.time),
            redacted=self.redacted,
            corrective_change=self.corrective,
        )


def plain_data(value: Any) -> Any:
    """Return a value in a form that JSON can carry."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if isinstance(value, dict):
        return {text_of(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return report.iso_time(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


@dataclass(slots=True)
class EvaluationStatus:
    """
    The flags and events of one resource.

    As in Puppet, an event of status success counts as a change, and every event but an audit counts as out of sync.
    """

    resource: Type
    containment_path: list[str]
    time: datetime
    provider_used: str | None = None
    evaluation_time: float | None = None
    failed: bool = False
    failed_to_restart: bool = False
    restarted: bool = False
    changed: bool = False
    out_of_sync: bool = False
    skipped: bool = False
    corrective: bool = False
    change_count: int = 0
    out_of_sync_count: int = 0
    events: list[ResourceEvent] = field(default_factory=list)

    def add(self, event: ResourceEvent) -> None:
        self.events.append(event)
        if event.status == "failure":
            self.failed = True
        elif event.status == "success":
            self.change_count += 1
            self.changed = True
        if event.status != "audit":
            self.out_of_sync_count += 1
            self.out_of_sync = True
        if event.corrective:
            self.corrective = True

    def fail(self, message: str, now: datetime) -> None:
        """Record that the resource as a whole failed."""
        self.add(ResourceEvent("resource_error", "failure", now, message, redacted=False))

    def to_report(self) -> report.ResourceStatus:
        resource = self.resource
        where = resource.origin.where
        return report.ResourceStatus(
            title=resource.title,
            file=where.file if where else None,
            line=where.line if where else None,
            resource=str(resource.ref),
            resource_type=type_label(resource.ref.type),
            provider_used=self.provider_used,
            containment_path=self.containment_path,
            evaluation_time=self.evaluation_time,
            tags=list(resource.origin.tags),
            time=report.iso_time(self.time),
            **self._changed_fields(),
        )

    def _changed_fields(self) -> dict[str, Any]:
        """
        Return the fields that differ from those of an unchanged resource.

        A report has thousands of unchanged resources, and a model's size depends on the fields that were set.
        """
        happened = {
            "failed": self.failed,
            "failed_to_restart": self.failed_to_restart,
            "restarted": self.restarted,
            "changed": self.changed,
            "out_of_sync": self.out_of_sync,
            "skipped": self.skipped,
            "change_count": self.change_count,
            "out_of_sync_count": self.out_of_sync_count,
            "events": [event.to_report() for event in self.events],
            "corrective_change": self.corrective,
        }
        return {name: value for name, value in happened.items() if value}
