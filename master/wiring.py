"""Which terminus and cache answer for each indirection on a master, and everything around them: one readable place."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from certs.oids import OidNames
from certs.ssldir import SslDir
from shared.clock import utc_now
from shared.data import plainjson
from shared.errors import Location, NotFound
from shared.filesystem.bucket import Bucket
from shared.filesystem.checksums import algorithm
from shared.filesystem.textdiff import Differ
from shared.indirector import Binding, Client, Indirector, Terminus
from shared.indirector.termini import CodeTerminus, Json, MemoryTerminus, WriteOnlyYaml, Yaml
from shared.models.catalog import CATALOG
from shared.models.certificate import CERTIFICATE
from shared.models.certificate_request import CERTIFICATE_REQUEST
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.models.certificate_status import CERTIFICATE_STATUS
from shared.models.facts import FACTS, Facts
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.models.key import KEY
from shared.models.node import NODE
from shared.models.ocsp import OCSP
from shared.models.report import REPORT
from shared.models.resource import RESOURCE
from shared.models.resource_type import RESOURCE_TYPE
from shared.models.static_file_content import STATIC_FILE_CONTENT
from shared.models.status import STATUS, Status
from shared.process.log import LEVELS
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings
from shared.wire.dialects import MODERN

from .authorization.patterns import acl_entry
from .authorization.rules import Prefix, Rule
from .ca import audit
from .ca.audit import Audit
from .ca.autosign import Autosign
from .ca.configured import audit_of, ca_options, key_kind
from .ca.service import CaService
from .ca.setup.bootstrap import bootstrap, ensure_own_certificate
from .ca.storage.store import CaFiles
from .catalogs.compiler_terminus import CompilerTerminus
from .catalogs.static import StaticCatalogs
from .catalogs.v4 import V4Catalogs
from .endpoints.app import HANDSHAKE_HINT, LISTEN_HINT, MasterApp, MasterAppOptions
from .endpoints.ca import CaEndpoints
from .endpoints.limits import MasterLimits
from .endpoints.metrics import MetricsListener, describe_server
from .endpoints.puppetserver import ServerEndpoints
from .environments.code_commands import CodeCommands
from .environments.directories import Environments
from .environments.settings import environment_settings
from .http.identity import ProxyRules
from .http.options import ServerOptions
from .http.server import HttpServer
from .http.tls import TrustFiles
from .observability.health import Health
from .observability.longtasks import REFRESH_CRL, REMOVE_LEFTOVERS, RENEW_CRL, WARN_OF_EXPIRIES, WATCH_HEALTH, master_supervisor
from .observability.metrics import Metrics
from .observability.process_metrics import describe_process
from .pools.compile_pool import CompilePool
from .pools.configured import compile_pool_for
from .pools.parse_pool import ParsePool
from .reports.processors import Http, Logged, Processed, Processor, Store, processors_for
from .reports.writers import Writers
from .service.conditions import conditions
from .service.crl_refresh import CrlRefresh
from .service.expiry import Expiries, agent_endings, server_endings
from .service.folders import remove_leftovers
from .service.refusals import Refusals, queued_refusals
from .termini.bucket import BucketFiles
from .termini.ca import CaCertificates, CaCrls, CaOcsp, CaRequests, CaStatuses, NoCa
from .termini.facts import StoredFacts
from .termini.files import ContentServer, MetadataServer, VersionedContent
from .termini.ldap import Ldap
from .termini.ldap_conf import LdapTrust
from .termini.mounts import FileServer
from .termini.node import Classifier, NodeFiles, Plain, WithFacts
from .termini.registry import Factories, TerminusRegistry
from .termini.resource_type import NotManaged, Parser
from .termini.trusted_external import TrustedExternal

log = logging.getLogger("puppet.master")


@dataclass(slots=True)
class Master:
    """A running master; `port` is the one it got."""

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
        Read everything anew that is read from files: certificates, revocations, rules, mounts, environments, processes.

        Raises:
            PuppetError: some of it cannot be read; that stays as it was, the rest is new.
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


def mount_matcher(allow: Sequence[str], deny: Sequence[str], client: Client) -> bool:
    """Return whether the patterns of a mount let a client in, as those of auth.conf do; `deny *` only says what holds anyway."""
    entries = [acl_entry(pattern, True, Location("fileserver.conf")) for pattern in allow]
    entries += [acl_entry(pattern, False, Location("fileserver.conf")) for pattern in deny if pattern != "*"]
    return Rule("mount", Prefix("/"), tuple(entries)).allows_client(client, ())


def open_ca(settings: MasterSettings, report: Audit, supervisor: Supervisor) -> CaService:
    """Return the CA of this master, made at the first start. Blocks, for seconds then."""
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


def node_factories(settings: MasterSettings, parsers: ParsePool | None = None) -> Factories:
    """Return the node termini by the names of the setting node_terminus."""
    return {
        "plain": Plain,
        "exec": lambda: Classifier(settings.external_nodes.split(), timeout=settings.command_timeout, most=settings.command_output),
        "yaml": lambda: NodeFiles(Yaml(NODE, settings.yamldir / "node"), parsers),
        "write_only_yaml": lambda: NodeFiles(WriteOnlyYaml(NODE, settings.yamldir / "node"), parsers),
        "json": lambda: NodeFiles(Json(NODE, settings.server_datadir / "node"), parsers),
        "memory": MemoryTerminus,
        "ldap": lambda: Ldap(
            server=settings.ldapserver,
            port=settings.ldapport,
            base=settings.ldapbase,
            query=settings.ldapstring,
            class_attributes=settings.ldapclassattrs,
            parent_attribute=settings.ldapparentattr,
            user=settings.ldapuser,
            password=settings.ldappassword,
            attributes=settings.ldapattrs,
            stacked_attributes=settings.ldapstackedattrs,
            tls="by StartTLS" if settings.ldaptls else "from the start" if settings.ldapssl else "",
            trust=LdapTrust.read(os.environ),
        ),
    }


def facts_factories(settings: MasterSettings, parsers: ParsePool | None = None) -> Factories:
    return {
        "yaml": lambda: StoredFacts(Yaml(FACTS, settings.yamldir / "facts", durable=False), parsers=parsers),
        "json": lambda: StoredFacts(Json(FACTS, settings.server_datadir / "facts", durable=False), parsers=parsers),
        "memory": MemoryTerminus,
    }


def facts_binding(settings: MasterSettings, registry: TerminusRegistry, parsers: ParsePool | None = None) -> Binding[Facts]:
    """Bind the facts that nodes have sent."""
    makers = facts_factories(settings, parsers)
    return Binding(FACTS, registry.terminus(FACTS, makers, settings.facts_terminus or "yaml"), cache=registry.cache(FACTS, makers))


def server_facts(settings: MasterSettings) -> dict[str, str]:
    """Return `$server_facts`: this master's name, address and version."""
    try:
        address = socket.gethostbyname(settings.certname)
    except OSError:
        address = "127.0.0.1"
    return {"servername": settings.certname, "serverip": address, "serverversion": MODERN.version}


