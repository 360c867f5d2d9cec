"""A running master, put together from its settings: one readable place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ca import audit
from ca.audit import Audit
from ca.autosign import Autosign
from ca.configured import audit_of, ca_options, ca_store, key_kind
from ca.service import CaService
from ca.setup.bootstrap import bootstrap, ensure_own_certificate
from ca.storage.store import TOPIC, CaStore
from certs.files.ssldir import SslDir
from certs.oids import OidNames
from environments.directories import Environments
from environments.files.export_keys import ExportKeys
from environments.settings import environment_settings
from httpd.metrics import Samples
from httpd.options import ServerOptions
from httpd.peers import ProxyRules
from httpd.server import HttpServer
from shared.data import plainjson
from shared.errors import NotFound
from shared.indirector import Indirector
from shared.process.supervision import Supervisor
from shared.queue.spool import Spool, SpoolLimits
from shared.settings import MasterSettings
from shared.state.masters import SharedState
from shared.wire.dialects import MODERN

from .bindings import BindingOptions, bind, code_commands, local_runs, v4_catalogs
from .dependencies.recorder import CatalogRecorder
from .endpoints.app import HANDSHAKE_HINT, LISTEN_HINT, MasterApp
from .endpoints.ca import CaEndpoints
from .endpoints.deploy import DeployHook, read_secret
from .endpoints.limits import MasterLimits
from .endpoints.metrics import MetricsListener, describe_server
from .endpoints.preview import PreviewEndpoint
from .endpoints.puppetserver import ServerEndpoints
from .endpoints.rollouts import RolloutEndpoint
from .endpoints.routes import MasterAppOptions
from .endpoints.runs import RunEndpoint
from .endpoints.store import StoreProxy
from .observability.health import COMPILING, Condition, Health
from .observability.longtasks import (
    DEPLOY,
    DRAIN_STATE_QUEUE,
    FOLLOW_CODE,
    HEAR_OTHER_MASTERS,
    LOOK_AT_CODE,
    RECORD_DEPENDENCIES,
    RECORD_ORIGINS,
    REFRESH_CRL,
    REMOVE_LEFTOVERS,
    REMOVE_OLD_REPORTS,
    RENEW_CRL,
    RUN_STORE,
    SEND_ORDERS,
    WARN_OF_EXPIRIES,
    WATCH_HEALTH,
    WATCH_ROLLOUTS,
    master_supervisor,
)
from .observability.metrics import Metrics
from .observability.process_metrics import describe_process
from .orders.waiting import WaitingAgents
from .pools.body_parser import BodyParser
from .pools.compile_pool import CompilePool
from .pools.configured import compile_pool_for
from .pools.parse_pool import ParsePool
from .pools.process_pool import ProcessPool
from .preview.nodes import NodeSelector
from .preview.served import PreviewService
from .puppetdb.configured import puppetdb_client
from .puppetdb.queries import PuppetDbQueries
from .puppetdb.termini import PuppetDbCatalogs
from .service.conditions import conditions
from .service.crl_refresh import CrlRefresh
from .service.deployments import DeploymentQueue, deploy_by_program, run_deploy, start_by_program
from .service.expiry import Expiries, agent_endings, server_endings
from .service.folders import remove_leftovers
from .service.origins_file import OriginsFile
from .service.refusals import Refusals, queued_refusals
from .service.rollouts import rollout_watch
from .service.store_process import StoreProcess
from .termini.state import StateTermini
from .trust import trust_files

if TYPE_CHECKING:
    from .code.shared import SharedCode

log = logging.getLogger("puppet.master")

CODE = "code"
"""The condition that this master has the current versions of what it shares with others."""


@dataclass(slots=True)
class Master:
    """A running master; `host` and `port` are where it listens."""

    http: HttpServer
    indirector: Indirector
    environments: Environments
    compile_pool: CompilePool
    health: Health
    metrics: Metrics
    refusals: Refusals
    host: str
    port: int
    agents: WaitingAgents

    async def reload(self) -> None:
        """
        Read all files again: certificates, revocations, rules, mounts, environments; replace the compiling processes.

        Raises:
            PuppetError: A file cannot be read; its old content stays in force, the rest is new.
        """
        await self.environments.expire(None)
        self.compile_pool.processes.renew()
        try:
            await self.http.reload()
        finally:
            await self.compile_pool.processes.warm()

    @property
    def is_idle(self) -> bool:
        """True if no request is active but those of agents that wait for orders."""
        return self.http.active_requests <= len(self.agents.nodes)

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests in flight end within `drain` seconds, cut the rest; agents that wait come back to the next start."""
        self.agents.close()
        await self.http.stop(drain)


