"""Writing reports: each once, with its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from sqlalchemy import Connection, bindparam, insert, select

from ..commands.commands import ReceivedCommand, ReportEvent, StoreReport, containing_class
from ..commands.hashes import report_hash
from ..database.bulk import BulkInsert
from ..database.columns import pack_json
from ..database.tables import events, reports, same_names
from .nodes import NodeState
from .shared_rows import SharedRows

_KNOWN = select(reports.c.hash).where(reports.c.hash.in_(bindparam("hashes", expanding=True)))

_INSERT = insert(reports)

_NEW_EVENTS = BulkInsert(events)

_AGENT = "agent"

_OF_REPORT = same_names(reports, StoreReport)


@dataclass(frozen=True, slots=True)
class _NewReport:
    report: StoreReport
    row: Mapping[str, object]
    """The columns that need no other rows."""


class NewReports:
    """The reports of a batch, in the form that is stored; made before the transaction, for which all others wait on SQLite."""

    def __init__(self, commands: Sequence[ReceivedCommand]) -> None:
        """Raises PayloadRejected for an event with a key over MAX_KEY."""
        self._reports: dict[str, _NewReport] = {}
        for received in commands:
            if isinstance(received.command, StoreReport):
                digest = report_hash(received.command)
                self._reports.setdefault(digest, _NewReport(received.command, _report_row(digest, received.command, received.received)))
        # Until they are written, their hashes stand for the ids of the reports.
        rows = [_event_row(digest, event) for digest, new in self._reports.items() for event in new.report.events]
        self._events = _NEW_EVENTS.values(rows)
        self._missing = self._reports

    def compare(self, connection: Connection, shared: SharedRows) -> None:
        """Find those that are not stored yet, and say which names they need."""
        self._missing = self._reports
        if self._reports:
            known = set(connection.scalars(_KNOWN, {"hashes": sorted(self._reports)}))
            self._missing = {digest: new for digest, new in self._reports.items() if digest not in known}
        for new in self._missing.values():
            shared.need_names(new.report.environment, new.report.producer)

    def write(self, connection: Connection, states: Sequence[NodeState], shared: SharedRows) -> None:
        """Write the reports and their events, and note the newest report of each node."""
        nodes = {state.certname: state for state in states}
        ids: dict[object, int] = {}
        for digest, new in self._missing.items():
            report = new.report
            node = nodes[report.certname]
            names = {"environment_id": shared.environment_id(report.environment), "producer_id": shared.producer_id(report.producer)}
            key = connection.execute(_INSERT, {"node_id": node.id, **names, **new.row}).inserted_primary_key
            assert key is not None
            (ids[digest],) = key
            if report.type == _AGENT:
                node.take_report(ids[digest], report.producer_timestamp)
        is_new = [digest in ids for digest in self._events["report_id"]]
        if any(is_new):
            events = {name: list(compress(values, is_new)) for name, values in self._events.items()}
            _NEW_EVENTS.insert_values(connection, events | {"report_id": [ids[digest] for digest in events["report_id"]]})


def _report_row(digest: str, report: StoreReport, received: int) -> dict[str, object]:
    columns = {name: getattr(report, name) for name in _OF_REPORT}
    return columns | {"hash": digest, "received": received, "logs": pack_json(report.logs), "metrics": pack_json(report.metrics)}


def _event_row(report: str, event: ReportEvent) -> dict[str, object]:
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
