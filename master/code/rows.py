"""
What the rows of the masters' database say about code, and the steps of a deployment to all masters.

A deployment is one row that is pending until each living master has answered whether it has the version; then one row switches the
environment for all. Whoever looks at it takes that step, so that a deployment ends even if the master that began it has died.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.errors import Unavailable
from shared.state.notices import notify
from shared.state.tables import (
    answers,
    deployments,
    environments,
    masters,
    rollout_predictions,
    rollouts,
    runs,
    versions,
)

TOPIC = "code"
BEAT = 5.0
"""Seconds between two signs of life of a master."""
TRUST = 10.0
"""Seconds after a sign of life for which a master may rely on what it read then."""
DEAD = 15.0
"""Seconds without a sign of life after which others do not wait for a master. It has to be more than TRUST."""

_REMEMBERED = timedelta(days=30)  # for which deployments that have ended stay in the database


@dataclass(frozen=True, slots=True)
class Current:
    """The current version of an environment, None when it was removed, and the number of the deployment that made it so."""

    version: str | None
    deployment: int


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an environment, as the master has described it that deployed it first."""

    environment: str
    version: str
    commit: str
    ref: str
    repository: str
    modules: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version that was current once, in the order of deployment."""

    version: Version
    deployed_at: datetime
    replaced_at: datetime | None


@dataclass(frozen=True, slots=True)
class Pending:
    """A deployment for which masters are waited for; the version is '' for a removal."""

    id: int
    environment: str
    version: str
    adopt: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    What the rows say about code at one moment.

    Attributes:
        current: By environment.
        ages: The seconds since an environment was switched.
        rolling: The environments in which a rollout decides on the versions of new runs, or may begin to.
        adopted: The environments of which folders that are in a link's place become versions.
        wanted: The versions that each master should have: current ones, pending ones, those of rollouts, and those that runs may still use.
    """

    current: Mapping[str, Current]
    ages: Mapping[str, float]
    rolling: Collection[str]
    adopted: Collection[str]
    pending: Sequence[Pending]
    wanted: Sequence[Version]


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a deployment has ended; `left_out` are the masters without the version, with their problems."""

    problem: str
    left_out: Mapping[str, str]


def appear(connection: Connection, certname: str, problem: str) -> None:
    """Give a sign of life of a master; others wait for its answers from the end of the transaction on."""
    values = {"seen": func.now(), "problem": problem}
    statement = insert(masters).values(certname=certname, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=[masters.c.certname], set_=values))


def leave(connection: Connection, certname: str) -> None:
    """Have nobody wait for a master any more."""
    connection.execute(delete(masters).where(masters.c.certname == certname))
    notify(connection, TOPIC)


def living_masters(connection: Connection) -> dict[str, str]:
    """Return the problems of the masters that live, '' for none, by certname."""
    alive = masters.c.seen > func.now() - timedelta(seconds=DEAD)
    return dict(connection.execute(select(masters.c.certname, masters.c.problem).where(alive).order_by("certname")).all())


def read_snapshot(connection: Connection, keep_time: float) -> Snapshot:
    """
    Return what the rows say now, in one statement each.

    Args:
        keep_time: Seconds for which runs may use a version after it was replaced.
    """
    # Before the current versions: a deployment that ends in between counts as pending, which is harmless, rather than as none.
    pending = connection.execute(
        select(deployments.c.id, deployments.c.environment, deployments.c.version, deployments.c.adopt)
        .where(deployments.c.state == "pending")
        .order_by(deployments.c.id)
    )
    all_pending = [Pending(*row) for row in pending]
    age = func.extract("epoch", func.now() - environments.c.switched_at)
    of_current = select(
        environments.c.environment,
        environments.c.version,
        environments.c.deployment,
        age,
        environments.c.is_rolling,
        deployments.c.adopt,
    )
    joined = environments.outerjoin(deployments, deployments.c.id == environments.c.deployment)
    rows = connection.execute(of_current.select_from(joined)).all()
    current = {row[0]: Current(row[1], row[2]) for row in rows}
    ages = {row[0]: float(row[3]) for row in rows}
    rolling = {row[0] for row in rows if row[4]}
    adopted = {row[0] for row in rows if row[5]} | {each.environment for each in all_pending if each.adopt}
    is_current = select(environments).where(
        environments.c.environment == versions.c.environment, environments.c.version == versions.c.version
    )
    is_pending = select(deployments.c.id).where(
        deployments.c.environment == versions.c.environment, deployments.c.version == versions.c.version, deployments.c.state == "pending"
    )
    in_use = versions.c.replaced_at > func.now() - timedelta(seconds=keep_time)
    begins = select(environments).where(environments.c.deployment == versions.c.deployment, environments.c.is_rolling)
    is_needed = or_(is_current.exists(), is_pending.exists(), begins.exists(), _is_rolled_out(), in_use)
    wanted = connection.execute(select(*_DESCRIPTION).where(is_needed))
    return Snapshot(current, ages, rolling, adopted, all_pending, [Version(*row) for row in wanted])


def read_history(connection: Connection, environment: str) -> tuple[str | None, list[StoredVersion]]:
    """Return the current version of an environment, and all that were current, the one that was deployed first at the beginning."""
    current = connection.scalar(select(environments.c.version).where(environments.c.environment == environment))
    rows = connection.execute(
        select(*_DESCRIPTION, versions.c.deployed_at, versions.c.replaced_at)
        .where(versions.c.environment == environment, versions.c.deployment.is_not(None))
        .order_by(versions.c.deployment)
    )
    return current, [StoredVersion(Version(*row[:-2]), row[-2], row[-1]) for row in rows]


def add_version(connection: Connection, version: Version) -> None:
    """Describe a version, unless it is known; it becomes part of the history when it becomes current."""
    values = {column.name: getattr(version, column.name) for column in _DESCRIPTION}
    connection.execute(insert(versions).values(**values, deployed_at=func.now()).on_conflict_do_nothing())


def begin(
    connection: Connection,
    environment: str,
    version: str,
    who: str,
    *,
    is_new: bool = True,
    adopt: bool = False,
    is_rollout: bool = False,
) -> int:
    """
    Begin the switch to a version that is known, or with '' an environment's removal, and tell the masters; return its number.

    Args:
        is_rollout: The environment is not switched: a rollout may give runs the version afterwards.
        is_new: False: it is a rollback, which leaves the order of versions as it is.
        adopt: Whether folders that are in the place of the environment's link become versions.
    Raises:
        Unavailable: Another one of the environment is under way.
    """
    statement = insert(deployments).values(
        environment=environment,
        version=version,
        is_new=is_new,
        adopt=adopt,
        is_rollout=is_rollout,
        requested_by=who,
        requested_at=func.now(),
        state="pending",
        problem="",
    )
    # No conflict is named: a prepared statement has a parameter in the condition of the index, which PostgreSQL does not recognize.
    number = connection.scalar(statement.on_conflict_do_nothing().returning(deployments.c.id))
    if number is None:
        raise Unavailable(f"Another deployment of {environment} is under way", retry_after=60, hint="Try again when it has ended.")
    notify(connection, TOPIC)
    return int(number)


def answer(connection: Connection, deployment: int, certname: str, problem: str) -> None:
    """Say whether a master has the version of a pending deployment: '' when it has, else why not."""
    statement = insert(answers).values(deployment=deployment, certname=certname, problem=problem)
    connection.execute(
        statement.on_conflict_do_update(index_elements=[answers.c.deployment, answers.c.certname], set_={"problem": problem})
    )
    notify(connection, TOPIC)


def settle(connection: Connection, deployment: int, *, timeout: float, keep: int, keep_time: float) -> Settlement | None:
    """
    End a deployment if all living masters have answered, or its time is over; return its outcome, None while it is pending.

    The environment is switched if a living master has the version, or none lives; otherwise the deployment has failed.

    Args:
        timeout: Seconds for which answers are waited for; at least DEAD, since a master may rely on older rows until then.
        keep: The number of latest versions that stay known.
        keep_time: Seconds for which others stay known after their replacement.
    """
    overdue = deployments.c.requested_at < func.now() - timedelta(seconds=max(timeout, DEAD))
    row = connection.execute(
        select(deployments, overdue.label("overdue")).where(deployments.c.id == deployment).with_for_update()
    ).one_or_none()
    if row is None:
        return Settlement("the deployment is unknown", {})
    said = dict(connection.execute(select(answers.c.certname, answers.c.problem).where(answers.c.deployment == deployment)).all())
    if row.state != "pending":
        return Settlement(row.problem, {name: problem for name, problem in said.items() if problem})
    living = living_masters(connection)
    if not row.overdue and any(name not in said for name in living):
        return None
    late = f"it did not have the version within {timeout:g} seconds"
    left_out = {name: problem for name in living if (problem := said.get(name, late))}
    problem = "no master has the version" if living and len(left_out) == len(living) else ""
    for name in left_out.keys() - said.keys():
        answer(connection, deployment, name, late)
    connection.execute(
        update(deployments).where(deployments.c.id == deployment).values(state="failed" if problem else "done", problem=problem)
    )
    if not problem:
        (_begin_rollout if row.is_rollout else _switch)(connection, row)
    _forget(connection, row.environment, keep=keep, keep_time=keep_time)
    notify(connection, TOPIC)
    return Settlement(problem, left_out)


def _switch(connection: Connection, row: Any) -> None:
    """Make the version of a deployment the environment's current one."""
    version, here = row.version or None, versions.c.environment == row.environment
    replaced = select(environments.c.version).where(environments.c.environment == row.environment).scalar_subquery()
    of_replaced = update(versions).where(here, versions.c.version == replaced, versions.c.version != row.version)
    connection.execute(of_replaced.values(replaced_at=func.now()))
    values = {"version": version, "deployment": row.id, "switched_at": func.now(), "is_rolling": False}
    statement = insert(environments).values(environment=row.environment, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=[environments.c.environment], set_=values))
    if version is None:
        connection.execute(delete(versions).where(here))
        for table in (runs, rollouts, rollout_predictions):
            connection.execute(delete(table).where(table.c.environment == row.environment))
        return
    order = {"deployment": row.id} if row.is_new else {}
    connection.execute(update(versions).where(here, versions.c.version == version).values(replaced_at=None, **order))


