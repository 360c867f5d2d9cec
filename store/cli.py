"""`puppet db` without an action: the store as a process of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from shared.errors import ConfigError, text_with_hint
from shared.process import daemon
from shared.process import log as logs
from shared.process.cli import DEBUGGING, CommandOptions, parse_options
from shared.process.logqueue import queued
from shared.process.memory import use_single_malloc_arena
from shared.process.service import make_room
from shared.settings import MasterSettings, load

from .process.service import StopRequest, exit_code, serve

log = logging.getLogger("puppet.store")

CHANGED_USER = 39
DEFAULTS = {"store": "sqlite", "store_port": "8081"}
"""The defaults of a store that runs by itself."""

THREADS = 16


def main(argv: Sequence[str]) -> int:
    """Run `puppet db …` without an action; return the exit code. Raise PuppetError when the store cannot start."""
    options, flags = parse_options(CommandOptions, "db", argv, MasterSettings, aliases=DEBUGGING)
    if options.arguments:
        raise ConfigError(f"The puppet db command does not take parameters: {options.arguments[0]}", hint="Try 'puppet db --help'.")
    settings = load(MasterSettings, section="master", flags=flags, application=DEFAULTS)
    if settings.store in ("none", "puppetdb"):
        raise ConfigError(f"There is no store with 'store = {settings.store}'", hint="Give --store sqlite, or the address of a database.")
    make_room(settings, {settings.store_dir: 0o700})
    logs.set_up_by(settings, foreground=not settings.daemonize, ident="puppet-db")
    return run(settings)


def run(settings: MasterSettings) -> int:
    """Take the account and place that the settings ask for, then serve until a signal comes; return the exit code."""
    import setproctitle
    import uvloop

    use_single_malloc_arena()
    os.umask(0o077)
    daemon.take_priority(settings.priority)
    if not become_service_account(settings):
        return CHANGED_USER
    pidfile = daemon.PidFile(settings.store_pidfile)
    if settings.daemonize:
        if (other := pidfile.running()) is not None:
            raise ConfigError(f"A store is running already, as process {other}", hint=f"Stop it, or remove {settings.store_pidfile}.")
        daemon.to_background()
    setproctitle.setproctitle("puppet db")
    try:
        pidfile.write()
        with queued(settings.log_queue) as queues:
            code = exit_code(lambda: uvloop.run(serve(settings, StopRequest(), THREADS)))
    finally:
        pidfile.remove()
    if queues.stuck:
        os._exit(code)  # an orderly end waits for the destination that nobody reads
    return code


def become_service_account(settings: MasterSettings) -> bool:
    """
    Give up root for the account in the settings, which gets the folders; return whether it succeeded, otherwise after an error in the
    log.
    """
    if os.geteuid() != 0 or settings.user == "root":
        return True
    try:
        uid, gid = daemon.account(settings.user, settings.group)
        daemon.own(dict.fromkeys((settings.vardir, settings.logdir, settings.rundir), 0o750) | {settings.store_dir: 0o700}, uid, gid)
        daemon.become(uid, gid, settings.user)
        daemon.require_program(settings.user, (Path(__file__), Path(sys.executable)))
    except (ConfigError, OSError) as err:
        log.error("%s", text_with_hint(err))
        return False
    return True
