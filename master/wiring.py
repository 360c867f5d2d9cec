"""A running master, put together from its settings: one readable place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from certs.oids import OidNames
from certs.ssldir import SslDir
from httpd.identity import ProxyRules
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tls import TrustFiles
from shared.data import plainjson
from shared.errors import NotFound
from shared.indirector import Indirector
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings
from shared.wire.dialects import MODERN

from .bindings import bind, code_commands, v4_catalogs
from .ca import audit
from .ca.audit import Audit
from .ca.autosign import Autosign
from .ca.configured import audit_of, ca_options, key_kind
from .ca.service import CaService
from .ca.setup.bootstrap import bootstrap, ensure_own_certificate
from .ca.storage.store import CaFiles
from .endpoints.app import HANDSHAKE_HINT, LISTEN_HINT, MasterApp, MasterAppOptions
from .endpoints.ca import CaEndpoints
from .endpoints.limits import MasterLimits
from .endpoints.metrics import MetricsListener, describe_server
from .endpoints.puppetserver import ServerEndpoints
from .environments.directories import Environments
from .environments.settings import environment_settings
from .observability.health import Health
from .observability.longtasks import REFRESH_CRL, REMOVE_LEFTOVERS, RENEW_CRL, WARN_OF_EXPIRIES, WATCH_HEALTH, master_supervisor
from .observability.metrics import Metrics
from .observability.process_metrics import describe_process
from .pools.compile_pool import CompilePool
from .pools.configured import compile_pool_for
from .pools.parse_pool import ParsePool
from .service.conditions import conditions
from .service.crl_refresh import CrlRefresh
from .service.expiry import Expiries, agent_endings, server_endings
from .service.folders import remove_leftovers
from .service.refusals import Refusals, queued_refusals

log = logging.getLogger("puppet.master")


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

    async def reload(self) -> None:
        """
        Read all files again: certificates, revocations, rules, mounts, environments; replace the compiling processes.

        Raises:
            PuppetError: A file cannot be read; its old content stays in force, the rest is new.
        """
        await self.environments.expire(None)
        self.compile_pool.renew()
        try:
            await self.http.reload()
        finally:
            await self.compile_pool.warm()

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests in flight end within `drain` seconds, cut the rest."""
        await self.http.stop(drain)


def open_ca(settings: MasterSettings, report: Audit, supervisor: Supervisor) -> CaService:
    """Return the CA of this master; the first start creates it. Blocks, at the first start for seconds."""
    if settings.autosign is True:
        log.warning("autosign is true: every request is signed. Anybody who reaches this port gets a certificate.")
    own = SslDir.of(settings)
    authority = bootstrap(
        CaFiles.at(settings.cadir),
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


def trust_files(settings: MasterSettings) -> TrustFiles:
    """Return the files of the server's TLS; on the CA's master those of the CA itself, so that a revocation counts at once."""
    if settings.ca:
        files = CaFiles.at(settings.cadir)
        return TrustFiles(settings.hostcert, settings.hostprivkey, files.cacert, files.cacrl)
    return TrustFiles(settings.hostcert, settings.hostprivkey, settings.localcacert, settings.hostcrl)


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
        "Failures of the tasks that run beside requests, which nobody foresaw.",
        lambda: [((name,), count) for name, count in supervisor.failures.items()],
        "task",
    )
    trail = await asyncio.to_thread(audit_of, settings)

    def report(entry: dict[str, object]) -> None:
        audit.to_log(entry)
        trail(entry)
        metrics.count_decision(entry)

    with queued_refusals(trail, capacity=settings.log_queue) as refusals:
        if settings.ca:
            metrics.start_ca(audit.ACTIONS)
            service = await asyncio.to_thread(open_ca, settings, report, supervisor)
            async with service.running(), _serving(settings, service, metrics, refusals, supervisor) as master:
                yield master
            return
        async with _serving(settings, None, metrics, refusals, supervisor) as master:
            yield master


