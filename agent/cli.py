"""`puppet agent`: options, the daemon, one run. Source: command line reference 2.1."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from shared import VERSIONS
from shared.errors import ConfigError, NotFound, PuppetError, Unsupported
from shared.filesystem.identity import digest_of
from shared.process import log as logs
from shared.process.cli import DEBUGGING, CommandOptions, flag, optional_text, run_main, text
from shared.process.command import CommandSpec
from shared.process.daemon import take_priority
from shared.process.processes import end_with_parent
from shared.process.service import make_room
from shared.process.systemd import Notifier
from shared.settings import AgentSettings, Conf, MasterSettings, load, path_names, read, read_conf, unknown_settings

from .process import process_environment
from .run.lock import DisabledLock

if TYPE_CHECKING:
    from shared.orders import RunOrder

    from .process.agent import Agent, RunOptions
    from .process.daemon import WaitResult
    from .run.deferred import ResolverFactory
    from .run.steps import FinishedStep

log = logging.getLogger("puppet.agent")

TEST = {
    "onetime": True,
    "daemonize": False,
    "verbose": True,
    "show_diff": True,
    "splay": False,
    "usecacheonfailure": False,
    "detailed_exitcodes": True,
}

_MAX_RESULT = 64 * 1024  # bytes, of waiting for an order


@dataclass(frozen=True, slots=True)
class AgentOptions(CommandOptions):
    """The options that are not settings."""

    test: bool = flag("one run in the foreground, with info messages, diffs and detailed exit codes; no cached catalog", "-t")
    disable: str | None = optional_text("REASON", "forbid runs on this machine until --enable")  # the reason may be ''
    enable: bool = flag("allow runs again after --disable")
    fingerprint: bool = flag("print the digest of the certificate, or of its request")
    digest: str = text("NAME", "with --fingerprint: SHA256 (the default), SHA1, …", default="SHA256")
    version: bool = flag("print the version", "-V")
    client: bool = flag(None, default=True, negatable=True)
    listen: bool = flag(None)


COMMAND = CommandSpec(
    "agent",
    AgentOptions,
    (AgentSettings,),
    usage=[
        "[--test] [--onetime] [--noop] [--verbose | --debug] [--server HOST] [--SETTING VALUE ...]",
        "--disable [REASON] | --enable | --fingerprint [--digest NAME]",
    ],
    text="Fetches this machine's catalog from a master of Puppet 3.8 to 8 and applies it; without options as a daemon, every runinterval.",
    setting_docs={
        "--onetime": "one run; with --no-daemonize in the foreground",
        "--noop": "only print the changes that would be made",
        "--server HOST": "the master; --masterport PORT, --ca_server HOST, --environment NAME, --certname NAME as well",
        "--waitforcert SEC, -w": "seconds between two requests for the certificate; 0: do not wait",
        "--tags A,B": "only resources with one of these tags; --skip_tags C leaves some out",
        "--fqdn NAME, -f": "another name for --certname",
        "--job-id ID": "a name of this run, for the master and the report",
        "--summarize": "print the run's numbers; --evaltrace how long each resource took, --steps how long each step of the run",
        "--logdest DEST, -l": "console, syslog, journal, or files' absolute paths; comma-separated",
    },
    aliases={**DEBUGGING, "-l": "--logdest", "-f": "--certname", "--fqdn": "--certname", "-w": "--waitforcert"},
    notes="""Exit codes: 0 the run took place; 1 it did not (no catalog, disabled, another run, no certificate); with --detailed-exitcodes
    2 changes, 4 failures, 6 both.""",
)


def parse(argv: Sequence[str]) -> tuple[AgentOptions, dict[str, Any]]:
    """Return the options of a command line, and the settings in it; raise ConfigError for words that are neither."""
    options, flags = COMMAND.parse(argv)
    if options.listen:
        raise Unsupported(
            "The option --listen of puppet agent is not supported", hint="Start runs with USR1, or with puppet agent --onetime."
        )
    if options.arguments:
        raise ConfigError(f"The puppet agent command does not take parameters: {options.arguments[0]}", hint="Try 'puppet agent --help'.")
    return options, {**TEST, **flags} if options.test else flags


def _show_step(step: FinishedStep) -> None:
    """Print one line for a step that has ended."""
    print(f"Step: {step.name:<14} {step.seconds * 1000:8.1f} ms  {step.detail}".rstrip(), flush=True)


def main(argv: Sequence[str] | None = None, *, deferring: ResolverFactory | None = None) -> int:
    """
    Run `puppet agent …`; return the exit code.

    Args:
        deferring: Makes the resolver of deferred values; None: catalogs with such values cannot be applied.
    """
    import setproctitle  # before the environment is cleaned, beside which it looks for the process' arguments

    setproctitle.getproctitle()
    # A run makes many objects and drops few: with the default thresholds, collections took a tenth of its time and freed nothing.
    gc.set_threshold(100_000, 50, 100)
    process_environment.prepare_process(os.environ)
    return run_main(lambda: run(list(sys.argv[1:] if argv is None else argv), deferring))


def set_process_title(title: str) -> None:
    """
    Set the title that `ps` shows, and the name of the process.

    A Ruby agent on the same host breaks the lock of a run whose process is not named `puppet` or `puppet-…` (the name, not the title).
    """
    import setproctitle

    setproctitle.setproctitle(title)
    setproctitle.setthreadtitle("puppet-agent")


def run(argv: list[str], deferring: ResolverFactory | None = None) -> int:
    """Run the command; return its exit code, or raise PuppetError when it cannot start."""
    options, flags = parse(argv)
    if options.help or options.version:
        print(COMMAND.help() if options.help else VERSIONS)
        return 0
    settings, conf, problems = load_settings(flags)
    foreground = settings.onetime or not settings.daemonize
    make_room(settings)
    set_up_logs(settings, foreground=foreground)
    for sentence in problems:
        log.warning("%s", sentence)
    process_environment.set_search_path(settings.path, os.environ)
    take_priority(settings.priority)
    if options.enable or options.disable is not None:
        return _enable_or_disable(settings, options)
    if options.fingerprint:
        return _print_fingerprint(settings, options.digest)
    if not options.client:
        if settings.onetime:
            raise _NothingToDo("onetime is specified but there is no client")
        raise Unsupported("Without its client an agent has nothing to do here", hint="Leave --no-client out.")
    from .process.agent import os_error_text, state_directories

    created, checked = state_directories(settings)
    process_environment.secure_directories([*created, *checked], process_environment.public_directory_modes(settings))
    run_options = _run_options(settings, flags, conf, deferring)
    if settings.daemonize and not settings.onetime:
        _go_to_background(settings)
    set_process_title("puppet agent")
    _hear_hangups(argv, onetime=settings.onetime)
    if settings.onetime:
        return run_once(settings, run_options)
    try:
        return _serve(settings, flags, run_options, argv)
    except (PuppetError, OSError) as err:  # a process in the background has no standard error
        log.error("Could not run: %s", os_error_text(err) if isinstance(err, OSError) else err)
        return 1


def _hear_hangups(argv: Sequence[str], *, onetime: bool) -> None:
    """
    Restore the effect of HUP, which is off during the start of this process: bin/puppet ignores it for a daemon, and `__main__` blocks
    it.
    """
    if signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return
    if not any(word == "-t" or word.startswith(("--test", "--onetime")) for word in argv):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if onetime:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class _NothingToDo(ConfigError):
    """The error of --onetime with --no-client."""


def load_settings(flags: dict[str, Any]) -> tuple[AgentSettings, Conf, list[str]]:
    """
    Return the settings, the file they came from, and a sentence for each problem in it.

    A file with errors is ignored completely, with a sentence that says so.
    """
    try:
        conf = read_conf(AgentSettings, section="agent", flags=flags)
        settings = load(AgentSettings, section="agent", flags=flags, conf=conf)
    except ConfigError as err:
        if err.where is None:
            raise
        without_file = load(AgentSettings, section="agent", flags=flags, conf=Conf())
        return without_file, Conf(without_file.config), [f"{err}; the whole file is left out"]
    problems = unknown_settings(conf, AgentSettings)
    if problems:  # a master on the same host may have its settings in that file
        problems = unknown_settings(conf, AgentSettings, MasterSettings)
    return settings, conf, problems


def set_up_logs(settings: AgentSettings, *, foreground: bool) -> None:
    """Set up logs: to the console in the foreground, to syslog otherwise, unless `logdest` names destinations."""
    logs.set_up_by(settings, foreground=foreground, ident="puppet-agent")


def _enable_or_disable(settings: AgentSettings, options: AgentOptions) -> int:
    lock = DisabledLock(settings.agent_disabled_lockfile)
    if options.enable:
        lock.enable()
    else:
        lock.disable(options.disable or "")
    return 0


def _print_fingerprint(settings: AgentSettings, digest: str) -> int:
    from certs.files.ssldir import SslDir

    from .bootstrap import fingerprint_text

    try:
        print(fingerprint_text(SslDir.of(settings), digest))
    except NotFound as err:
        print(err, file=sys.stderr)
        return 1
    return 0


def _run_options(settings: AgentSettings, flags: Mapping[str, Any], conf: Conf, deferring: ResolverFactory | None) -> RunOptions:
    from .process.agent import RunOptions

    on_command_line = "environment" in flags
    in_file = any("environment" in conf.section(name) for name in ("main", "agent"))
    patience = settings.waitforcert if "waitforcert" in flags else None
    return RunOptions(on_command_line, on_command_line or in_file, patience, deferring)


def process_age() -> float:
    """Return the seconds since this process was started or forked; 0 when the system does not report it."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return 0.0


