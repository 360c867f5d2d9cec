"""The agent: it checks whether a run may take place, verifies the connection, does the run, and returns the exit code."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shared.clock import utc_now
from shared.errors import ConfigError, PeerError, PuppetError, text_with_hint
from shared.failpoints import failpoint
from shared.indirector.routes import read_routes
from shared.process.log import NOTICE, level_of
from shared.settings import AgentSettings

from ..run.lock import DisabledLock, RunLock
from ..run.steps import StepObserver as StepObserver
from ..run.steps import Steps
from ..servers.srv import SrvLookup

if TYPE_CHECKING:
    from certs.verify import Revocation
    from shared.models.report import Report

    from ..bootstrap import BootstrapOptions
    from ..run.deferred import ResolverFactory
    from ..run.run import CatalogSource
    from ..run.wiring import Wiring
    from ..servers.server import DialectCache
    from ..servers.sites import ExchangeObserver as ExchangeObserver
    from ..servers.tls import Verifier
    from ..state.runlog import RunLog

log = logging.getLogger("puppet.agent")
CLIENT = "Puppet configuration client"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """
    The options of a run that are not settings.

    Attributes:
        environment_given: The environment is on the command line.
        environment_configured: The environment is on the command line or in puppet.conf.
        waitforcert: The seconds of --waitforcert; None: it is not on the command line.
        deferring: Makes the resolver of deferred values; None: they cannot be resolved.
        catalog: Retrieves the catalog; None: from the master, as every run does.
        sends_log: The master that has ordered the run, whose id is the job_id, wants to know what it logs.
    """

    environment_given: bool = False
    environment_configured: bool = False
    waitforcert: int | None = None
    deferring: ResolverFactory | None = None
    catalog: CatalogSource | None = None
    sends_log: bool = False


@dataclass(eq=False, repr=False)
class Agent:
    """
    The agent of one host, which does its runs.
    Args:
        on_step, on_exchange: called with each step and each HTTP exchange; for the demo and for tests.
        began: The monotonic time at which the process started.
        srv: Looks up SRV records; None: with the system's DNS, when the settings say so.
    """

    settings: AgentSettings
    options: RunOptions = field(default_factory=RunOptions)
    _: KW_ONLY
    on_step: StepObserver | None = None
    on_exchange: ExchangeObserver | None = None
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    tell: Callable[[str], None] = print
    began: float = field(default_factory=time.monotonic)
    srv: SrvLookup | None = None
    report: Report | None = field(default=None, init=False)
    stopping: bool = field(default=False, init=False)
    applying: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._srv = self.srv or SrvLookup(self.settings.srv_domain)

    async def run_once(self) -> int:
        """Do one run if it may take place; return the exit code. Source: protocol reference 6.1, 6.4."""
        try:
            reason = await asyncio.to_thread(DisabledLock(self.settings.agent_disabled_lockfile).reason)
        except ConfigError as err:
            self._refuse(err)
            return 1
        if reason is not None:
            log.log(NOTICE, "Skipping run of %s; administratively disabled (Reason: '%s');", CLIENT, reason)
            log.log(NOTICE, "Use 'puppet agent --enable' to re-enable.")
            return 1
        from ..servers.server import DialectCache

        try:
            dialects = await asyncio.to_thread(DialectCache.load, self.settings.scheme, self.settings.statedir / "dialects.json")
            verifier = await self._bootstrap(dialects)
            return await self._locked(verifier, dialects)
        except PuppetError as err:
            self._refuse(err)
        except OSError as err:
            log.error("Could not run: %s", os_error_text(err))
        except Exception:
            log.exception("Could not run: the agent met an error that was not foreseen")
        return 1

    def _refuse(self, err: PuppetError) -> None:
        """Log why there was no run. A certificate that is not signed yet is no error: the message goes to standard output, as in Puppet."""
        from ..bootstrap.texts import NoCertificate

        if isinstance(err, NoCertificate):
            self.tell(str(err))
            if not self.settings.onetime:
                log.log(NOTICE, "%s", err)
            return
        log.error("%s", text_with_hint(err))

    async def _bootstrap(self, dialects: DialectCache) -> Verifier:
        from certs.files.ssldir import SslDir

        from ..bootstrap import Bootstrap
        from ..servers.http import HttpClient
        from ..servers.selection import locate_ca
        from ..servers.sites import Site

        settings = self.settings
        bootstrap = Bootstrap(
            SslDir.of(settings),
            Site(settings.ca_server, settings.ca_port),
            bootstrap_options(settings, self.options.waitforcert),
            lambda verifier: HttpClient.of(settings, verifier, self.on_exchange),
            dialects,
            now=self.now,
            sleep=self.sleep,
            tell=self.tell,
            locate=lambda: locate_ca(settings, srv=self._srv),
        )
        with Steps(self.on_step).step("certificates"):
            return await bootstrap.run()

    async def _locked(self, verifier: Verifier, dialects: DialectCache) -> int:
        settings = self.settings
        lock = RunLock(settings.agent_catalog_run_lockfile)
        waited = 0.0
        while not await asyncio.to_thread(lock.acquire):
            most = settings.maxwaitforlock
            if not settings.waitforlock or (most is not None and waited >= most):
                if waited:
                    log.log(NOTICE, "Exiting now because the maxwaitforlock timeout has been exceeded.")
                path = settings.agent_catalog_run_lockfile
                log.log(NOTICE, "Run of %s already in progress; skipping  (%s exists)", CLIENT, path)
                return 1
            log.info("Another puppet instance is already running; will try again in %d seconds.", settings.waitforlock)
            await self.sleep(settings.waitforlock)
            waited += settings.waitforlock
        try:
            failpoint("agent.locked")
            await self._tidy()
            return await self._run(verifier, dialects)
        finally:
            await asyncio.to_thread(lock.release)

    async def _tidy(self) -> None:
        from ..state.statefiles import remove_leftovers

        try:
            removed = await asyncio.to_thread(remove_leftovers, self.settings)
        except OSError as err:
            log.warning("Could not remove leftovers of a killed run: %s", err)
            return
        if removed:
            log.info("Removed %d temporary files that a killed run left behind", removed)

    async def _run(self, verifier: Verifier, dialects: DialectCache) -> int:
        from ..run.retrieval import Retrieval
        from ..run.run import AskedEnvironment, Run
        from ..run.wiring import Wiring
        from ..servers.http import HttpClient
        from ..servers.selection import ServerSelection
        from ..state.logbridge import print_line, record_logging
        from ..state.runlog import RunLog

        settings = self.settings
        runlog = RunLog(level=level_of(settings), printers=[print_line], now=self.now)
        routes = await asyncio.to_thread(read_routes, settings.route_file, "agent")
        steps = Steps(self.on_step)
        async with HttpClient.of(settings, verifier, self.on_exchange) as client:
            with record_logging(runlog):
                selection = ServerSelection.of(client, settings, srv=self._srv)
                files = None
                try:
                    settings, files = await selection.settings_with_servers(), await selection.site("fileserver")
                except PeerError as err:
                    log.error("%s", err)  # the cached catalog, if there is one, needs no server
                wiring = Wiring(settings, client, dialects, routes, environment=settings.environment, files=files)
                steps.metrics["startup_time"] = time.monotonic() - self.began
                run = Run(
                    wiring,
                    runlog,
                    steps,
                    asked=AskedEnvironment(
                        self.options.environment_given, settings.environment if self.options.environment_configured else None
                    ),
                    stop=lambda: self.stopping,
                    now=self.now,
                    deferring=self.options.deferring,
                    catalog=self.options.catalog or Retrieval.retrieve,
                )
                self.applying = True
                try:
                    async with self._sent_log(runlog, wiring):
                        outcome = await run.execute()
                finally:
                    self.applying = False
        self.report = outcome.report
        if settings.summarize:
            from ..transaction.summary import summary_text

            self.tell(summary_text(outcome.summary))
        if not outcome.completed:
            return 1
        return outcome.bits if settings.detailed_exitcodes else 0

    def _sent_log(self, runlog: RunLog, wiring: Wiring) -> AbstractAsyncContextManager[None]:
        """Return the context in which the master gets what the run logs, if it wants to."""
        if not self.options.sends_log:
            return nullcontext()
        from ..run.orderlog import sent_while_it_lasts

        return sent_while_it_lasts(self.settings.job_id, runlog, wiring.server)


def os_error_text(err: OSError) -> str:
    """Return the system's error about a file, with a remedy for missing permissions."""
    text = f"{err.strerror}: {err.filename}" if err.filename else str(err)
    return f"{text}. Run it as root (sudo)." if isinstance(err, PermissionError) else text