@asynccontextmanager
async def _serving(
    settings: MasterSettings, ca: CaService | None, metrics: Metrics, refusals: Refusals, supervisor: Supervisor
) -> AsyncIterator[Master]:
    environments = Environments(environment_settings(settings))
    health = Health()
    compile_pool = compile_pool_for(settings, environments, metrics, supervisor, partial(health.note, CompilePool.CONDITION))
    parsers = ParsePool.of(settings)
    parsers.describe(metrics)
    indirector = await asyncio.to_thread(bind, settings, environments, compile_pool, ca, parsers)
    v4 = await asyncio.to_thread(v4_catalogs, settings, environments, compile_pool, indirector)
    limits = MasterLimits.of(settings)
    oid_names = OidNames.load(settings.trusted_oid_mapping_file)
    application = MasterApp(
        MasterAppOptions(
            indirector,
            environments,
            limits,
            parsers=parsers,
            server=ServerEndpoints(environments, compile_pool.listing, v4, limits, code_commands(settings), parsers),
            ca=CaEndpoints(ca, limits) if ca else None,
            auth_conf=settings.rest_authconfig,
            filetimeout=settings.filetimeout,
            oid_names=oid_names,
            certname=settings.certname,
            metrics=metrics.text,
            health=health,
        )
    )
    options = server_options(
        settings,
        limits,
        oid_names,
        on_crl_expired=ca.refresh_crl_if_due if ca else None,
        on_answer=metrics.count_answer,
        on_refused=refusals.record,
    )
    http = HttpServer(application, options, supervisor)
    describe_server(metrics, http, application.admission)
    collectors = MetricsListener(metrics.text, limits)
    expiries = Expiries(lambda: [*server_endings(trust_files(settings)), *(agent_endings(ca.authority) if ca else ())])
    expiries.describe(metrics)
    health.add(conditions(settings, compile_pool, lambda: http.tls.trust))
    health.describe(metrics)
    metrics.read("puppet_tasks", "gauge", "Tasks of the event loop.", lambda: [((), len(asyncio.all_tasks()))])
    crl_refresh = CrlRefresh.of(settings, trust_files(settings))
    try:
        if settings.metrics_port:
            await collectors.start(settings.metrics_bindaddress, settings.metrics_port)
        if crl_refresh is not None:
            crl_refresh.describe(metrics)
            if not settings.hostcrl.exists():
                await crl_refresh.attempt()  # no master starts without a list
        host, port = await http.start(settings.bindaddress, settings.masterport)
        supervisor.start(WARN_OF_EXPIRIES, expiries.watch)
        if crl_refresh is not None:
            supervisor.start(REFRESH_CRL, partial(crl_refresh.keep_fresh, settings.crl_refresh_interval))
        if ca is not None:
            ca.on_revocation.append(http.tls.reload)
            supervisor.start(RENEW_CRL, ca.keep_fresh)
        supervisor.start(WATCH_HEALTH, health.watch)
        supervisor.start(REMOVE_LEFTOVERS, partial(asyncio.to_thread, remove_leftovers, settings))
        yield Master(http, indirector, environments, compile_pool, health, metrics, refusals, host, port)
    finally:
        await supervisor.stop(WARN_OF_EXPIRIES, REFRESH_CRL, RENEW_CRL, WATCH_HEALTH, REMOVE_LEFTOVERS)
        await http.stop(0)
        await collectors.stop()
        await parsers.close()
        await compile_pool.close()


async def local_catalog(settings: MasterSettings, name: str) -> Any:
    """Return the catalog of a node with its stored facts, as plain data; raise PuppetError."""
    environments = Environments(environment_settings(settings))
    compile_pool = compile_pool_for(settings, environments, Metrics())
    try:
        indirector = await asyncio.to_thread(bind, settings, environments, compile_pool, None)
        if name != settings.certname and await indirector.facts.find(name, environment=settings.environment) is None:
            raise NotFound(
                f"No facts available for target node: {name}",
                hint="It has not sent any to this master. 'puppet catalog compile NODE --facts FILE' compiles with those of a file.",
            )
        catalog = await indirector.catalog.find(name, environment=settings.environment)
        if catalog is None:
            raise NotFound(f"Could not find a catalog for {name}")
        ready = catalog.encoded(MODERN, MODERN.formats["rich_data_json"])
        return plainjson.loads(ready) if ready is not None else catalog.to_data(MODERN)
    finally:
        await compile_pool.close()
