"""
Waiting for an order to run (`puppet run`): one idle request to the master, in a small process beside the daemon.

It ends with an order, or when the master takes no agents that wait; lost connections are opened again here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlencode

from shared.data import plainjson
from shared.errors import BadData, PeerError, PuppetError
from shared.orders import LONGEST_WAIT, ORDERS, RunOrder
from shared.settings import AgentSettings

from ..servers.http import HttpClient, read_answer
from ..servers.selection import ServerSelection
from ..servers.sites import Site
from ..servers.tls import Verifier
from .daemon import WaitResult

log = logging.getLogger("puppet.agent")

SPREAD: Final = 60.0
"""Seconds over which agents come back to a master that they have lost."""
LONGEST_PAUSE: Final = 600.0
UNKNOWN: Final = 3600.0
"""Seconds after which a master is asked again that takes no agents that wait."""


async def wait_for_order(
    settings: AgentSettings,
    last: str,
    *,
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> WaitResult:
    """Wait for an order; `last` is the id of the last one that was carried out, '' for none."""
    pause = SPREAD
    while True:
        try:
            async with HttpClient.of(settings, Verifier.of(settings)) as client:
                site = await ServerSelection.of(client, settings).site("puppet")
                while True:
                    result = await _ask(client, site, last, min(LONGEST_WAIT, settings.http_read_timeout * 0.8), chance)
                    if result is not None:
                        return result
                    pause = SPREAD
        except (PuppetError, OSError) as err:
            log.debug("Could not wait for an order of the master: %s", err)
        await sleep(chance() * pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _ask(client: HttpClient, site: Site, last: str, seconds: float, chance: Callable[[], float]) -> WaitResult | None:
    """Return the result of one request; None when there was no order in its time. Raise PeerError when the master is not there."""
    query = urlencode({"seconds": max(1, int(seconds)), **({"last": last} if last else {})})
    answer = await read_answer(await client.request(site, "GET", f"{ORDERS}?{query}", {"Accept": "application/json"}))
    if answer.status == 204:
        return None
    if answer.status == 200:
        try:
            return WaitResult(RunOrder.of(plainjson.loads(answer.body)))
        except BadData as err:
            log.warning("%s sent an order that is none: %s", site, err)
    elif answer.status >= 500:
        raise PeerError(f"{site} answered {answer.status}")
    else:
        log.debug("%s takes no agents that wait for orders: it answered %d", site, answer.status)
    return WaitResult(pause=UNKNOWN * (0.5 + chance()))
