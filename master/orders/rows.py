"""
What the rows of the masters' database say about orders to run.

An order has a row for each of its nodes. Any master at which a node waits takes that row and sends the order; any master that gets its
report writes the result. The master that took the order reads both, and keeps the order alive.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.data import plainjson
from shared.orders import RunOrder
from shared.state.notices import notify
from shared.state.tables import order_nodes, orders

from .run import RunQuestion

TOPIC: Final = "orders"
ASKED, HERE, SENT, OVER = "asked", "here", "sent", "over"
LIFE: Final = 30.0
"""Seconds after which an order ends that nobody keeps alive."""


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that has not ended, with the states of the nodes that are not over."""

    order: RunOrder
    follow: bool
    nodes: Mapping[str, str]


def begin(connection: Connection, question: RunQuestion, nodes: Collection[str]) -> None:
    """Store an order and tell all masters; orders that have ended go."""
    connection.execute(delete(orders).where(orders.c.ends < func.now()))
    order = question.order
    values = {"id": order.id, "body": json.dumps(order.to_data()), "concurrency": question.concurrency, "follow": question.follow > 0}
    connection.execute(insert(orders).values(**values, ends=_later()))
    if nodes:
        connection.execute(insert(order_nodes), [{"id": order.id, "node": node, "state": ASKED} for node in nodes])
    notify(connection, TOPIC)


def keep_alive(connection: Connection, number: str) -> None:
    """Put the end of an order off."""
    connection.execute(update(orders).where(orders.c.id == number).values(ends=_later()))


def end(connection: Connection, number: str) -> None:
    """Remove an order: what has not begun does not begin any more."""
    connection.execute(delete(orders).where(orders.c.id == number))
    notify(connection, TOPIC)


def read_open(connection: Connection) -> dict[str, OpenOrder]:
    """Return the orders that have not ended, by their ids."""
    statement = (
        select(orders.c.id, orders.c.body, orders.c.follow, order_nodes.c.node, order_nodes.c.state)
        .join(order_nodes, order_nodes.c.id == orders.c.id)
        .where(orders.c.ends > func.now(), order_nodes.c.state != OVER)
    )
    found: dict[str, tuple[str, bool, dict[str, str]]] = {}
    for number, body, follow, node, state in connection.execute(statement):
        found.setdefault(number, (body, follow, {}))[2][node] = state
    return {
        number: OpenOrder(RunOrder.of(plainjson.loads(body.encode())), follow, nodes) for number, (body, follow, nodes) in found.items()
    }


def read_states(connection: Connection, number: str) -> dict[str, tuple[str, str | None]]:
    """Return the state and the result of each node of an order."""
    rows = connection.execute(select(order_nodes.c.node, order_nodes.c.state, order_nodes.c.result).where(order_nodes.c.id == number))
    return {node: (state, result) for node, state, result in rows}


def note_here(connection: Connection, number: str, nodes: Sequence[str]) -> None:
    """Say that nodes wait at a master, or are expected there."""
    connection.execute(_of(number, nodes, (ASKED,)).values(state=HERE))
    notify(connection, TOPIC)


def take(connection: Connection, number: str, nodes: Sequence[str]) -> list[str]:
    """Take nodes, as many as may run at the same time, to send them the order; return those that were taken."""
    row = connection.execute(select(orders.c.concurrency).where(orders.c.id == number).with_for_update()).one_or_none()
    if row is None:
        return []
    busy = select(func.count()).select_from(order_nodes).where(order_nodes.c.id == number, order_nodes.c.state == SENT)
    room = max(0, row.concurrency - int(connection.scalar(busy) or 0))
    statement = _of(number, nodes[:room], (ASKED, HERE)).values(state=SENT).returning(order_nodes.c.node)
    taken = list(connection.scalars(statement)) if room else []
    if taken:
        notify(connection, TOPIC)
    return taken


def give_back(connection: Connection, number: str, nodes: Sequence[str]) -> None:
    """Give nodes back that had left when the order was to be sent."""
    connection.execute(_of(number, nodes, (SENT,)).values(state=HERE))
    notify(connection, TOPIC)


def give_up(connection: Connection, number: str, nodes: Sequence[str]) -> None:
    """End nodes without a result."""
    connection.execute(_of(number, nodes, (ASKED, HERE, SENT)).values(state=OVER))
    notify(connection, TOPIC)


def note_result(connection: Connection, number: str, node: str, result: Mapping[str, Any], states: Sequence[str]) -> None:
    """Store the result of a node that is in one of these states, and tell all masters."""
    done = connection.execute(_of(number, [node], states).values(state=OVER, result=json.dumps(result)))
    if done.rowcount:
        notify(connection, TOPIC)


def _of(number: str, nodes: Sequence[str], states: Sequence[str]) -> Any:
    return update(order_nodes).where(order_nodes.c.id == number, order_nodes.c.node.in_(nodes), order_nodes.c.state.in_(states))


def _later() -> Any:
    return func.now() + timedelta(seconds=LIFE)
