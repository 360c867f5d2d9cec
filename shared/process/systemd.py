"""Notifications to systemd (sd_notify); without systemd nothing is sent. Source: sd_notify(3)."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping


class Notifier:
    """
    Tells the service manager that is named in `environ`, if there is one.

    `watchdog`: seconds within which systemd expects each notification; 0: none.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        place = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + place[1:] if place.startswith("@") else place
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environ.get("WATCHDOG_USEC", "")
        self.watchdog = int(microseconds) / 1e6 if mine and microseconds.isascii() and microseconds.isdigit() else 0.0

    def ready(self, status: str) -> None:
        self._tell("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1", "STATUS=stopping")

    async def watch(self, is_sound: Callable[[], bool]) -> None:
        """Run until cancelled: tell the manager in time that the event loop runs, as long as `is_sound` says that the process does."""
        while True:
            if is_sound():
                self._tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog / 2)

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as telling:
                telling.settimeout(1.0)
                telling.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return  # the manager is gone; it will find out itself how we are
