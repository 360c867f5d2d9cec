"""A report as a PuppetDB gets it, and the report processor that sends it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from shared.clock import utc_now
from shared.data import plainjson
from shared.errors import PuppetError
from shared.models.report import Event, Report, ResourceStatus

from .client import PuppetDbClient
from .commands import PuppetDbCommand, utc_wire_time

log = logging.getLogger("puppet.puppetdb")

NAME, VERSION = "store report", 8
LARGE_KEY = 2500  # bytes of title and type from which on the log warns
MAX_KEY = 2704  # bytes that fit into the index of PuppetDB's database
_TIMESTAMP = 8  # bytes of the time in that index
_SAME = (
    "job_id", "puppet_version", "report_format", "environment", "transaction_uuid", "status", "noop_pending", "corrective_change",
    "catalog_uuid", "code_id", "cached_catalog_status",
)  # fmt: skip
"""What a report has under the same name, as have its logs, resources and events."""
_OF_LOG = ("file", "line", "level", "message", "source", "tags")
_OF_RESOURCE = ("skipped", "resource_type", "file", "line", "containment_path", "corrective_change")
_OF_EVENT = ("status", "name", "property", "corrective_change", "message")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


def stored_report(report: Report, *, every_resource: bool, producer: str, when: datetime) -> dict[str, Any]:
    """
    Return a report in the form of PuppetDB's command.

    Args:
        every_resource: Include resources to which nothing happened.
        producer: The master's certname.
    Raises:
        PuppetError: The report names no environment.
    """
    if report.environment is None:
        raise PuppetError(f"The report of {report.host} names no environment, without which a PuppetDB does not take it")
    statuses = [status for status in report.resource_statuses.values() if every_resource or status.events or status.skipped]
    for status in statuses:
        _warn_of_size(report.host, status)
    resources = [_resource(status) for status in statuses]
    duration = report.metrics["time"].number("total") if "time" in report.metrics else 0
    return {
        **{name: getattr(report, name) for name in _SAME},
        "certname": report.host,
        "configuration_version": "" if report.configuration_version is None else str(report.configuration_version),
        "producer_timestamp": utc_wire_time(when),
        "start_time": in_milliseconds(report.time),
        "end_time": in_milliseconds(report.time, duration),
        "noop": report.noop if report.noop is not None else _is_noop(statuses),
        "logs": [{name: getattr(entry, name) for name in _OF_LOG} | {"time": in_milliseconds(entry.time)} for entry in report.logs],
        "metrics": [
            {"category": metric.name, "name": name, "value": value}
            for metric in report.metrics.values()
            for name, _, value in metric.values
        ],
        "resources": resources,
        "producer": producer,
    }


def in_milliseconds(time: str, later: float = 0) -> str | None:
    """Return a time of a report, some seconds later, with three digits of its fraction and the offset that it has; None for ''."""
    match = _TIME.fullmatch(time)
    if match is None:
        return time or None
    fraction = Fraction(int(match[2] or 0), 10 ** len(match[2] or ""))
    microseconds = (fraction + Fraction(later)) * 1_000_000 // 1
    moment = datetime.fromisoformat(match[1]) + timedelta(microseconds=int(microseconds))
    return f"{moment.isoformat(timespec='milliseconds')}{match[3]}"


def _is_noop(statuses: list[ResourceStatus]) -> bool:
    events = [event.status for status in statuses for event in status.events]
    return bool(events) and all(status == "noop" for status in events)


def _resource(status: ResourceStatus) -> dict[str, Any]:
    return {
        **{name: getattr(status, name) for name in _OF_RESOURCE},
        "timestamp": in_milliseconds(status.time),
        "resource_title": status.title,
        "events": [_event(event) for event in status.events],
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        **{name: getattr(event, name) for name in _OF_EVENT},
        "timestamp": in_milliseconds(event.time),
        "new_value": _text(event.desired_value),
        "old_value": _text(event.previous_value),
    }


def _text(value: Any) -> str:
    """Return a value of an event in the form of Ruby's `to_s`."""
    if value is None:
        return ""
    return value if isinstance(value, str) else "".join(_inspected(value))


def _inspected(value: Any) -> Iterator[str]:
    if isinstance(value, list | dict):
        pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        yield "{" if isinstance(value, dict) else "["
        for number, (key, item) in enumerate(pairs):
            yield ", " if number else ""
            if isinstance(value, dict):
                yield from _inspected(key)
                yield "=>"
            yield from _inspected(item)
        yield "}" if isinstance(value, dict) else "]"
    else:
        yield "nil" if value is None else json.dumps(value, ensure_ascii=False)


def _warn_of_size(host: str, status: ResourceStatus) -> None:
    """Warn of a resource whose name hardly fits, or does not fit, into the index of PuppetDB's database."""
    size = _TIMESTAMP + len(status.resource_type.encode()) + len(status.title.encode("utf-8", "replace"))
    if size <= LARGE_KEY:
        return
    problem = (
        f"is very large. Values (resource timestamp + title + type) are {size} bytes and the hard limit is {MAX_KEY}."
        if size <= MAX_KEY
        else f"could not be saved. Values (resource timestamp + title + type) are larger than index total size of {MAX_KEY}."
    )
    cause = f'Resource type: "{status.resource_type}" with title: "{status.title}" in {status.file}:{status.line}'
    log.warning("resource_event on %s %s Caused by %s", host, problem, cause)


class PuppetDbReports:
    """The report processor that sends reports to a PuppetDB; `timeout` is in seconds."""

    def __init__(self, client: PuppetDbClient) -> None:
        self.client = client
        self.timeout = client.configuration.longest_request + 10.0

    async def process(self, report: Report) -> None:
        """Send a report; SubmissionFailed when no server takes it."""
        await self.client.submit(await asyncio.to_thread(self._command, report))

    def _command(self, report: Report) -> PuppetDbCommand:
        when = utc_now()
        every = self.client.configuration.include_unchanged_resources
        data = stored_report(report, every_resource=every, producer=self.client.producer, when=when)
        return PuppetDbCommand.create(NAME, VERSION, report.host, plainjson.dumps_pson(data), when)

    async def forget(self, host: str) -> bool:
        """Return that nothing was removed: a PuppetDB drops the reports of nodes that are deactivated by itself."""
        return False
