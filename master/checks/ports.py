"""Check that the master can listen on its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from httpd.connections.listener import listening_socket
from httpd.connections.plain import occupation_of
from shared.process.daemon import PidFile
from shared.settings import MasterSettings

from .findings import Finding

AREA: Final = "ports"


def check(settings: MasterSettings) -> Iterator[Finding]:
    """Yield the ports that cannot be had; those of a master that runs already, by the pid file, are not tried."""
    if PidFile(settings.pidfile).running() is not None:
        return
    addresses = [("masterport", settings.bindaddress, settings.masterport)]
    if settings.metrics_port:
        addresses.append(("metrics_port", settings.metrics_bindaddress, settings.metrics_port))
    if settings.runs_store:
        if settings.store_port:
            addresses.append(("store_port", settings.store_bindaddress, settings.store_port))
        if settings.store_plain_port:
            addresses.append(("store_plain_port", settings.store_plain_bindaddress, settings.store_plain_port))
        if (problem := occupation_of(settings.store_socket)) is not None:
            hint = "A store may run there by itself, or a master with another pidfile; the setting is store_socket."
            yield Finding(AREA, "error", f"Cannot listen at {settings.store_socket}: {problem}", hint)
    with ExitStack() as opened:  # all at once, so that two settings with the same port are noticed
        for name, host, port in addresses:
            try:
                opened.enter_context(listening_socket(host, port))
            except OSError as err:
                hint = f"Another program may use the port, or the address is not one of this host; the setting is {name}."
                yield Finding(AREA, "error", f"Cannot listen on {host} port {port}: {err.strerror or err}", hint)