def bucket_files(settings: MasterSettings) -> BucketFiles:
    """Return the filebucket in the configured digest, and in md5 for agents of 3.x, which know no other."""
    digest = algorithm(settings.digest_algorithm)

    def bucket(kind: str) -> Bucket:
        return Bucket(
            settings.bucketdir,
            algorithm=algorithm(kind),
            quota=settings.bucket_quota,
            max_file=settings.max_bucket_body,
            report=lambda level, text: log.log(LEVELS[level], "%s", text),
            differ=Differ.of(settings),
        )

    return BucketFiles(bucket(digest), legacy=bucket("md5") if digest != "md5" else None)


def catalog_factories(settings: MasterSettings, compiler: Callable[[], CompilerTerminus]) -> Factories:
    return {
        "compiler": compiler,
        "json": lambda: Json(CATALOG, settings.server_datadir / "catalog"),
        "yaml": lambda: Yaml(CATALOG, settings.yamldir / "catalog"),
    }


def report_factories(settings: MasterSettings) -> Factories:
    return {
        "processor": lambda: Processed(processors_for(settings.reports, processor_factories(settings))),
        "json": lambda: Json(REPORT, settings.server_datadir / "report"),
        "yaml": lambda: Yaml(REPORT, settings.yamldir / "report"),
    }


def bind(
    settings: MasterSettings, environments: Environments, compile_pool: CompilePool, ca: CaService | None, parsers: ParsePool | None = None
) -> Indirector:
    """Bind every indirection of a master to its terminus and cache."""
    registry = TerminusRegistry(settings, environments)
    files = FileServer(
        settings.fileserverconfig,
        environments.modulepath,
        mount_matcher,
        filetimeout=settings.filetimeout,
        root=lambda name: Path(environments.root_of(name)),
        generation=lambda: environments.generation,
    )
    metadata = MetadataServer(files, digest=algorithm(settings.digest_algorithm))
    code = code_commands(settings)
    nodes, reports = node_factories(settings, parsers), report_factories(settings)
    facts = facts_binding(settings, registry, parsers)
    node: Binding[Any] = Binding(
        NODE,
        WithFacts(registry.terminus(NODE, nodes, settings.node_terminus), facts),
        cache=registry.cache(NODE, nodes, settings.node_cache_terminus),
    )

    def compiler() -> CompilerTerminus:
        return CompilerTerminus(
            facts=facts,
            nodes=node,
            compile=compile_pool,
            server_facts=server_facts(settings),
            environments=environments.has,
            default_environment=settings.environment,
            now=utc_now,
            static=StaticCatalogs(code, environments, metadata),
            external=TrustedExternal.of(settings).about,
            parsers=parsers,
        )

    catalogs = catalog_factories(settings, compiler)
    bindings: list[Binding[Any]] = [
        facts,
        node,
        Binding(
            CATALOG,
            registry.terminus(CATALOG, catalogs, settings.catalog_terminus),
            cache=registry.cache(CATALOG, catalogs, settings.catalog_cache_terminus),
        ),
        Binding(REPORT, registry.terminus(REPORT, reports, "processor"), cache=registry.cache(REPORT, reports)),
        Binding(FILE_METADATA, metadata),
        Binding(FILE_CONTENT, ContentServer(files)),
        Binding(STATIC_FILE_CONTENT, VersionedContent(code)),
        Binding(FILE_BUCKET_FILE, bucket_files(settings)),
        Binding(STATUS, CodeTerminus(lambda request: Status(name=request.key))),
        Binding(KEY, Terminus()),
        Binding(RESOURCE, registry.terminus(RESOURCE, {"ral": NotManaged}, "ral")),
        Binding(RESOURCE_TYPE, registry.terminus(RESOURCE_TYPE, {"parser": lambda: Parser(compile_pool.definitions)}, "parser")),
        *ca_bindings(ca),
    ]
    bindings += registry.own_indirections({binding.indirection.name for binding in bindings})
    return Indirector(bindings).prepared()