def open_ca(settings: MasterSettings, state: SharedState | None, report: Audit, supervisor: Supervisor) -> CaService:
    """Return the CA of this master; the first start creates it. Blocks, at the first start for seconds."""
    if settings.autosign is True:
        log.warning("autosign is true: every request is signed. Anybody who reaches this port gets a certificate.")
    own = SslDir.of(settings)
    authority = bootstrap(
        ca_store(settings, state),
        ca_options(settings),
        own,
        ca_name=settings.ca_name,
        dns_alt_names=settings.dns_alt_names,
        generate=key_kind(settings).generate,
        report=report,
    )
    service = CaService(authority, Autosign(settings.autosign, timeout=min(settings.command_timeout, 30)), supervisor=supervisor)
    names, generate = settings.dns_alt_names, key_kind(settings).generate
    service.renew_own = lambda: ensure_own_certificate(authority, own, dns_alt_names=names, generate=generate)
    return service


def server_options(settings: MasterSettings, limits: MasterLimits, oid_names: OidNames, **callbacks: Any) -> ServerOptions:
    """Return the options of the HTTP server; `callbacks` are those of ServerOptions."""
    proxy = ProxyRules.of(
        switched_on=settings.allow_header_cert_info,
        addresses=settings.proxy_addresses,
        dn=settings.ssl_client_header,
        verify=settings.ssl_client_verify_header,
    )
    return ServerOptions(
        trust_files(settings),
        limits,
        proxy=proxy,
        oid_names=oid_names,
        listen_hint=LISTEN_HINT,
        handshake_hint=HANDSHAKE_HINT,
        **callbacks,
    )


@asynccontextmanager
async def running(settings: MasterSettings, supervisor: Supervisor | None = None) -> AsyncIterator[Master]:
    """
    Run a master that listens for as long as the block runs.

    Args:
        supervisor: Watches the long tasks; it belongs to this master alone.
    Raises:
        ConfigError: A setting or a file has to be corrected first.
        OSError: The address cannot be listened on.
    """
    metrics = Metrics()
    describe_process(metrics)
    supervisor = supervisor or master_supervisor()
    metrics.read(
        "puppet_task_failures_total",
        "counter",
        "Unexpected failures of background tasks.",
        lambda: [((name,), count) for name, count in supervisor.failures.items()],
        "task",
    )
    trail = await asyncio.to_thread(audit_of, settings)

    def report(entry: dict[str, object]) -> None:
        audit.to_log(entry)
        trail(entry)
        metrics.count_decision(entry)

    with queued_refusals(trail, capacity=settings.log_queue) as refusals:
        async with _shared_state(settings, supervisor) as state:
            if settings.ca:
                metrics.start_ca(audit.ACTIONS)
                service = await asyncio.to_thread(open_ca, settings, state, report, supervisor)
                if service.store.is_shared:
                    metrics.read("puppet_crl_refreshed_seconds", "gauge", FOLLOWED_DOC, partial(_last_seen, service.store))
                async with service.running(), _serving(settings, service, state, metrics, refusals, trail, supervisor) as master:
                    yield master
                return
            async with _serving(settings, None, state, metrics, refusals, trail, supervisor) as master:
                yield master


FOLLOWED_DOC = "When this master last saw that its revocation list is that of the database, in seconds since the epoch; 0: never."


def _last_seen(store: CaStore) -> Samples:
    return [((), store.last_seen.timestamp() if store.last_seen is not None else 0.0)]


