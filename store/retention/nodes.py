"""
Nodes that expire, and nodes that are deleted.

On PostgreSQL a node that somebody else is writing at the moment is left for the next time: no batch waits for a command.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, case, delete, exists, func, or_, select, true, update

from ..database.async_engine import AsyncConnection
from ..database.tables import catalog_inputs, catalogs, edges, factsets, nodes, reports, resources
from .reports import REPORTS, with_few_events

_BATCH = 100
"""Nodes that expire in one transaction."""


def _is_silent_since(time: int) -> ColumnElement[bool]:
    """Return a condition: the node can expire, and has no data as new as `time`."""
    condition = nodes.c.expires_facts & (func.coalesce(nodes.c.expires_facts_updated, time - 1) < time)
    for table in (factsets, catalogs, catalog_inputs, reports):
        condition &= ~exists().where((table.c.node_id == nodes.c.id) & (table.c.producer_timestamp >= time))
    return condition


def expire_batch(connection: Connection, before: int, now: int) -> int:
    """Expire some nodes at `now` that have no data as new as `before`; return their number."""
    silent = nodes.c.deactivated.is_(None) & nodes.c.expired.is_(None) & _is_silent_since(before)
    # Two statements: the second one sees what was committed before the rows were locked.
    ids = _locked_batch(connection, silent)
    return connection.execute(update(nodes).where(nodes.c.id.in_(ids) & silent).values(expired=now)).rowcount if ids else 0


def correct_expiry_batch(connection: Connection, before: int, now: int) -> int:
    """
    Correct some expiries later than `now`, from a time when the clock was ahead; return how many.

    No command would make such a node active again before its expiry, and nothing would delete it. It becomes active if something of it
    is as new as `before`, and else it expires at `now`.
    """
    ids = _locked_batch(connection, nodes.c.expired > now)
    expired = case((_is_silent_since(before), now))
    return connection.execute(update(nodes).where(nodes.c.id.in_(ids)).values(expired=expired)).rowcount if ids else 0


def _locked_batch(connection: Connection, condition: ColumnElement[bool]) -> Sequence[int]:
    """Lock some nodes that match a condition and that no other transaction is writing, and return their ids."""
    chosen = select(nodes.c.id).where(condition).limit(_BATCH).with_for_update(skip_locked=True, key_share=True, of=nodes)
    return connection.scalars(chosen).all()


def _is_inactive_since(time: int) -> ColumnElement[bool]:
    return or_(nodes.c.deactivated < time, nodes.c.expired < time)


async def choose_purgeable(connection: AsyncConnection, before: int, limit: int) -> list[int]:
    """Return the ids of some nodes that have been inactive since before `before`, those first that have been so for longest."""
    since = func.coalesce(nodes.c.deactivated, nodes.c.expired)
    chosen = await connection.scalars(select(nodes.c.id).where(_is_inactive_since(before)).order_by(since).limit(limit))
    return list(chosen)


async def node_id(connection: AsyncConnection, certname: str) -> int | None:
    """Return the id of a node; None when it is not known."""
    id: int | None = await connection.scalar(select(nodes.c.id).where(nodes.c.certname == certname))
    return id


def delete_node_batch(connection: Connection, node: int, before: int | None) -> bool | None:
    """
    Delete some of a node's reports, or, when there are no more, the node itself with all else.

    Args:
        before: The node is deleted only while it has been inactive since before that; None: in any case.
    Returns:
        True when the node is deleted, False when it is not to be, None when there is more to delete.
    """
    condition = true() if before is None else _is_inactive_since(before)
    if connection.scalar(select(nodes.c.id).where((nodes.c.id == node) & condition).with_for_update()) is None:
        return False
    some = connection.scalars(select(reports.c.id).where(reports.c.node_id == node).limit(REPORTS)).all()
    if some:
        connection.execute(delete(reports).where(reports.c.id.in_(with_few_events(connection, some))))
        return None
    # The tables that refer to nodes are emptied by the database; edges are many, and quicker to delete at once than with each resource.
    own = select(resources.c.id).where(resources.c.node_id == node)
    connection.execute(delete(edges).where(edges.c.source_id.in_(own)))
    connection.execute(delete(nodes).where(nodes.c.id == node))
    return True
