"""
The rollouts of masters that share their state: a row for each environment, and one for each node.

The rows decide which version a new run gets (`VERSION_OF_WAVE`), at whichever master it begins. Who stores a state writes only the nodes
that have changed, and who knows an older one reads only these.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from shared.data import plainjson
from shared.errors import BadData, Conflict, PuppetError
from shared.names import valid_environment
from shared.state.database import StateDatabase
from shared.state.notices import notify
from shared.state.tables import environments, rollout_nodes, rollout_predictions, rollouts

from ..code.rows import end_rollout, living_masters
from ..code.runs import NewRun
from .machine import STOPPED, Rollout, StoredRollout
from .storage import RolloutStorage, head_data, node_data, node_of, state_of
from .waves import place_of

TOPIC: Final = "rollouts"
_NEVER: Final = -1
"""The number of no deployment: what new runs get may change without masters being waited for, so none remembers it."""


def _version_of_wave(client: ColumnElement[str], environment: ColumnElement[str]) -> Select[Any, Any]:
    is_here = and_(rollout_nodes.c.environment == rollouts.c.environment, rollout_nodes.c.certname == client)
    by_place = bindparam("share", type_=Float) < rollouts.c.share
    is_open = case((rollout_nodes.c.wave.is_not(None), rollout_nodes.c.wave <= rollouts.c.wave), else_=by_place)
    has_new = case((rollouts.c.is_stopped, func.coalesce(rollout_nodes.c.touched, false())), else_=is_open)
    version = case(
        (or_(rollouts.c.environment.is_(None), environments.c.version.is_(None)), environments.c.version),
        (has_new, rollouts.c.after),
        else_=rollouts.c.before,
    )
    is_node = client != ""  # and not somebody without a certificate
    deployment = case((and_(is_node, environments.c.is_rolling), _NEVER), else_=environments.c.deployment)
    is_active = and_(is_node, rollouts.c.environment == environments.c.environment, rollouts.c.is_active)
    return (
        select(version.label("version"), deployment.label("deployment"))
        .select_from(environments.outerjoin(rollouts, is_active).outerjoin(rollout_nodes, is_here))
        .where(environments.c.environment == environment)
    )


VERSION_OF_WAVE: Final = NewRun(_version_of_wave, lambda client: {"share": place_of(client)})
"""A new run gets the version of its node's wave while a rollout is under way, and else the environment's current one."""


@dataclass(eq=False, repr=False)
class RolloutRows(RolloutStorage):
    """
    The rollouts of all masters.

    Args:
        certname: This master.
    """

    database: StateDatabase
    certname: str
    _known: dict[str, StoredRollout] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def environments(self) -> Sequence[str]:
        query = select(rollouts.c.environment).order_by(rollouts.c.environment)
        return self.database.transact(lambda connection: list(connection.scalars(query)))

    def load(self, environment: str) -> StoredRollout | None:
        name, known = valid_environment(environment), self._known.get(environment)
        latest = self.database.transact(lambda connection: connection.execute(_revision_of(name)).one_or_none())
        if latest is None:
            return None
        if known is not None and (known.revision, known.rollout.plan.after) == tuple(latest):
            return known
        stored = self.database.transact(lambda connection: _read(connection, name, known))
        return self._remember(name, stored) if stored is not None else None

    def save(self, rollout: Rollout, revision: int) -> StoredRollout:
        environment = valid_environment(rollout.plan.environment)
        known = self._known.get(environment)
        before = known if known is not None and known.revision == revision else None
        stored = StoredRollout(rollout, revision + 1)
        self.database.transact(lambda connection: _write(connection, stored, before))
        self._remember(environment, stored)
        return stored

    def load_prediction(self, rollout: Rollout) -> Mapping[str, Any] | None:
        query = select(rollout_predictions.c.body).where(rollout_predictions.c.environment == rollout.plan.environment)
        body = self.database.transact(lambda connection: connection.scalar(query))
        try:
            data = plainjson.loads(body) if body is not None else None
        except BadData as err:
            raise PuppetError(f"The prediction of {rollout.plan.environment} in the masters' database cannot be read: {err}") from err
        return data if isinstance(data, dict) and data.get("version") == rollout.plan.after else None

    def save_prediction(self, environment: str, prediction: Mapping[str, Any]) -> None:
        values = {"body": plainjson.dumps(dict(prediction))}
        row = postgresql.insert(rollout_predictions).values(environment=valid_environment(environment), **values)
        statement = row.on_conflict_do_update(index_elements=[rollout_predictions.c.environment], set_=values)
        self.database.transact(lambda connection: connection.execute(statement))

    def now(self) -> float:
        # The database's clock: those of the masters may differ.
        return float(self.database.transact(lambda connection: connection.scalar(_NOW)) or 0.0)

    def claim(self, environment: str) -> bool:
        return self.database.transact(lambda connection: self._claim(connection, environment))

    def _claim(self, connection: Connection, environment: str) -> bool:
        others = [name for name in living_masters(connection) if name != self.certname]  # what is claimed by us was not ended
        is_free = or_(rollouts.c.acted_by.is_(None), rollouts.c.acted_by.not_in(others))
        statement = update(rollouts).where(rollouts.c.environment == environment, is_free).values(acted_by=self.certname)
        return connection.execute(statement).rowcount > 0

    def release(self, environment: str) -> None:
        is_mine = rollouts.c.environment == environment, rollouts.c.acted_by == self.certname
        self.database.transact(lambda connection: connection.execute(update(rollouts).where(*is_mine).values(acted_by=None)))

    def _remember(self, environment: str, stored: StoredRollout) -> StoredRollout:
        with self._lock:
            known = self._known.get(environment)
            if known is None or known.revision < stored.revision or not _is_same(known.rollout, stored.rollout):
                self._known[environment] = stored
        return stored


_NOW: Final = select(func.extract("epoch", func.clock_timestamp()))


def _revision_of(environment: str) -> Select[Any, Any]:
    return select(rollouts.c.revision, rollouts.c.after).where(rollouts.c.environment == environment)


def _read(connection: Connection, environment: str, known: StoredRollout | None) -> StoredRollout | None:
    """Return a rollout, of which an older state may be known; raise PuppetError when it cannot be read."""
    connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))  # the nodes of this revision
    row = connection.execute(select(rollouts.c.revision, rollouts.c.body).where(rollouts.c.environment == environment)).one_or_none()
    if row is None:
        return None
    try:
        head = state_of({**plainjson.loads(row.body), "revision": row.revision, "nodes": {}})
        if head.rollout.plan.environment != environment:
            raise ValueError("it is of another environment")
        before = known if known is not None and _is_same(known.rollout, head.rollout) else None
        changed = {certname: node_of(plainjson.loads(body)) for certname, body in connection.execute(_changed(environment, before))}
    except (BadData, KeyError, TypeError, ValueError) as err:
        raise PuppetError(f"The rollout of {environment} in the masters' database cannot be read: {err}") from err
    nodes = {**before.rollout.nodes, **changed} if before is not None else changed
    return replace(head, rollout=replace(head.rollout, nodes=nodes))


def _changed(environment: str, known: StoredRollout | None) -> Select[Any, Any]:
    query = select(rollout_nodes.c.certname, rollout_nodes.c.body).order_by(rollout_nodes.c.certname)
    here = query.where(rollout_nodes.c.environment == environment, rollout_nodes.c.body.is_not(None))
    return here.where(rollout_nodes.c.revision > known.revision) if known is not None else here


def _is_same(one: Rollout, other: Rollout) -> bool:
    return (one.began, one.plan.after) == (other.began, other.plan.after)


def _write(connection: Connection, stored: StoredRollout, before: StoredRollout | None) -> None:
    """Write what differs between two states; without the one before, or when it is of another rollout, all."""
    rollout, plan = stored.rollout, stored.rollout.plan
    here = rollouts.c.environment == plan.environment
    values = {**_decision(rollout), "revision": stored.revision, "body": plainjson.dumps(head_data(rollout))}
    if stored.revision == 1:
        first = postgresql.insert(rollouts).values(environment=plan.environment, **values).on_conflict_do_nothing()
        written = connection.execute(first.returning(rollouts.c.revision)).one_or_none()
    else:
        written = _update(connection, here, stored.revision, values)
    if written is None:
        raise Conflict(f"The rollout of {plan.environment} was changed at the same time", hint="Try again.")
    is_same = before is not None and _is_same(before.rollout, rollout)
    known = before.rollout.nodes if before is not None and is_same else {}
    if not is_same:
        connection.execute(delete(rollout_nodes).where(rollout_nodes.c.environment == plan.environment))
        _write_members(connection, rollout)
    _write_nodes(connection, stored, known)
    if not rollout.is_active:
        end_rollout(connection, plan.environment, plan.after)
    if before is None or not is_same or (before.rollout.status, before.rollout.step) != (rollout.status, rollout.step):
        notify(connection, TOPIC)


def _update(connection: Connection, here: Any, revision: int, values: Mapping[str, Any]) -> Row[Any] | None:
    statement = update(rollouts).where(here, rollouts.c.revision == revision - 1).values(**values)
    return connection.execute(statement.returning(rollouts.c.revision)).one_or_none()


def _decision(rollout: Rollout) -> dict[str, Any]:
    """Return what decides on the version of a run."""
    plan, wave = rollout.plan, rollout.current.wave
    shares = [each.percent for each in plan.waves[: wave + 1] if each.percent is not None]
    return {
        "is_active": rollout.is_active,
        "is_stopped": rollout.status == STOPPED,
        "before": plan.before,
        "after": plan.after,
        "wave": wave,
        "share": shares[-1] if shares else 0.0,
    }


def _write_members(connection: Connection, rollout: Rollout) -> None:
    """Write the nodes that a query has found and nothing else is known of."""
    members = {name for wave in rollout.plan.waves for name in wave.members} - rollout.nodes.keys()
    found = [_row(rollout, name) for name in sorted(members)]
    if found:
        connection.execute(insert(rollout_nodes), [{**row, "revision": 0, "touched": False, "body": None} for row in found])


def _write_nodes(connection: Connection, stored: StoredRollout, known: Mapping[str, Any]) -> None:
    changed = [
        {**_row(stored.rollout, name), "revision": stored.revision, "touched": node.touched, "body": plainjson.dumps(node_data(node))}
        for name, node in stored.rollout.nodes.items()
        if (before := known.get(name)) is not node and before != node
    ]
    if not changed:
        return
    statement = postgresql.insert(rollout_nodes)
    names = ("revision", "touched", "body")
    key = [rollout_nodes.c.environment, rollout_nodes.c.certname]
    connection.execute(
        statement.on_conflict_do_update(index_elements=key, set_={name: statement.excluded[name] for name in names}), changed
    )


def _row(rollout: Rollout, certname: str) -> dict[str, Any]:
    return {"environment": rollout.plan.environment, "certname": certname, "wave": rollout.wave_of(certname)}