@asynccontextmanager
async def _shared_state(settings: MasterSettings, supervisor: Supervisor) -> AsyncIterator[SharedState | None]:
    """Open the state that this master shares with others, if the settings name one, and listen to their notices."""
    state = await asyncio.to_thread(SharedState.at, settings.state)
    if state is None:
        yield None
        return
    supervisor.start(HEAR_OTHER_MASTERS, state.notices.keep_listening)
    try:
        yield state
    finally:
        await supervisor.stop(HEAR_OTHER_MASTERS)
        await state.database.close()


@asynccontextmanager
async def _serving(
    settings: MasterSettings,
    ca: CaService | None,
    state: SharedState | None,
    metrics: Metrics,
    refusals: Refusals,
    trail: Audit,
    supervisor: Supervisor,
) -> AsyncIterator[Master]:
    environments = Environments(environment_settings(settings))
    if settings.runs_store:
        await asyncio.to_thread(ExportKeys(Path(settings.export_keys)).create)
    health = Health()
    async with AsyncExitStack() as ends:  # in the reverse order
        store = StoreProcess(settings) if settings.runs_store else None
        ends.push_async_callback(supervisor.stop, RUN_STORE)
        client = await asyncio.to_thread(puppetdb_client, settings, keep_alive=True, ready=store.wait_until_listening if store else None)
        ends.push_async_callback(client.close)  # what the store shall have is brought there first
        on_problem, on_question = partial(health.note, ProcessPool.CONDITION), PuppetDbQueries(client)
        recorder = CatalogRecorder.of(settings)
        records = None
        if recorder is not None:
            ends.push_async_callback(recorder.close)
            records = recorder.outlet.fileno()
        compile_pool = compile_pool_for(settings, environments, metrics, supervisor, on_problem, on_question=on_question, records=records)
        ends.push_async_callback(compile_pool.processes.close)
        parsers = ParsePool.of(settings)
        parsers.describe(metrics)
        ends.push_async_callback(parsers.close)
        parser = BodyParser(parsers)
        termini = await _state_termini(settings, state, ends)
        code = _shared_code(settings, environments, state, health) if state is not None else None
        agents = WaitingAgents(lambda: http.max_connections * 4 // 5)
        rollouts = rollout_watch(settings, environments, code, agents)
        runs = code.runs if code is not None else local_runs(settings, environments, rollouts)
        options = BindingOptions(parser=parser, client=client, state=termini, runs=runs, rollouts=rollouts, agents=agents)
        indirector = await asyncio.to_thread(bind, settings, environments, compile_pool, ca, options)
        v4 = await asyncio.to_thread(v4_catalogs, settings, environments, compile_pool, indirector, runs.version_for)
        limits = MasterLimits.of(settings)
        server = ServerEndpoints(environments, compile_pool.listing, v4, limits, code_commands(settings), parser)
        sizes = settings.store_max_archive, settings.store_max_command
        proxy = StoreProxy(settings.store_socket, *sizes, settings.store_query_timeout + 30) if store else None
        preview = PreviewService(settings, environments, indirector, client, on_question)
        previews = PreviewEndpoint(preview.lines, settings.max_previews) if settings.max_previews else None
        hook = await _deploy_hook(settings, code, supervisor, ends)
        rollout = RolloutEndpoint(rollouts.storage, start_by_program(settings))
        orders = RunEndpoint.of(agents, NodeSelector(indirector.facts, client), trail, state, supervisor)
        ends.push_async_callback(supervisor.stop, SEND_ORDERS)
        parts = (server, CaEndpoints(ca, limits) if ca else None, previews, rollout, orders, hook, proxy)
        served = MasterAppOptions(
            indirector,
            environments,
            metrics.text,
            limits,
            parser=parser,
            parts=[part for part in parts if part is not None],
            auth_conf=settings.rest_authconfig,
            filetimeout=settings.filetimeout,
            oid_names=OidNames.load(settings.trusted_oid_mapping_file),
            certname=settings.certname,
            health=health,
        )
        http = _http_server(settings, served, ca, metrics, refusals, supervisor)
        health.add(conditions(settings, compile_pool.processes, lambda: http.tls.trust, store, ca))
        if state is not None:
            _start_state_queue(settings, state, termini, health, metrics, supervisor, ends)
        health.describe(metrics)
        metrics.read("puppet_tasks", "gauge", "Tasks of the event loop.", lambda: [((), len(asyncio.all_tasks()))])
        if proxy is not None and store is not None:
            await ends.enter_async_context(proxy)
            supervisor.start(RUN_STORE, store.keep_running)
            await store.wait_until_open()
        if settings.metrics_port:
            collectors = MetricsListener(metrics.text, limits, (settings.certname, *settings.dns_alt_names))
            ends.push_async_callback(collectors.stop)
            await collectors.start(settings.metrics_bindaddress, settings.metrics_port)
        if code is not None:
            await code.follower.look_if_possible()
            ends.push_async_callback(supervisor.stop, LOOK_AT_CODE, FOLLOW_CODE)
            supervisor.start(LOOK_AT_CODE, code.follower.keep_looking)
            supervisor.start(FOLLOW_CODE, code.follower.keep_following)
        crl_refresh = await _crl_refresh(settings, metrics)
        ends.push_async_callback(http.stop, 0)
        agents.describe(metrics)
        ends.callback(agents.close)
        host, port = await http.start(settings.bindaddress, settings.masterport)
        await ends.enter_async_context(supervisor.stopping())
        record_file = OriginsFile.of(settings)
        ends.push_async_callback(asyncio.to_thread, record_file.write, compile_pool.origins)
        if recorder is not None:
            supervisor.start(RECORD_DEPENDENCIES, recorder.keep_written)
        rollouts.describe(metrics)
        supervisor.start(WATCH_ROLLOUTS, rollouts.keep_watch)
        supervisor.start(RECORD_ORIGINS, partial(record_file.keep_written, compile_pool.origins))
        _start_watches(settings, ca, state, http, health, metrics, crl_refresh, supervisor)
        yield Master(http, indirector, environments, compile_pool, health, metrics, refusals, host, port, agents)


async def _state_termini(settings: MasterSettings, state: SharedState | None, ends: AsyncExitStack) -> StateTermini:
    """Return the maker of termini on the masters' database, with the queue of reports; Unavailable: another master has that."""
    if state is None:
        return StateTermini(settings)
    limits = SpoolLimits(commands=settings.state_queue_entries, bytes=settings.state_queue_bytes)
    return StateTermini(settings, state, await ends.enter_async_context(Spool(settings.state_queue / "reports", limits)))


def _start_state_queue(
    settings: MasterSettings,
    state: SharedState,
    termini: StateTermini,
    health: Health,
    metrics: Metrics,
    supervisor: Supervisor,
    ends: AsyncExitStack,
) -> None:
    """Start to bring what waits to the masters' database, and to remove old reports there; tell of it."""
    from .service.state_queue import StateQueue

    queue = StateQueue(state.database, termini.pending_reports, termini.buckets)
    health.add([queue.condition()])
    health.details = queue.status
    queue.describe(metrics)
    supervisor.start(DRAIN_STATE_QUEUE, queue.keep_drained)
    if settings.state_report_ttl:
        supervisor.start(REMOVE_OLD_REPORTS, partial(queue.keep_removing, settings.state_report_ttl))
    ends.push_async_callback(supervisor.stop, DRAIN_STATE_QUEUE, REMOVE_OLD_REPORTS)


def _shared_code(settings: MasterSettings, environments: Environments, state: SharedState, health: Health) -> SharedCode:
    """Return the code that a master shares with others, and add to its health that it has the current versions."""
    from .code.follower import CodeProblem
    from .code.shared import SharedCode
    from .rollouts.rows import VERSION_OF_WAVE

    async def follow() -> list[CodeProblem]:
        result = await run_deploy(settings, ["--follow"], "make the code of other masters")
        return [CodeProblem(**problem) for problem in result["problems"]]

    code = SharedCode.of(settings, environments, state, follow, partial(health.note, CODE), VERSION_OF_WAVE)
    health.add([Condition(CODE, "The code of this master is behind that of the others", COMPILING, code.follower.condition)])
    return code


async def _deploy_hook(
    settings: MasterSettings, code: SharedCode | None, supervisor: Supervisor, ends: AsyncExitStack
) -> DeployHook | None:
    """Return the endpoint of the web hook, if it is configured, with its queue at work until the end; raise ConfigError for its secret."""
    if not settings.deploy_hook_secret:
        return None
    secret = Path(settings.deploy_hook_secret)
    await asyncio.to_thread(read_secret, secret)
    deploy = deploy_by_program(settings)
    queue = code.pushes(settings, deploy) if code is not None else DeploymentQueue(deploy, settings.deploy_hook_queue)
    supervisor.start(DEPLOY, queue.work)
    ends.push_async_callback(supervisor.stop, DEPLOY)
    return DeployHook(secret, settings.deploy_hook_environments, settings.environmentpath, queue.add, settings.max_hook_body)


def _http_server(
    settings: MasterSettings, served: MasterAppOptions, ca: CaService | None, metrics: Metrics, refusals: Refusals, supervisor: Supervisor
) -> HttpServer:
    """Return the server of the master's application, which does not listen yet."""
    application = MasterApp(served)
    options = server_options(
        settings,
        served.limits,
        served.oid_names,
        on_crl_expired=ca.refresh_crl_if_due if ca else None,
        on_answer=metrics.count_answer,
        on_refused=refusals.record,
    )
    http = HttpServer(application, options, supervisor)
    describe_server(metrics, http, application.admission)
    return http


async def _crl_refresh(settings: MasterSettings, metrics: Metrics) -> CrlRefresh | None:
    """Return the refresh of the revocation list on a master that is not a CA; the first list has been fetched, for none starts without."""
    crl_refresh = CrlRefresh.of(settings, trust_files(settings))
    if crl_refresh is not None:
        crl_refresh.describe(metrics)
        if not settings.hostcrl.exists():
            await crl_refresh.attempt()
    return crl_refresh


def _start_watches(
    settings: MasterSettings,
    ca: CaService | None,
    state: SharedState | None,
    http: HttpServer,
    health: Health,
    metrics: Metrics,
    crl_refresh: CrlRefresh | None,
    supervisor: Supervisor,
) -> None:
    """Start the tasks that run beside a master that listens, as far as it needs them."""
    expiries = Expiries(lambda: [*server_endings(trust_files(settings)), *(agent_endings(ca.authority) if ca else ())])
    expiries.describe(metrics)
    supervisor.start(WARN_OF_EXPIRIES, expiries.watch)
    if crl_refresh is not None:
        supervisor.start(REFRESH_CRL, partial(crl_refresh.keep_fresh, settings.crl_refresh_interval))
    if ca is not None:
        ca.on_revocation.append(http.tls.reload)
        if ca.store.is_shared:
            assert state is not None
            state.notices.on(TOPIC, ca.follow)
        supervisor.start(RENEW_CRL, ca.keep_fresh)
    supervisor.start(WATCH_HEALTH, health.watch)
    supervisor.start(REMOVE_LEFTOVERS, partial(asyncio.to_thread, remove_leftovers, settings))


async def local_catalog(settings: MasterSettings, name: str) -> Any:
    """Return the catalog of a node with its stored facts, as plain data; raise PuppetError."""
    environments = Environments(environment_settings(settings))
    client = await asyncio.to_thread(puppetdb_client, settings)
    compile_pool = compile_pool_for(settings, environments, Metrics(), on_question=PuppetDbQueries(client))
    try:
        indirector = await asyncio.to_thread(bind, settings, environments, compile_pool, None, BindingOptions(client=client))
        if name != settings.certname and await indirector.facts.find(name, environment=settings.environment) is None:
            raise NotFound(
                f"No facts available for target node: {name}",
                hint="It has not sent any to this master. 'puppet catalog compile NODE --facts FILE' compiles with those of a file.",
            )
        # To look at a catalog is no run of the node, of which a PuppetDB should know.
        is_stored = isinstance(indirector.catalog.cache, PuppetDbCatalogs)
        catalog = await indirector.catalog.find(name, environment=settings.environment, ignore_cache_save=is_stored)
        if catalog is None:
            raise NotFound(f"Could not find a catalog for {name}")
        ready = catalog.encoded(MODERN, MODERN.formats["rich_data_json"])
        return plainjson.loads_trusted(bytes(ready)) if ready is not None else catalog.to_data(MODERN)
    finally:
        await compile_pool.processes.close()
