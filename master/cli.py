"""`puppet master`: options, the daemon, `--compile`. Source: command line reference 2.3."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence

from shared import __version__, daemon
from shared import log as logs
from shared.errors import ConfigError, PuppetError
from shared.plainjson import dumps_pretty
from shared.settings import AgentSettings, MasterSettings, flags_of, load, read, unknown

log = logging.getLogger("puppet.master")

HELP = """Usage: puppet master [--no-daemonize] [--verbose | --debug] [--logdest DEST] [--SETTING VALUE ...]
       puppet master --compile NODE

Serves catalogs, files and certificates to agents of Puppet 3.8 to 8, over TLS, on port 8140. The first start makes a certificate
authority in $ssldir/ca, unless there is one.

  --no-daemonize      stay in the foreground and log to the console
  --compile NODE, -c  print the catalog of a node as JSON, with the facts that are stored for it
  --masterport PORT   listen on another port (0: any free one, which is logged)
  --verbose, --debug  say more
  --logdest DEST      console, syslog, or a file's absolute path
  --version, --help

Every setting of puppet.conf is an option; `puppet config print --section master` shows them all.

Exit codes: 0 ended as asked, 1 could not start, 30 a compile failed, 39 could not change to the user."""

CHANGED_USER, COMPILE_FAILED = 39, 30


def main(argv: Sequence[str] | None = None) -> int:
    """Run `puppet master …`; the exit code."""
    try:
        return run(list(sys.argv[1:] if argv is None else argv))
    except PuppetError as err:
        print(f"Error: {err}", file=sys.stderr)
        if err.hint:
            print(err.hint, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Cancelling startup", file=sys.stderr)
        return 0


def run(argv: list[str]) -> int:
    """The command itself; PuppetError when it cannot start."""
    flags, left = flags_of(argv, MasterSettings, shorts={"-v": "--verbose", "-d": "--debug", "-l": "--logdest"})
    node = ""
    while left:
        word = left.pop(0)
        if word in ("--help", "-h"):
            print(HELP)
            return 0
        if word in ("--version", "-V"):
            print(__version__)
            return 0
        if word in ("--compile", "-c") and left:
            node = left.pop(0)
        elif word.startswith("--compile="):
            node = word.partition("=")[2]
        elif word.startswith("-"):
            raise ConfigError(f"Could not parse application options: invalid option: {word}", hint="Try 'puppet master --help'.")
        else:
            raise ConfigError(f"The puppet master command does not take parameters: {word}", hint="Try 'puppet master --help'.")
    settings = load(MasterSettings, section="master", flags=flags)
    foreground = bool(node) or not settings.daemonize
    destination = settings.logdest or ("console" if foreground else "syslog")
    logs.set_up(
        level=logs.wanted_level(debug=settings.debug, verbose=settings.verbose, log_level=settings.log_level),
        destinations=destination.split(","),
        colour=settings.color,
        ident="puppet-master",
        facility=settings.syslogfacility,
    )
    for sentence in unknown(read(settings.config), MasterSettings, AgentSettings):
        log.warning("%s", sentence)
    return compile_node(settings, node) if node else serve(settings)


def serve(settings: MasterSettings) -> int:
    """Become what the settings ask for, then answer until a signal comes."""
    import setproctitle
    import uvloop

    from .wiring import folders

    os.umask(0o027)
    if os.geteuid() == 0 and settings.user != "root":
        try:
            uid, gid = daemon.account(settings.user, settings.group)
            daemon.own(folders(settings), uid, gid)
            daemon.become(uid, gid, settings.user)
        except (ConfigError, OSError) as err:
            log.error("%s", err)
            print(getattr(err, "hint", ""), file=sys.stderr)
            return CHANGED_USER
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
        return uvloop.run(until_signalled(settings))
    except PuppetError as err:
        log.error("%s", err)
        if err.hint:
            log.error("%s", err.hint)
        return 1
    except OSError as err:
        log.error("Could not run: %s", err)
        return 1
    finally:
        pidfile.remove()


async def until_signalled(settings: MasterSettings) -> int:
    """A master from start to a clean stop: TERM and INT stop it, a second one cuts what is still under way."""
    from .wiring import running

    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    again = asyncio.Event()

    def stop(name: str) -> None:
        log.log(logs.NOTICE, "Caught %s; %s", name, "stopping at once" if asked.is_set() else "stopping")
        (again if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, signal.Signals(number).name)
    loop.add_signal_handler(signal.SIGHUP, lambda: log.log(logs.NOTICE, "Caught HUP; files are read again when they change"))
    async with running(settings) as master:
        log.log(logs.NOTICE, "Serving Puppet on %s port %s as %s", master.host, master.port, settings.certname)
        await asked.wait()
        stopping = asyncio.create_task(master.stop(settings.drain_timeout))
        impatient = asyncio.create_task(again.wait())
        await asyncio.wait({stopping, impatient}, return_when=asyncio.FIRST_COMPLETED)
        impatient.cancel()
        if not stopping.done():
            stopping.cancel()
            await master.stop(0)
    return 0


def compile_node(settings: MasterSettings, node: str) -> int:
    """Print a node's catalog; COMPILE_FAILED with the error on standard error."""
    from .wiring import local_catalog

    try:
        catalog = asyncio.run(local_catalog(settings, node))
    except PuppetError as err:
        log.error("%s", err)
        log.error("Failed to compile catalog for node %s", node)
        return COMPILE_FAILED
    sys.stdout.buffer.write(dumps_pretty(catalog))
    return 0
