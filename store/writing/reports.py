"""Writing reports: each once, with its events."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select

from ..commands.commands import ReportEvent, StoreReport, containing_class
from ..commands.hashes import report_hash
from ..database.bulk import BulkInsert
from ..database.tables import events, reports, same_names
from .nodes import NodeState
from .shared_rows import SharedRows

_KNOWN = select(reports.c.hash).where(reports.c.hash.in_(bindparam("hashes", expanding=True)))

_INSERT = insert(reports)

_NEW_EVENTS = BulkInsert(events)

_AGENT = "agent"

_OF_REPORT = same_names(reports, StoreReport)


class NewReports:
    """The reports of a batch that are not stored yet."""

    def __init__(self, connection: Connection, states: Sequence[NodeState], shared: SharedRows) -> None:
        hashed: dict[str, tuple[NodeState, StoreReport, int]] = {}
        for node in states:
            for report, received in node.reports:
                hashed.setdefault(report_hash(report), (node, report, received))
        if hashed:
            for digest in connection.execute(_KNOWN, {"hashes": sorted(hashed)}).scalars():
                del hashed[digest]
        self.reports = hashed
        for _, report, _ in hashed.values():
            shared.need_names(report.environment, report.producer)

    def write(self, connection: Connection, shared: SharedRows) -> None:
        """Write the reports and their events, and note the newest report of each node."""
        rows: list[dict[str, object]] = []
        for digest, (node, report, received) in self.reports.items():
            row = _report_row(node.id, digest, report, received, shared)
            key = connection.execute(_INSERT, row).inserted_primary_key
            assert key is not None
            (report_id,) = key
            rows += (_event_row(report_id, event) for event in report.events)
            if report.type == _AGENT:
                node.take_report(report_id, report.producer_timestamp)
        _NEW_EVENTS.insert(connection, rows)


def _report_row(node: int, digest: str, report: StoreReport, received: int, shared: SharedRows) -> dict[str, object]:
    return {
        "node_id": node,
        "hash": digest,
        "received": received,
        "environment_id": shared.environment_id(report.environment),
        "producer_id": shared.producer_id(report.producer),
        **{name: getattr(report, name) for name in _OF_REPORT},
    }


def _event_row(report: int, event: ReportEvent) -> dict[str, object]:
    # Written out, for a report may have 50,000 of them: looking up names takes twice as long.
    return {
        "report_id": report,
        "status": event.status,
        "timestamp": event.timestamp,
        "resource_type": event.resource_type,
        "resource_title": event.resource_title,
        "property": event.property,
        "name": event.name,
        "new_value": event.new_value,
        "old_value": event.old_value,
        "message": event.message,
        "file": event.file,
        "line": event.line,
        "containment_path": event.containment_path,
        "containing_class": containing_class(event),
        "corrective_change": event.corrective_change,
    }
