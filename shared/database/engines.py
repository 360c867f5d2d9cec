"""What all engines need, whichever database they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event


def prepare_connections(engine: Engine, prepare: Callable[[Any, Any], None]) -> None:
    """Have `prepare` called with each new connection of an engine's driver and the pool's record of it, and close it if that raises."""

    @event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        try:
            prepare(connection, record)
        except BaseException:
            connection.close()  # the pool does not have it yet
            raise
