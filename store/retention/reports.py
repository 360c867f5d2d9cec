"""
Reports and events that are too old.

On PostgreSQL no batch waits for a lock: a transaction that deletes a node locks the node and waits for its reports, so no other may
lock reports and wait for their node.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select, update

from ..database.tables import events, nodes, reports

REPORTS = 100
"""Reports that are deleted in one transaction at most, fewer where they have many events."""

_EVENTS = 1000


def delete_report_batch(connection: Connection, before: int) -> int:
    """
    Delete some reports whose producer's time is before `before`, with their events; return how many.

    The newest report of a node that somebody else is writing at the moment is left for the next time.
    """
    old = select(reports.c.id).where(reports.c.producer_timestamp < before)
    oldest = connection.scalars(old.order_by(reports.c.producer_timestamp).limit(REPORTS).with_for_update(skip_locked=True)).all()
    ids = set(with_few_events(connection, oldest))
    if not ids:
        return 0
    is_latest = nodes.c.latest_report_id.in_(ids)
    locked = connection.scalars(select(nodes.c.id).where(is_latest).with_for_update(skip_locked=True, key_share=True)).all()
    ids.difference_update(connection.scalars(select(nodes.c.latest_report_id).where(is_latest & nodes.c.id.not_in(locked))))
    if locked:
        connection.execute(update(nodes).where(nodes.c.id.in_(locked)).values(latest_report_id=None, latest_report_time=None))
    return connection.execute(delete(reports).where(reports.c.id.in_(ids))).rowcount


def with_few_events(connection: Connection, ids: Sequence[int]) -> list[int]:
    """Return the first reports, at least one, that together have few events: pending commands are delayed while these are deleted."""
    counts = select(events.c.report_id, func.count()).where(events.c.report_id.in_(ids)).group_by(events.c.report_id)
    events_of: dict[int, int] = dict(map(tuple, connection.execute(counts)))
    total, few = 0, list[int]()
    for report in ids:
        total += events_of.get(report, 0)
        if few and total > _EVENTS:
            break
        few.append(report)
    return few


def delete_event_batch(connection: Connection, before: int) -> int:
    """Delete some events that happened before `before`; return how many."""
    old = select(events.c.id).where(events.c.timestamp < before)
    ids = connection.scalars(old.order_by(events.c.timestamp).limit(_EVENTS).with_for_update(skip_locked=True)).all()
    return connection.execute(delete(events).where(events.c.id.in_(ids))).rowcount if ids else 0
