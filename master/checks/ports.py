"""Check that the master can listen on its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from httpd.listener import listening_socket
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
    for name, host, port in addresses:
        try:
            listening_socket(host, port).close()
        except OSError as err:
            hint = f"Another program may use the port, or the address is not one of this host; the setting is {name}."
            yield Finding(AREA, "error", f"Cannot listen on {host} port {port}: {err.strerror or err}", hint)
