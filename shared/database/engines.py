"""What all engines need, whichever database they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event


def prepare_connections(engine: Engine, prepare: Callable[[Any], None]) -> None:
    """Have `prepare` called with each new connection of an engine's driver; the connection is closed if it raises."""

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        try:
            prepare(connection)
        except BaseException:
            connection.close()  # the pool does not have it yet
            raise
