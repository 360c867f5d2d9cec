"""What an ordered run logs, sent to its master while the run lasts (`puppet run --log`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from shared.data import plainjson
from shared.errors import PuppetError
from shared.indirector.paths import Outgoing
from shared.models.report import Log
from shared.orders import MAX_LINE, MAX_LINES, ORDERS, RunLines

from ..servers.server import Server
from ..state.runlog import RunLog

log = logging.getLogger("puppet.agent")

PAUSE: Final = 0.5
"""Seconds between two looks at the log."""
_PATIENCE: Final = 10.0  # seconds for which an answer is awaited


@asynccontextmanager
async def sent_while_it_lasts(order: str, runlog: RunLog, server: Server, pause: float = PAUSE) -> AsyncIterator[None]:
    """Send the lines of a run's log to the server until the context ends; what is not sent by then comes with the report."""
    task = asyncio.create_task(_keep_sending(order, runlog, server, pause), name="order log")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_sending(order: str, runlog: RunLog, server: Server, pause: float) -> None:
    """Send lines until the master wants none, or cannot be asked: then the report has to do."""
    sent = 0
    try:
        while True:
            await asyncio.sleep(pause)
            while lines := runlog.lines[sent : sent + MAX_LINES]:
                async with asyncio.timeout(_PATIENCE):
                    answer = await server.send(Outgoing("POST", ORDERS), {"Content-Type": "application/json"}, _body(order, sent, lines))
                if answer.status != 204:
                    return
                sent += len(lines)
    except (PuppetError, TimeoutError, OSError) as err:
        log.debug("Could not send what the run of order %s logs: %s", order, err)
    except Exception:
        log.exception("Could not send what the run of order %s logs: the agent met an error that was not foreseen", order)


def _body(order: str, first: int, lines: list[Log]) -> bytes:
    told = RunLines(order, first, tuple((line.level, line.source, line.message[:MAX_LINE]) for line in lines))
    return plainjson.dumps(told.to_data())
