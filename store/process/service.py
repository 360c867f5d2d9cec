"""A store from its start to a clean stop: listeners, database, queue, signals, notifications to systemd."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from httpd.dispatch.admission import Admission
from shared.clock import microseconds_now
from shared.errors import PuppetError, text_with_hint
from shared.process.daemon import hear_hangups
from shared.process.log import NOTICE
from shared.process.memory import collect_garbage_forever, freeze_loaded_objects
from shared.process.supervision import Supervisor, wait_for_first
from shared.process.systemd import Notifier
from shared.process.threads import PacedThreads
from shared.settings import MasterSettings

from ..endpoints.application import StoreApplication
from ..endpoints.metrics import StoreMetrics
from .listeners import Listeners, read_access
from .rooms import Rooms
from .tasks import CARRY_OUT, COLLECT_GARBAGE, NOTIFY_SYSTEMD, RELOAD, STORE_TASKS

log = logging.getLogger("puppet.store")

TASK_FAILED = 70  # EX_SOFTWARE of sysexits.h
"""The exit code of a store that could not continue."""

_YOUNG_OBJECTS = 50_000
"""
The collector runs after this many new objects. A catalog makes thousands that live until it is stored, and looking at them again and
again took a tenth of its time; the event loop may wait for some milliseconds.
"""


@dataclass(slots=True)
class StopRequest:
    """
    The request to stop the process.

    Attributes:
        requested: Set by the first request: those under way get drain_timeout.
        repeated: Set by the second one: they are cut.
    """

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    repeated: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self, why: str) -> None:
        """Request a stop, or an immediate stop at the second call."""
        log.log(NOTICE, "%s; %s", why, "stopping at once" if self.requested.is_set() else "stopping")
        (self.repeated if self.requested.is_set() else self.requested).set()


async def serve(settings: MasterSettings, request: StopRequest, threads: int, on_ready: Callable[[], None] = lambda: None) -> int:
    """
    Run a store until its stop is requested, by a signal or otherwise; return the exit code.

    TERM and INT stop it, HUP reads certificates and the list of certnames again.

    Args:
        threads: For the disk, and for what computes long.
        on_ready: Is called once the store listens and its database is open, or could not be opened yet.
    Raises:
        ConfigError: A setting or a file has to be corrected first.
    """
    supervisor, notifier, hup = Supervisor(STORE_TASKS), Notifier(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(PacedThreads(loop, threads, "worker"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request.stop, f"Caught {signal.Signals(number).name}")
    loop.add_signal_handler(signal.SIGHUP, hup.set)
    hear_hangups()
    access = await asyncio.to_thread(read_access, settings)
    rooms = Rooms(settings, supervisor)
    metrics = StoreMetrics(rooms.population, rooms.command_counts)
    active, queued = settings.store_active_requests, settings.store_queued_requests
    admission = Admission(active, queued, 2 * active + queued, settings.max_retry_delay, lambda most: min(most, 30))
    application = StoreApplication(admission, access, microseconds_now)
    listeners = Listeners(application, settings, metrics, supervisor)
    try:
        places = await listeners.start()
        supervisor.start(CARRY_OUT, lambda: rooms.keep_open(application, metrics))
        supervisor.start(RELOAD, lambda: _reload_on_hup(settings, listeners, application, hup))
        supervisor.start(
            COLLECT_GARBAGE,
            lambda: collect_garbage_forever(lambda: not listeners.open_connections, lambda: listeners.is_idle, _YOUNG_OBJECTS),
        )
        status = f"Serving the store at {', '.join(places)}"
        log.log(NOTICE, "%s", status)
        freeze_loaded_objects()
        await wait_for_first(rooms.attempted, request.requested, supervisor.gave_up)
        notifier.ready(status)
        on_ready()
        if notifier.watchdog:
            supervisor.start(NOTIFY_SYSTEMD, lambda: notifier.watch(lambda: supervisor.is_sound))
        await wait_for_first(request.requested, supervisor.gave_up)
        if supervisor.gave_up.is_set():
            log.critical("%s; this store exits, so that it can be restarted", supervisor.reason)
        notifier.stopping()
        await _stop(listeners, settings.drain_timeout, request.repeated)
    finally:
        await listeners.stop(0)
        await supervisor.stop(CARRY_OUT, COLLECT_GARBAGE, NOTIFY_SYSTEMD, RELOAD)
    return TASK_FAILED if supervisor.gave_up.is_set() else 0


async def _stop(listeners: Listeners, drain: float, impatient: asyncio.Event) -> None:
    """Let requests under way end within `drain` seconds, or until `impatient` is set."""
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(listeners.stop(drain))
        waiting = group.create_task(impatient.wait())
        await asyncio.wait((stopping, waiting), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        waiting.cancel()


async def _reload_on_hup(settings: MasterSettings, listeners: Listeners, application: StoreApplication, hup: asyncio.Event) -> None:
    """Run until cancelled: on each HUP read everything again that can be."""
    while True:
        await hup.wait()
        hup.clear()
        log.log(NOTICE, "Caught HUP; reloading certificates, revocations and the list of certnames")
        try:
            application.access = await asyncio.to_thread(read_access, settings)
            await listeners.reload()
        except PuppetError as err:
            log.error("Some files could not be reloaded; the old content stays in force: %s", text_with_hint(err))


def exit_code(serving: Callable[[], int]) -> int:
    """Return the exit code of `serving`; log an error that ends it."""
    try:
        return serving()
    except PuppetError as err:
        log.error("The store could not start: %s", text_with_hint(err))
        return 1
    except OSError as err:
        log.error("The store could not run: %s", err)
        return 1
    except Exception:
        log.critical("The store exits because of an unexpected error", exc_info=True)
        return TASK_FAILED
