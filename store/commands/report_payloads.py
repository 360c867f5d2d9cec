"""Makes reports of the payloads of `store report`, versions 5 to 8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..jsontext import dump_json
from ..timestamps import format_timestamp
from .commands import Json, PayloadRejected, ReportEvent, StoreReport
from .fields import Fields

_COMMON = frozenset(
    {
        "certname",
        "configuration_version",
        "end_time",
        "environment",
        "logs",
        "metrics",
        "noop",
        "puppet_version",
        "report_format",
        "start_time",
        "status",
        "transaction_uuid",
    }
)
_VERSION_7 = _COMMON | {"resources", "cached_catalog_status", "catalog_uuid", "code_id"}
_REQUIRED = {
    5: _COMMON | {"resource_events"},
    6: _COMMON | {"resources"},
    7: _VERSION_7,
    8: _VERSION_7 | {"corrective_change", "noop_pending", "producer"},
}
_ALWAYS_OPTIONAL = frozenset({"producer_timestamp"})
_OPTIONAL_IN_8 = _ALWAYS_OPTIONAL | {"job_id", "type"}


MAX_EVENTS = 50_000
"""Events of a report, which SQLite stores in one transaction; each skipped resource is one."""


def parse_report(value: Json, version: int, received: int) -> StoreReport:
    """Return the report of a payload; raise PayloadRejected for a faulty one. `received` replaces a missing time."""
    fields = Fields(value, "the report")
    fields.check_names(_REQUIRED[version], _OPTIONAL_IN_8 if version == 8 else _ALWAYS_OPTIONAL)
    kind = fields.optional_text("type") or "agent"
    if kind not in ("agent", "plan"):
        raise PayloadRejected(f"the report: type must be 'agent' or 'plan', not '{kind}'")
    return StoreReport(
        certname=fields.certname(),
        environment=fields.optional_text("environment"),
        producer=fields.optional_text("producer"),
        producer_timestamp=fields.time("producer_timestamp") if fields.has("producer_timestamp") else received,
        type=kind,
        puppet_version=fields.text("puppet_version"),
        report_format=fields.integer("report_format"),
        configuration_version=fields.text("configuration_version"),
        start_time=fields.time("start_time"),
        end_time=fields.time("end_time"),
        status=fields.optional_text("status"),
        noop=fields.optional_boolean("noop"),
        noop_pending=fields.optional_boolean("noop_pending"),
        corrective_change=fields.optional_boolean("corrective_change"),
        transaction_uuid=fields.optional_text("transaction_uuid"),
        catalog_uuid=fields.optional_text("catalog_uuid"),
        code_id=fields.optional_text("code_id"),
        job_id=fields.optional_text("job_id"),
        cached_catalog_status=fields.optional_text("cached_catalog_status"),
        events=_distinct(_flat_events(fields) if version == 5 else _events(fields)),
        logs=[_log(log) for log in fields.objects("logs", "a log of the report")] if fields.has("logs") else None,
        metrics=[_metric(metric) for metric in fields.objects("metrics", "a metric of the report")] if fields.has("metrics") else None,
    )


def _events(report: Fields) -> Iterator[ReportEvent]:
    """Yield the events of all resources, and one for each skipped resource."""
    for resource in report.objects("resources", "a resource of the report"):
        resource_event = _resource_event(resource)
        if resource.boolean("skipped"):
            yield resource_event
            continue
        for event in resource.objects("events", "an event of the report"):
            yield _event(event, resource_event)


def _flat_events(report: Fields) -> Iterator[ReportEvent]:
    """Yield the events of version 5, each of which names its resource."""
    for event in report.objects("resource_events", "an event of the report"):
        resource_event = _resource_event(event)
        yield resource_event if event.value("status") == "skipped" else _event(event, resource_event)


def _resource_event(resource: Fields) -> ReportEvent:
    """Return the event for a skipped resource."""
    return ReportEvent(
        status="skipped",
        timestamp=resource.time("timestamp"),
        resource_type=resource.text("resource_type"),
        resource_title=resource.text("resource_title"),
        property=None,
        name=None,
        new_value=None,
        old_value=None,
        message=None,
        file=resource.optional_text("file"),
        line=resource.optional_integer("line"),
        containment_path=tuple(resource.texts("containment_path")) if resource.has("containment_path") else None,
        corrective_change=resource.optional_boolean("corrective_change"),
    )


def _event(event: Fields, resource_event: ReportEvent) -> ReportEvent:
    return replace(
        resource_event,
        status=event.text("status"),
        timestamp=event.time("timestamp"),
        property=event.optional_text("property"),
        name=event.optional_text("name"),
        new_value=event.value("new_value"),
        old_value=event.value("old_value"),
        message=event.optional_text("message"),
        corrective_change=event.optional_boolean("corrective_change"),
    )


def _distinct(events: Iterator[ReportEvent]) -> list[ReportEvent]:
    """Return the events without repetitions for the same resource."""
    distinct: dict[tuple[str | int | bytes | None, ...], ReportEvent] = {}
    for event in events:
        distinct.setdefault(_identity(event), event)
        if len(distinct) > MAX_EVENTS:
            raise PayloadRejected(f"the report has more than {MAX_EVENTS} events")
    return list(distinct.values())


def _identity(event: ReportEvent) -> tuple[str | int | bytes | None, ...]:
    return (
        event.resource_type,
        event.resource_title,
        event.property,
        event.timestamp,
        event.status,
        dump_json(event.old_value),
        dump_json(event.new_value),
        event.message,
        event.name,
        event.file,
        event.line,
    )


def _log(log: Fields) -> Json:
    tags: list[Json] = [*log.texts("tags")]
    return {
        "file": log.optional_text("file"),
        "line": log.optional_integer("line"),
        "level": log.text("level"),
        "message": log.text("message"),
        "source": log.text("source"),
        "tags": tags,
        "time": format_timestamp(log.time("time")),
    }


def _metric(metric: Fields) -> Json:
    number = metric.value("value")
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise PayloadRejected("a metric of the report: value must be a number")
    return {"category": metric.text("category"), "name": metric.text("name"), "value": number}
