"""Pushes that a web hook has reported to any of several masters: rows, each of which one master deploys."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.process.supervision import wait_for_event
from shared.state.database import StateAway, StateDatabase
from shared.state.notices import notify
from shared.state.tables import pushes

from .delivery import Deploy, carry_out, other_branch_waits, too_many_wait
from .rows import BEAT, TOPIC, living_masters


@dataclass(eq=False, repr=False)
class SharedPushes:
    """
    The queue of deployments of all masters, as `DeploymentQueue` is that of one: what this master has taken it deploys one after another.

    A push stays in the queue until it was deployed. What a master has taken that has died, another one takes.

    Args:
        deploy: Deploys; see `Deploy`.
        most: How many may wait.
        certname: This master.
    """

    database: StateDatabase
    deploy: Deploy
    most: int
    certname: str
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def add(self, environment: str, ref: str) -> None:
        """Queue a deployment; see DeploymentQueue. StateAway while the database cannot be used."""
        await self.database.run(lambda connection: self._add(connection, environment, ref))

    async def hear(self) -> None:
        """Have the queue looked at now, because it may have changed."""
        self._changed.set()

    async def work(self) -> None:
        """Carry out queued deployments, forever."""
        while True:
            self._changed.clear()
            with suppress(StateAway):  # which the other users of the database log
                while (push := await self.database.run(self._take)) is not None:
                    await self._carry_out(push)
            await wait_for_event(self._changed, BEAT)

    async def _carry_out(self, push: Row[int, str, str, str | None]) -> None:
        await carry_out(self.deploy, push.environment, push.ref)
        # If the database is away now it is deployed once more, which changes nothing if it was.
        await self.database.run(lambda connection: self._end(connection, push.id))

    def _add(self, connection: Connection, environment: str, ref: str) -> None:
        waiting = pushes.c.taken_by.is_(None)
        kind = pushes.c.environment == environment, (pushes.c.ref == "") == (ref == ""), waiting
        before = connection.scalar(select(pushes.c.ref).where(*kind))
        if before is None and (connection.scalar(select(func.count()).where(waiting)) or 0) >= self.most:
            raise too_many_wait(self.most)
        if before is None:
            added = insert(pushes).values(environment=environment, ref=ref).on_conflict_do_nothing()
            connection.execute(added)
            before = connection.scalar(select(pushes.c.ref).where(*kind))  # another master may have been faster
            notify(connection, TOPIC)
        if before not in (None, ref):
            raise other_branch_waits(environment, before, ref)

    def _take(self, connection: Connection) -> Row[int, str, str, str | None] | None:
        """Take the oldest push of an environment to which no living master deploys; None when there is none."""
        query = select(pushes.c.id, pushes.c.environment, pushes.c.ref, pushes.c.taken_by).order_by(pushes.c.id).with_for_update()
        queued = connection.execute(query).all()
        others = living_masters(connection).keys() - {self.certname}  # what is taken by us was not ended
        busy = {push.environment for push in queued if push.taken_by in others}
        found = next((push for push in queued if push.environment not in busy), None)
        if found is not None:
            connection.execute(update(pushes).where(pushes.c.id == found.id).values(taken_by=self.certname))
        return found

    def _end(self, connection: Connection, number: int) -> None:
        connection.execute(delete(pushes).where(pushes.c.id == number))
        notify(connection, TOPIC)
