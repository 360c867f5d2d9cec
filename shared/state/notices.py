"""Notices between masters: what one has changed in the database, the others read at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import psycopg
from sqlalchemy import Connection, make_url, text

from ..database.postgresql import connect_arguments, session_options
from ..errors import Unavailable
from .database import LIMITS

log = logging.getLogger("puppet.state")

POLL = 10.0
"""Seconds after which listeners look for themselves, since a notice is lost while the connection is."""

_CHANNEL = "bunraku_state"

Listener = Callable[[], Awaitable[None]]


def notify(connection: Connection, topic: str) -> None:
    """Tell all masters, the own one too, that something of a topic has changed; they hear it when the transaction is committed."""
    connection.execute(text("SELECT pg_notify(:channel, :topic)"), {"channel": _CHANNEL, "topic": topic})


class Notices:
    """
    Calls the listeners of a topic when it has changed, and every `poll` seconds in any case; a listener looks for itself what is new.

    A listener that fails is one error in the log; it is called again at the next turn. The absence of the database is none.
    """

    def __init__(self, address: str, *, poll: float = POLL) -> None:
        url = make_url(address).set(drivername="postgresql")
        self._address = url.render_as_string(hide_password=False)
        self._poll = poll
        self._listeners: dict[str, list[Listener]] = {}

    def on(self, topic: str, listener: Listener) -> None:
        """Have `listener` called when the topic has changed, from the next turn on."""
        self._listeners.setdefault(topic, []).append(listener)

    async def keep_listening(self) -> None:
        """Listen until cancelled; connect again after each loss."""
        was_away = False
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._address, autocommit=True, **connect_arguments(LIMITS, session_options(LIMITS))
                ) as connection:
                    async with asyncio.timeout(LIMITS.write_timeout):  # a server that is frozen accepts connections
                        await connection.execute(f"LISTEN {_CHANNEL}".encode())
                    if was_away:
                        log.warning("The database of the masters' state is back")
                        was_away = False
                    await self._call(set(self._listeners))  # of what was said before this connection
                    while True:
                        await self._call(await self._heard(connection))
            except (psycopg.Error, OSError) as err:
                if not was_away:
                    log.error("Notices of other masters cannot be heard: %s", str(err).partition("\n")[0])
                    was_away = True
                await asyncio.sleep(min(1.0, self._poll))

    async def _heard(self, connection: psycopg.AsyncConnection) -> set[str]:
        """Return the topics of the next notices; all of them when none comes within the poll's time."""
        topics = {notice.payload async for notice in connection.notifies(timeout=self._poll, stop_after=1)}
        return topics or set(self._listeners)

    async def _call(self, topics: set[str]) -> None:
        for listener in [each for topic in sorted(topics) for each in self._listeners.get(topic, ())]:
            try:
                await listener()
            except Unavailable as err:
                log.info("A change of the masters' state is followed later: %s", err.message)
            except Exception:
                log.exception("A change of the masters' state could not be followed")
