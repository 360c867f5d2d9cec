"""
Waiting for an order to run (`puppet run`): one idle request to the master, in a small process beside the daemon.

It ends with an order, or when the master takes no agents that wait; lost connections are opened again here. It blocks and uses the
standard library's client: that of runs takes 13 MB more, which every machine would spend all the time.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlencode

from shared.data import plainjson
from shared.errors import BadData, PeerError, PuppetError
from shared.orders import LONGEST_WAIT, MAX_BODY, ORDERS, RunOrder
from shared.settings import AgentSettings

from ..servers.bodies import retry_after
from ..servers.sites import Proxy, Site, headers_of
from ..servers.tls import Verifier
from .daemon import WaitResult

log = logging.getLogger("puppet.agent")

SPREAD: Final = 60.0
"""Seconds over which agents come back to a master that they have lost."""
LONGEST_PAUSE: Final = 600.0
UNKNOWN: Final = 3600.0
"""Seconds after which a master is asked again that takes no agents that wait."""


def wait_for_order(
    settings: AgentSettings, last: str, *, sleep: Callable[[float], None] = time.sleep, chance: Callable[[], float] = random.random
) -> WaitResult:
    """Wait for an order; `last` is the id of the last one that was carried out, '' for none. Blocks."""
    seconds = max(1, int(min(LONGEST_WAIT, settings.http_read_timeout * 0.8)))
    target = f"{ORDERS}?{urlencode({'seconds': seconds, **({'last': last} if last else {})})}"
    pause = SPREAD
    while True:
        try:
            with closing(MasterConnection(settings, _site(settings))) as connection:
                while (result := _ask(connection, settings, target, chance)) is None:
                    pause = SPREAD
                if result.order is not None or result.pause >= UNKNOWN / 2:
                    return result
                delay = result.pause
        except (PuppetError, HTTPException, OSError) as err:
            log.debug("Could not wait for an order of the master: %s", err)
            delay, pause = chance() * pause, min(2 * pause, LONGEST_PAUSE)
        sleep(delay)


class MasterConnection(HTTPSConnection):
    """A connection to a master, whose certificate is checked in every respect before a request is sent, also when it is opened again."""

    def __init__(self, settings: AgentSettings, site: Site) -> None:
        self._site, self._verifier, self._read_timeout = site, Verifier.of(settings), settings.http_read_timeout
        context, proxy = self._verifier.context(), Proxy.of(settings)
        if settings.ciphers:
            context.set_ciphers(settings.ciphers)
        host, port = (proxy.host, proxy.port) if proxy.serves(site.host) else (site.host, site.port)
        source = (settings.sourceaddress, 0) if settings.sourceaddress else None
        super().__init__(host, port, context=context, timeout=settings.http_connect_timeout, source_address=source)
        if proxy.serves(site.host):
            self.set_tunnel(site.host, site.port, proxy.options(site.host).get("proxy_headers"))

    def connect(self) -> None:
        """Open the connection; raise PeerNotTrusted, BadData, OSError."""
        super().connect()
        try:
            certificate = self.sock.getpeercert(binary_form=True)
            self._verifier.check(certificate or b"", self._site.host, self._verifier.trust())
            self.sock.settimeout(self._read_timeout)
        except BaseException:
            self.close()
            raise


def _site(settings: AgentSettings) -> Site:
    """Return the master to wait at; raise PeerError when none of server_list answers."""
    if not settings.server_list and not settings.use_srv_records:
        return Site(settings.server, settings.masterport)
    from ..servers.http import HttpClient
    from ..servers.selection import ServerSelection

    async def select() -> Site:
        async with HttpClient.of(settings, Verifier.of(settings)) as client:
            return await ServerSelection.of(client, settings).site("puppet")

    return asyncio.run(select())


def _ask(connection: MasterConnection, settings: AgentSettings, target: str, chance: Callable[[], float]) -> WaitResult | None:
    """Return the result of one request; None when there was no order in its time. Raise PeerError when the master cannot answer."""
    connection.request("GET", target, headers={**headers_of(settings), "Accept": "application/json", "Accept-Encoding": "identity"})
    answer = connection.getresponse()
    body = answer.read(MAX_BODY)
    if answer.length:
        raise PeerError("The master's answer breaks off, or is too long")
    if answer.status == 204:
        return None
    if answer.status == 200:
        try:
            return WaitResult(RunOrder.of(plainjson.loads(body)))
        except BadData as err:
            log.warning("The master sent an order that is none: %s", err)
    elif answer.status in (429, 503) and (wait := retry_after(answer.headers.get("Retry-After", ""), time.time())) is not None:
        return WaitResult(pause=min(wait, settings.http_longest_wait) + chance())
    elif answer.status >= 500:
        raise PeerError(f"The master answered {answer.status}")
    else:
        log.debug("The master takes no agents that wait for orders: it answered %d", answer.status)
    return WaitResult(pause=UNKNOWN * (0.5 + chance()))
