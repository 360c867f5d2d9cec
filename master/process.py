"""The master as a process: account, pid file, background, signals, notifications to systemd."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from environments.first import prepare_environments
from language.codegen.codecache import renew
from shared.data import plainyaml
from shared.errors import ConfigError, PuppetError, text_with_hint
from shared.filesystem.files import open_for_appending
from shared.process import daemon
from shared.process import log as logs
from shared.process.daemon import hear_hangups
from shared.process.log import NOTICE
from shared.process.logqueue import LogQueues, queued
from shared.process.memory import collect_garbage_forever, freeze_loaded_objects, use_single_malloc_arena
from shared.process.supervision import Supervisor, wait_for_first
from shared.process.systemd import Notifier
from shared.process.threads import PacedThreads
from shared.settings import MasterSettings

from .observability.longtasks import COLLECT_GARBAGE, MEASURE_LOOP, NOTIFY_SYSTEMD, RELOAD, master_supervisor
from .pools.process_pool import processors
from .puppetdb.choice import store_choice
from .service.folders import written_folders
from .service.hard_end import GRACE, HardEnd

if TYPE_CHECKING:
    from .observability.metrics import Metrics
    from .wiring import Master

log = logging.getLogger("puppet.master")

CHANGED_USER = 39
TASK_FAILED = 70  # EX_SOFTWARE of sysexits.h
SWITCH = 0.001  # seconds after which a thread that computes gives way to the event loop; Python lets it go on for 5 ms
Reread = Callable[[], MasterSettings]


def serve(settings: MasterSettings, reread: Reread) -> int:
    """
    Take the account and place that the settings ask for, then serve until a signal comes; return the exit code.

    Args:
        reread: Reads the settings from their file again, for a HUP.
    """
    import setproctitle
    import uvloop

    use_single_malloc_arena()
    os.umask(0o027)
    prepare_environments(settings)  # before root's rights are given up: the code belongs to the administrator
    daemon.take_priority(settings.priority)
    if not become_service_account(settings):
        return CHANGED_USER
    if settings.accesslog:
        logs.set_apart("puppet.access", settings.accesslog, ident="puppet-master-access", facility=settings.syslogfacility)
    pidfile = daemon.PidFile(settings.pidfile)
    if settings.daemonize:
        if (other := pidfile.running()) is not None:
            raise ConfigError(
                f"A master is running already, as process {other}", hint=f"Stop it, or remove {settings.pidfile} if that is something else."
            )
        daemon.to_background()
    setproctitle.setproctitle("puppet master")
    try:
        pidfile.write()
        sys.setswitchinterval(SWITCH)
        with queued(settings.log_queue) as queues:
            end = HardEnd(queues, pidfile.remove)
            code = exit_code(lambda: uvloop.run(until_signalled(settings, reread, log_queues=queues, end_within=end.arm)))
    finally:
        pidfile.remove()
    if queues.stuck:
        os._exit(code)  # an orderly end waits for the destination that nobody reads
    return code


def take_service_account(settings: MasterSettings) -> None:
    """Give up root for the account in the settings, which gets the folders; ConfigError, OSError when that cannot be done."""
    if os.geteuid() != 0:
        return
    uid, gid = (0, 0) if settings.user == "root" else daemon.account(settings.user, settings.group)
    renew(settings.code_cache, uid, gid)
    if uid == 0:
        return
    daemon.own(written_folders(settings), uid, gid)
    if settings.auditlog.startswith("/") and Path(settings.auditlog).parent.is_dir():
        os.close(open_for_appending(Path(settings.auditlog), owner=(uid, gid)))
    daemon.become(uid, gid, settings.user)
    daemon.require_program(settings.user, (Path(__file__), Path(sys.executable)))


def become_service_account(settings: MasterSettings) -> bool:
    """Return whether this process could change to the account in the settings; otherwise the log has the reason."""
    try:
        take_service_account(settings)
    except (ConfigError, OSError) as err:
        log.error("%s", text_with_hint(err))
        return False
    return True


def exit_code(serving: Callable[[], int]) -> int:
    """Return the exit code of `serving`; log an error that ends it."""
    try:
        return serving()
    except PuppetError as err:
        log.error("%s", text_with_hint(err))
        return 1
    except OSError as err:
        log.error("Could not run: %s", err)
        return 1
    except Exception:
        log.critical("The master exits because of an unexpected error", exc_info=True)
        return TASK_FAILED


async def until_signalled(
    settings: MasterSettings,
    reread: Reread,
    supervisor: Supervisor | None = None,
    log_queues: LogQueues | None = None,
    *,
    end_within: Callable[[float], object] = lambda seconds: None,
) -> int:
    """
    Run a master from start to a clean stop; return the exit code, which is TASK_FAILED when the master could not continue.

    TERM and INT stop it: requests under way get drain_timeout, a second signal cuts them. HUP reads files again, which requests under
    way do not notice.

    Args:
        end_within: Is called when a stop begins, with the seconds after which the process must have ended (see HardEnd).
    """
    from .wiring import running

    supervisor = supervisor or master_supervisor()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(PacedThreads(loop, min(32, processors() + 4), "worker"))
    notifier = Notifier()
    stop_requested, second_signal, hup = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def stop(name: str) -> None:
        log.log(NOTICE, "Caught %s; %s", name, "stopping at once" if stop_requested.is_set() else "stopping")
        end_within(GRACE if stop_requested.is_set() else settings.drain_timeout + GRACE)
        (second_signal if stop_requested.is_set() else stop_requested).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, signal.Signals(number).name)
    loop.add_signal_handler(signal.SIGHUP, lambda: None if stop_requested.is_set() else hup.set())
    hear_hangups()
    async with running(settings, supervisor) as master:
        log.log(NOTICE, "%s", store_choice(settings))
        status = f"Serving Puppet on {master.host} port {master.port} as {settings.certname}"
        log.log(NOTICE, "%s", status)
        queues = log_queues or LogQueues()
        queues.handlers["audit log: refused requests"] = master.refusals.queue
        describe_logs(master.metrics, queues)
        plainyaml.load_reader()
        freeze_loaded_objects()
        notifier.ready(status)
        supervisor.start(MEASURE_LOOP, master.metrics.watch_loop)
        supervisor.start(COLLECT_GARBAGE, lambda: collect_garbage_forever(lambda: not master.http.open_connections, lambda: master.is_idle))
        if notifier.watchdog:
            supervisor.start(NOTIFY_SYSTEMD, lambda: notifier.watch(lambda: supervisor.is_sound))
        supervisor.start(RELOAD, lambda: reload_on_hup(master, settings, reread, hup, notifier, status))
        try:
            await wait_for_first(stop_requested, supervisor.gave_up)
            if supervisor.gave_up.is_set():
                log.critical("%s; this master exits, so that it can be restarted", supervisor.reason)
                end_within(settings.drain_timeout + GRACE)
            notifier.stopping()
            await stop_master(master, settings.drain_timeout, second_signal)
        finally:
            await supervisor.stop(MEASURE_LOOP, COLLECT_GARBAGE, NOTIFY_SYSTEMD, RELOAD)
    return TASK_FAILED if supervisor.gave_up.is_set() else 0


def describe_logs(metrics: Metrics, queues: LogQueues) -> None:
    """Add the queues of the logs to the metrics."""
    doc = "Lines that a destination of the logs lacks, as it was too slow or refused them."
    metrics.read("puppet_log_lines_dropped_total", "counter", doc, queues.drops, "destination")
    metrics.read("puppet_log_lines_waiting", "gauge", "Pending lines of a log destination.", queues.waits, "destination")


async def stop_master(master: Master, drain: float, second_signal: asyncio.Event) -> None:
    """Let requests under way end within `drain` seconds, or until `second_signal` is set, and cut the rest."""
    stopping = asyncio.create_task(master.stop(drain))
    impatient = asyncio.create_task(second_signal.wait())
    await asyncio.wait({stopping, impatient}, return_when=asyncio.FIRST_COMPLETED)
    impatient.cancel()
    if stopping.done():
        await stopping  # raises what the stop raised
    else:
        stopping.cancel()
        await master.stop(0)


async def reload_on_hup(
    master: Master, settings: MasterSettings, reread: Reread, hup: asyncio.Event, notifier: Notifier, status: str
) -> None:
    """Run until cancelled: on each HUP read everything again that can be."""
    while True:
        await hup.wait()
        hup.clear()
        log.log(NOTICE, "Caught HUP; reloading certificates, revocations, rules and environments")
        notifier.reloading()
        try:
            await master.reload()
            for name in await asyncio.to_thread(changed_settings, settings, reread):
                log.warning("The setting %s has changed; it counts from the next start on", name)
            log.log(NOTICE, "Reloaded everything")
        except PuppetError as err:
            log.error("Some files could not be reloaded; the old content stays in force: %s", text_with_hint(err))
        notifier.ready(status)


def changed_settings(settings: MasterSettings, reread: Reread) -> list[str]:
    """Return the names of the settings whose values in the file have changed. Blocks."""
    new = reread()
    return [name for name in type(settings).model_fields if getattr(new, name) != getattr(settings, name)]