def code_commands(settings: MasterSettings) -> CodeCommands | None:
    """Return the site's programs that know versions of code, None when there are none."""
    commands = settings.code_id_command, settings.code_content_command
    return CodeCommands.of(*commands, timeout=settings.command_timeout, most=settings.max_code_content)


def v4_catalogs(settings: MasterSettings, environments: Environments, compile_pool: CompilePool, indirector: Indirector) -> V4Catalogs:
    """Return what compiles catalogs of facts in the request, for whatever the terminus of catalogs is."""
    code = code_commands(settings)

    async def code_id(environment: str) -> str | None:
        return await code.code_id(environment) if code else None

    return V4Catalogs(
        facts=indirector.facts,
        nodes=indirector.node,
        catalogs=indirector.catalog,
        compile=compile_pool,
        server_facts=server_facts(settings),
        environments=environments.has,
        code_id=code_id,
        now=utc_now,
    )


def ca_bindings(ca: CaService | None) -> list[Binding[Any]]:
    """Bind the indirections of the CA; on a master that is none they say so."""
    return [
        Binding(CERTIFICATE, CaCertificates(ca) if ca else NoCa()),
        Binding(CERTIFICATE_REQUEST, CaRequests(ca) if ca else NoCa()),
        Binding(CERTIFICATE_REVOCATION_LIST, CaCrls(ca) if ca else NoCa()),
        Binding(CERTIFICATE_STATUS, CaStatuses(ca) if ca else NoCa()),
        Binding(OCSP, CaOcsp(ca) if ca else NoCa()),
    ]


def processor_factories(settings: MasterSettings) -> Mapping[str, Callable[[], Processor]]:
    return {
        "store": lambda: Store(settings.reportdir, writers=Writers(queue=settings.report_queue)),
        "log": Logged,
        "http": lambda: Http.of(settings),
    }


def trust_files(settings: MasterSettings) -> TrustFiles:
    """Return what the server's TLS is made of; a CA's own files where there is one, so that a revocation holds at once."""
    if settings.ca:
        files = CaFiles.at(settings.cadir)
        return TrustFiles(settings.hostcert, settings.hostprivkey, files.cacert, files.cacrl)
    return TrustFiles(settings.hostcert, settings.hostprivkey, settings.localcacert, settings.hostcrl)


@asynccontextmanager
async def running(settings: MasterSettings, supervisor: Supervisor | None = None) -> AsyncIterator[Master]:
    """
    Run a master, listening, for as long as the block runs.

    Args:
        supervisor: Watches the long tasks; it belongs to this master alone.
    Raises:
        ConfigError: what has to be put right first. OSError: the address cannot be had.
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
    limits = MasterLimits.of(settings)
    parsers = ParsePool.of(settings)
    parsers.describe(metrics)
    indirector = await asyncio.to_thread(bind, settings, environments, compile_pool, ca, parsers)
    v4 = await asyncio.to_thread(v4_catalogs, settings, environments, compile_pool, indirector)
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
    options = ServerOptions(
        trust_files(settings),
        limits,
        proxy=ProxyRules.of(
            switched_on=settings.allow_header_cert_info,
            addresses=settings.proxy_addresses,
            dn=settings.ssl_client_header,
            verify=settings.ssl_client_verify_header,
        ),
        oid_names=oid_names,
        on_crl_expired=ca.refresh_crl_if_due if ca else None,
        on_answer=metrics.count_answer,
        on_refused=refusals.record,
        listen_hint=LISTEN_HINT,
        handshake_hint=HANDSHAKE_HINT,
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
                await crl_refresh.attempt()  # without one no master starts
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
    """Return the catalog of a node with the facts that are stored for it, as plain data; PuppetError."""
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


__all__ = ["Master", "bind", "local_catalog", "running"]