def run_once(settings: AgentSettings, run_options: RunOptions) -> int:
    """Do one run in this process; return the exit code."""
    import uvloop

    from .process.agent import Agent

    agent = Agent(settings, run_options, began=time.monotonic() - process_age(), on_step=_show_step if settings.steps else None)
    return uvloop.run(run_until_signalled(agent))


async def run_until_signalled(agent: Agent) -> int:
    """
    Do a run that INT and TERM end in order; return the exit code.

    The signal ends the run between two resources while it applies the catalog, and at once before that. A second signal ends it at once.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(agent.run_once())

    def stop(name: str) -> None:
        log.log(logs.NOTICE, "Caught %s; exiting", name)
        if not agent.applying or agent.stopping:
            task.cancel()
        agent.stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, signal.Signals(number).name.removeprefix("SIG"))
    try:
        return await task
    except asyncio.CancelledError:
        return 1


def _go_to_background(settings: AgentSettings) -> None:
    from shared.process import daemon

    other = daemon.PidFile(settings.pidfile).running()
    if other is not None:
        raise ConfigError(f"An agent is running already, as process {other}", hint=f"Stop it, or remove {settings.pidfile}.")
    daemon.to_background()


def _serve(settings: AgentSettings, flags: dict[str, Any], run_options: RunOptions, argv: list[str]) -> int:
    """Run the daemon, from its pid file to its end; return the exit code."""
    from shared.process.daemon import PidFile

    from .process.agent import splay_seconds
    from .process.daemon import WATCHED, Daemon, DaemonActions, reap_child, wait_for_signal

    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    pidfile = PidFile(settings.pidfile)
    pidfile.write()
    watch = _ConfigFile(flags, settings)
    Notifier().ready("waiting for the next run")

    def start_run(current: AgentSettings, order: RunOrder | None) -> int:
        child = os.fork()
        if child:
            return child
        _run_in_child(*(ordered(current, run_options, order) if order else (current, run_options)))

    def restart() -> None:
        pidfile.remove()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED - {signal.SIGHUP})
        foreground = [] if "--no-daemonize" in argv else ["--no-daemonize"]  # this process is in the background already
        logged = ["--logdest", "syslog"] if foreground and not settings.logdest else []
        program = ["bunraku", "agent"] if run_options.deferring else ["agent"]
        # The last of several options counts: these repeat, as absolute paths, those that were relative to the directory that the
        # daemon has left.
        paths = [f"--{name}={flags[name]}" for name in path_names(AgentSettings) if name in flags]
        isolated = "-I" if sys.flags.isolated else "-P"
        os.execv(sys.executable, [sys.executable, isolated, "-m", *program, *argv, *paths, *foreground, *logged])  # noqa: S606

    waiting = _WaitingChild()
    actions = DaemonActions(
        start_run=start_run,
        start_waiting=waiting.start,
        wait_result=waiting.result,
        reload=watch.reload_if_changed,
        reopen_logs=lambda: set_up_logs(settings, foreground=not settings.daemonize),
        restart=restart,
        wait=wait_for_signal,
        reap=reap_child,
    )
    try:
        return Daemon(settings, actions, splay=splay_seconds(settings)).run()
    finally:
        pidfile.remove()


def ordered(settings: AgentSettings, options: RunOptions, order: RunOrder) -> tuple[AgentSettings, RunOptions]:
    """Return settings and options of a run that the master has ordered: it can ask for less than they say, and never ends a noop mode."""
    changes: dict[str, object] = {"job_id": order.id}
    if order.noop:
        changes["noop"] = True
    if order.tags:
        changes["tags"] = order.tags
    if order.environment:
        changes["environment"] = order.environment
        options = replace(options, environment_given=True, environment_configured=True)
    return settings.model_copy(update=changes), replace(options, sends_log=order.log)


class _WaitingChild:
    """The process that waits for an order. It writes its result to a pipe, whose other end the daemon reads when it has ended."""

    def __init__(self) -> None:
        self._results = -1

    def start(self, settings: AgentSettings, last: str) -> int | None:
        """Start it; return its pid, or None when this host has no certificate to wait with, or no room for another process."""
        if not settings.localcacert.exists() or not settings.hostcert.exists():
            return None
        self._results, results = os.pipe()
        try:
            child = os.fork()
        except OSError as err:
            log.warning("Could not wait for orders of the master: %s", err)
            os.close(self._results)
            return None
        else:
            if not child:
                _wait_in_child(settings, last, results)
            return child
        finally:
            os.close(results)

    def result(self) -> WaitResult | None:
        """Return how waiting has ended; None for a child that was killed."""
        from .process.daemon import WaitResult

        with os.fdopen(self._results, "rb") as file:
            text = file.read(_MAX_RESULT)
        return WaitResult.decoded(text) if text else None


def _wait_in_child(settings: AgentSettings, last: str, results: int) -> NoReturn:
    """Wait for an order in a forked process, write the result, and end that process."""
    from .process.daemon import CANNOT_WAIT, WATCHED, WaitResult
    from .process.orders import wait_for_order

    try:
        end_with_parent(signal.SIGTERM)  # an order would be lost without the daemon
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        set_process_title("puppet agent: waiting for orders")
        try:
            result = wait_for_order(settings, last)
        except Exception:
            log.exception("Waiting for orders ended with an error that was not foreseen")
            result = WaitResult(pause=CANNOT_WAIT)
        os.write(results, result.encoded())
    finally:
        os._exit(0)


def _run_in_child(settings: AgentSettings, run_options: RunOptions) -> NoReturn:
    """Do a run in a forked process, and end that process."""
    from .process.daemon import WATCHED

    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        set_process_title("puppet agent: applying configuration")
        code = run_once(settings, run_options)
    except MemoryError:
        code = 254
    except Exception:
        log.exception("The run ended with an error that was not foreseen")
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class _ConfigFile:
    """puppet.conf, read again when it changes. A file with errors leaves the settings as they are."""

    def __init__(self, flags: dict[str, Any], settings: AgentSettings) -> None:
        self.flags = flags
        self.path = settings.config
        self.seen = digest_of(self.path)

    def reload_if_changed(self) -> AgentSettings | None:
        """Return new settings when the file has changed and can be read; else None."""
        digest = digest_of(self.path)
        if digest == self.seen:
            return None
        self.seen = digest
        try:
            settings = load(AgentSettings, section="agent", flags=self.flags, conf=read(self.path))
        except ConfigError as err:
            log.error("Not using the new %s: %s", self.path, err)
            return None
        log.log(logs.NOTICE, "Config file %s changed; using its new settings", self.path)
        return settings