def _begin_rollout(connection: Connection, row: Any) -> None:
    """Have no master answer from memory in an environment any more, for a rollout may give runs the version of a deployment."""
    here = environments.c.environment == row.environment
    connection.execute(update(environments).where(here).values(deployment=row.id, is_rolling=True))
    of_version = versions.c.environment == row.environment, versions.c.version == row.version
    connection.execute(update(versions).where(*of_version).values(deployment=row.id, replaced_at=None))


def end_rollout(connection: Connection, environment: str, version: str) -> None:
    """Have new runs get the environment's current version again, after a rollout of another version; nothing if it is current now."""
    is_rolling = update(environments).where(environments.c.environment == environment, environments.c.is_rolling)
    # Runs may be under way that began with the other version, as after a switch.
    if connection.execute(is_rolling.values(is_rolling=False, switched_at=func.now())).rowcount:
        of_version = versions.c.environment == environment, versions.c.version == version
        connection.execute(update(versions).where(*of_version).values(replaced_at=func.now()))
        notify(connection, TOPIC)


def _is_rolled_out() -> ColumnElement[bool]:
    rolls_out = rollouts.c.environment == versions.c.environment, rollouts.c.after == versions.c.version, rollouts.c.is_active
    return select(rollouts).where(*rolls_out).exists()


def _forget(connection: Connection, environment: str, *, keep: int, keep_time: float) -> None:
    """Delete the rows of old versions, ended runs and deployments of long ago."""
    here, long_ago = versions.c.environment == environment, func.now() - timedelta(seconds=keep_time)
    latest = select(versions.c.version).where(here, versions.c.deployment.is_not(None)).order_by(versions.c.deployment.desc()).limit(keep)
    is_current = versions.c.version == select(environments.c.version).where(environments.c.environment == environment).scalar_subquery()
    is_old = and_(versions.c.version.not_in(latest), or_(versions.c.replaced_at.is_(None), versions.c.replaced_at <= long_ago))
    connection.execute(delete(versions).where(here, is_old, is_current.is_not(True), ~_is_rolled_out()))
    connection.execute(delete(runs).where(runs.c.environment == environment, runs.c.began < long_ago))
    connection.execute(
        delete(deployments).where(
            deployments.c.environment == environment,
            deployments.c.state != "pending",
            deployments.c.requested_at < func.now() - _REMEMBERED,
        )
    )


_DESCRIPTION = (
    versions.c.environment,
    versions.c.version,
    versions.c.commit,
    versions.c.ref,
    versions.c.repository,
    versions.c.modules,
    versions.c.digest,
)