def bootstrap_options(settings: AgentSettings, waitforcert: int | None = None) -> BootstrapOptions:
    """Return the options of the bootstrap. With `onetime` it does not wait for the certificate, unless --waitforcert is given."""
    from certs.keys import KeyKind

    from ..bootstrap import BootstrapOptions

    revocation: Revocation = False if settings.certificate_revocation == "false" else settings.certificate_revocation
    patience = waitforcert if waitforcert is not None else 0 if settings.onetime else settings.waitforcert
    return BootstrapOptions(
        environment=settings.environment,
        waitforcert=patience,
        maxwaitforcert=settings.maxwaitforcert,
        waitforlock=settings.waitforlock,
        ca_fingerprint=settings.ca_fingerprint,
        revocation=revocation,
        key=KeyKind(settings.key_type, settings.keylength, settings.named_curve),
        dns_alt_names=settings.dns_alt_names,
        csr_attributes=settings.csr_attributes,
        oid_mapping=settings.trusted_oid_mapping_file,
        ca_refresh=settings.ca_refresh_interval,
        crl_refresh=settings.crl_refresh_interval,
        renewal=settings.hostcert_renewal_interval,
        expire_warning=settings.certificate_expire_warning,
    )


def splay_seconds(settings: AgentSettings, chance: Callable[[], float] = random.random) -> float:
    """Return the seconds to wait before the first run: 0 without `splay`."""
    return chance() * settings.splaylimit if settings.splay else 0.0


def state_directories(settings: AgentSettings) -> tuple[list[Path], list[Path]]:
    """Return the directories to create when they are missing, and those that are only checked when they exist."""
    created = [
        settings.vardir,
        settings.statedir,
        settings.publicdir,
        settings.client_datadir,
        settings.clientyamldir,
        settings.clientbucketdir,
        settings.pluginfactdest,
    ]
    # Plugin sync makes plugindest readable for all: a master on this host, which is not root, has it as its libdir.
    checked = [settings.confdir, settings.ssldir, settings.certdir, settings.privatekeydir, settings.rundir, settings.plugindest]
    return list(dict.fromkeys(created)), [path for path in dict.fromkeys(checked) if path.is_symlink() or path.exists()]
