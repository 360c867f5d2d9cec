"""The bindings of a master: the terminus and cache for each indirection."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ca.service import CaService
from environments.code_commands import CodeCommands
from environments.directories import Environments
from environments.runs import Runs, RunVersions, VersionForRun, current_versions
from shared.clock import utc_now
from shared.data.plainyaml import WrittenItems
from shared.errors import ConfigError, Location
from shared.filesystem.bucket import Bucket
from shared.filesystem.checksums import Algorithm, algorithm
from shared.filesystem.textdiff import Differ
from shared.filesystem.written import WrittenFiles
from shared.indirector import Binding, Client, Indirector, Request, Terminus
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
from shared.models.report import REPORT, Report
from shared.models.resource import RESOURCE
from shared.models.resource_type import RESOURCE_TYPE
from shared.models.static_file_content import STATIC_FILE_CONTENT
from shared.models.status import STATUS, Status
from shared.settings import MasterSettings
from shared.wire.dialects import MODERN

from .authorization.patterns import acl_entry
from .authorization.rules import Prefix, Rule
from .catalogs.compiler_terminus import CompilerTerminus
from .catalogs.static import StaticCatalogs
from .catalogs.v4 import V4Catalogs
from .endpoints.routes import reserved_names
from .orders.waiting import WaitingAgents
from .pools.body_parser import BodyParser
from .pools.compile_pool import CompilePool
from .puppetdb.client import PuppetDbClient
from .puppetdb.configured import puppetdb_client
from .puppetdb.report import PuppetDbReports
from .puppetdb.termini import PuppetDbCatalogs, PuppetDbFacts, PuppetDbNodes
from .reports.processors import TIMEOUT, Http, Logged, Processed, Processor, Store, processors_for
from .reports.writers import Writers
from .rollouts.watch import RolloutWatch, WatchedCompiler
from .termini.bucket import BucketFiles, report_to_log
from .termini.ca import CaCertificates, CaCrls, CaOcsp, CaRequests, CaStatuses, NoCa
from .termini.facts import StoredFacts
from .termini.files import ContentServer, MetadataServer, VersionedContent
from .termini.ldap import Ldap, LdapSearch, LdapServer
from .termini.ldap_conf import LdapTrust
from .termini.mounts import FileServer
from .termini.node import Classifier, NodeFiles, Plain, WithFacts
from .termini.registry import Factories, TerminusRegistry
from .termini.resource_type import NotManaged, Parser
from .termini.state import POSTGRESQL, StateTermini
from .termini.trusted_external import TrustedExternal

log = logging.getLogger("puppet.master")


def is_mount_allowed(allow: Sequence[str], deny: Sequence[str], client: Client) -> bool:
    """Return whether the patterns of a mount allow a client, by the rules of auth.conf; `deny *` is the default anyway."""
    entries = [acl_entry(pattern, True, Location("fileserver.conf")) for pattern in allow]
    entries += [acl_entry(pattern, False, Location("fileserver.conf")) for pattern in deny if pattern != "*"]
    return Rule("mount", Prefix("/"), tuple(entries)).allows_client(client, ())


STORE_CONFIGS = "store_configs"
"""The name of the terminus that storeconfigs_backend names in its turn."""


WRITTEN_ITEMS = 4 << 20
"""Characters of the YAML of facts that a master keeps, since most of what nodes send is as it was."""


def node_factories(
    settings: MasterSettings,
    parser: BodyParser | None = None,
    client: PuppetDbClient | None = None,
    state: StateTermini | None = None,
) -> Factories:
    """Return the node termini by the names of the setting node_terminus."""
    shared = state or StateTermini(settings)
    return {
        POSTGRESQL: lambda: NodeFiles(shared.nodes(), parser),
        # As write_only_yaml: the next run of the node writes it anew.
        f"write_only_{POSTGRESQL}": lambda: NodeFiles(shared.nodes(is_record=True), parser),
        "puppetdb": lambda: PuppetDbNodes(client or puppetdb_client(settings)),
        "plain": Plain,
        "exec": lambda: Classifier(settings.external_nodes.split(), timeout=settings.command_timeout, most=settings.command_output),
        "yaml": lambda: NodeFiles(Yaml(NODE, settings.yamldir / "node"), parser),
        # A record for other programs, which the next run of the node writes anew.
        "write_only_yaml": lambda: NodeFiles(WriteOnlyYaml(NODE, settings.yamldir / "node", durable=False), parser),
        "json": lambda: NodeFiles(Json(NODE, settings.server_datadir / "node"), parser),
        "memory": MemoryTerminus,
        "ldap": lambda: Ldap(
            LdapServer(
                settings.ldapserver,
                settings.ldapport,
                user=settings.ldapuser,
                password=settings.ldappassword,
                tls="by StartTLS" if settings.ldaptls else "from the start" if settings.ldapssl else "",
                trust=LdapTrust.read(os.environ),
            ),
            LdapSearch(
                settings.ldapbase,
                settings.ldapstring,
                class_attributes=settings.ldapclassattrs,
                parent_attribute=settings.ldapparentattr,
                attributes=settings.ldapattrs,
                stacked_attributes=settings.ldapstackedattrs,
            ),
        ),
    }


def facts_factories(
    settings: MasterSettings,
    parser: BodyParser | None = None,
    client: PuppetDbClient | None = None,
    state: StateTermini | None = None,
) -> Factories:
    """Return the facts termini by the names of the setting facts_terminus."""

    def puppetdb() -> PuppetDbFacts:
        return PuppetDbFacts(client or puppetdb_client(settings))

    return {
        "puppetdb": puppetdb,
        STORE_CONFIGS: puppetdb,
        POSTGRESQL: lambda: StoredFacts((state or StateTermini(settings)).facts(), parser=parser),
        "yaml": lambda: StoredFacts(
            Yaml(FACTS, settings.yamldir / "facts", durable=False, written=WrittenFiles(), items=WrittenItems(WRITTEN_ITEMS)),
            parser=parser,
        ),
        "json": lambda: StoredFacts(Json(FACTS, settings.server_datadir / "facts", durable=False), parser=parser),
        "memory": MemoryTerminus,
    }


def facts_place(settings: MasterSettings) -> str:
    """Return the name of the terminus of facts, if routes.yaml names no other."""
    return settings.facts_terminus or settings.place_of_state("yaml")


def facts_binding(
    settings: MasterSettings,
    registry: TerminusRegistry,
    parser: BodyParser | None = None,
    client: PuppetDbClient | None = None,
    state: StateTermini | None = None,
) -> Binding[Facts]:
    """Bind the facts that nodes have sent; with storeconfigs a PuppetDB gets them as well."""
    makers = facts_factories(settings, parser, client, state)
    terminus = registry.terminus(FACTS, makers, facts_place(settings))
    cache_name = STORE_CONFIGS if settings.storeconfigs and not isinstance(terminus, PuppetDbFacts) else ""
    return Binding(FACTS, terminus, cache=registry.cache(FACTS, makers, cache_name))


def server_facts(settings: MasterSettings) -> dict[str, str]:
    """Return `$server_facts`: this master's name, address and version."""
    try:
        address = socket.gethostbyname(settings.certname)
    except OSError:
        address = "127.0.0.1"
    return {"servername": settings.certname, "serverip": address, "serverversion": MODERN.version}


def bucket_factories(settings: MasterSettings, state: StateTermini | None = None) -> Factories:
    """Return the termini of the filebucket by their names in routes.yaml."""

    def files(kind: Algorithm) -> Bucket:
        return Bucket(
            settings.bucketdir,
            algorithm=kind,
            quota=settings.bucket_quota,
            max_file=settings.max_bucket_body,
            report=report_to_log,
            differ=Differ.of(settings),
        )

    return {
        "file": lambda: bucket_files(settings, files),
        POSTGRESQL: lambda: bucket_files(settings, (state or StateTermini(settings)).bucket),
    }


def bucket_files(settings: MasterSettings, bucket: Callable[[Algorithm], Bucket]) -> BucketFiles:
    """Return the filebucket in the configured digest, and in md5 for agents of 3.x, which know no other."""
    digest = algorithm(settings.digest_algorithm)
    return BucketFiles(bucket(digest), legacy=bucket("md5") if digest != "md5" else None)


def catalog_factories(settings: MasterSettings, compiler: Callable[[], CompilerTerminus], client: PuppetDbClient) -> Factories:
    """Return the catalog termini by the names of the setting catalog_terminus."""
    return {
        "compiler": compiler,
        "puppetdb": lambda: PuppetDbCatalogs(client),
        STORE_CONFIGS: lambda: PuppetDbCatalogs(client),
        "json": lambda: Json(CATALOG, settings.server_datadir / "catalog"),
        "yaml": lambda: Yaml(CATALOG, settings.yamldir / "catalog"),
    }


def report_factories(settings: MasterSettings, client: PuppetDbClient | None = None, state: StateTermini | None = None) -> Factories:
    """Return the report termini by their names in routes.yaml: `file` and `postgresql` are report processors whose `store` is there."""

    def processed(place: str) -> Processed:
        processors = processors_for(settings.reports, processor_factories(settings, client, state, place))
        slowest = max((each.timeout for each in processors.values() if isinstance(each, PuppetDbReports)), default=0.0)
        return Processed(processors, timeout=max(TIMEOUT, slowest))

    return {
        "processor": lambda: processed(settings.place_of_state("file")),
        "file": lambda: processed("file"),
        POSTGRESQL: lambda: processed(POSTGRESQL),
        "json": lambda: Json(REPORT, settings.server_datadir / "report"),
        "yaml": lambda: Yaml(REPORT, settings.yamldir / "report"),
    }


@dataclass(eq=False, repr=False, kw_only=True)
class WatchedReports(Binding[Report]):
    """The binding of reports, each of which the rollouts under way and the runs that were ordered see as well."""

    rollouts: RolloutWatch | None
    agents: WaitingAgents | None

    async def save(self, instance: Report | Request[Report], key: str | None = None, **parameters: Any) -> object:
        result = await super().save(instance, key, **parameters)
        report = instance.body if isinstance(instance, Request) else instance
        if self.rollouts is not None and report is not None:
            await self.rollouts.reported(report)
        if self.agents is not None and report is not None:
            self.agents.reported(report)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingOptions:
    """
    What a running master has beside its bindings. What is left out is made anew, as for a command.

    Args:
        client: That of the site's PuppetDB.
        state: Makes the termini on the masters' database.
        runs: The versions of the runs under way; left out: they are known to this process only.
        rollouts: Watches catalogs and reports; left out: nobody does.
        agents: Those that wait for orders, whose reports are watched; left out: they are not.
    """

    parser: BodyParser | None = None
    client: PuppetDbClient | None = None
    state: StateTermini | None = None
    runs: Runs | None = None
    rollouts: RolloutWatch | None = None
    agents: WaitingAgents | None = None


def bind(
    settings: MasterSettings,
    environments: Environments,
    compile_pool: CompilePool,
    ca: CaService | None,
    options: BindingOptions | None = None,
) -> Indirector:
    """Bind every indirection of a master to its terminus and cache."""
    options = options or BindingOptions()
    client, parser = options.client or puppetdb_client(settings), options.parser or BodyParser()
    state, runs, rollouts = options.state, options.runs or local_runs(settings, environments), options.rollouts
    registry = TerminusRegistry(settings, environments)
    files = FileServer(
        settings.fileserverconfig,
        environments.modulepath,
        is_mount_allowed,
        filetimeout=settings.filetimeout,
        root=lambda name: Path(environments.root_of(name)),
        generation=lambda: environments.generation,
        runs=runs,
    )
    metadata = MetadataServer(files, digest=algorithm(settings.digest_algorithm))
    code = code_commands(settings)
    nodes, reports = node_factories(settings, parser, client, state), report_factories(settings, client, state)
    buckets = bucket_factories(settings, state)
    facts = facts_binding(settings, registry, parser, client, state)
    node: Binding[Any] = Binding(
        NODE,
        WithFacts(registry.terminus(NODE, nodes, settings.node_terminus), facts),
        cache=registry.cache(NODE, nodes, settings.node_cache_terminus),
    )

    def compiler() -> CompilerTerminus:
        return CompilerTerminus(
            facts=facts,
            nodes=node,
            compile=WatchedCompiler(rollouts, compile_pool) if rollouts is not None else compile_pool,
            server_facts=server_facts(settings),
            environments=environments.exists,
            default_environment=settings.environment,
            now=utc_now,
            static=StaticCatalogs(code, environments, metadata, runs),
            external=TrustedExternal.of(settings).about,
            parser=parser,
            is_stored=isinstance(catalog_cache, PuppetDbCatalogs),
        )

    catalogs = catalog_factories(settings, compiler, client)
    cache_name = settings.catalog_cache_terminus or (STORE_CONFIGS if settings.storeconfigs else "")
    catalog_cache = registry.cache(CATALOG, catalogs, cache_name)
    catalog_terminus = registry.terminus(CATALOG, catalogs, settings.catalog_terminus)
    if isinstance(catalog_cache, PuppetDbCatalogs) and not isinstance(catalog_terminus, CompilerTerminus):
        raise ConfigError(
            "A PuppetDB can get only catalogs that are compiled here: that is not supported for another terminus of catalogs",
            hint="Leave out catalog_terminus, and terminus of catalog in routes.yaml, or storeconfigs.",
        )
    bindings: list[Binding[Any]] = [
        facts,
        node,
        Binding(CATALOG, catalog_terminus, cache=catalog_cache),
        WatchedReports(
            REPORT,
            registry.terminus(REPORT, reports, "processor"),
            cache=registry.cache(REPORT, reports),
            rollouts=rollouts,
            agents=options.agents,
        ),
        Binding(FILE_METADATA, metadata),
        Binding(FILE_CONTENT, ContentServer(files)),
        Binding(STATIC_FILE_CONTENT, VersionedContent(code, environments.root_of, runs.is_elsewhere)),
        Binding(FILE_BUCKET_FILE, registry.terminus(FILE_BUCKET_FILE, buckets, settings.place_of_state("file"))),
        Binding(STATUS, CodeTerminus(lambda request: Status(name=request.key))),
        Binding(KEY, Terminus()),
        Binding(RESOURCE, registry.terminus(RESOURCE, {"ral": NotManaged}, "ral")),
        Binding(RESOURCE_TYPE, registry.terminus(RESOURCE_TYPE, {"parser": lambda: Parser(compile_pool.definitions)}, "parser")),
        *ca_bindings(ca),
    ]
    bindings += registry.own_indirections({binding.indirection.name for binding in bindings}, reserved_names())
    return Indirector(bindings).prepared()


def local_runs(settings: MasterSettings, environments: Environments, rollouts: RolloutWatch | None = None) -> RunVersions:
    """Return the versions of runs as one process knows them; a run gets its environment's current one, or that of its wave."""
    version_for = rollouts.version_for if rollouts is not None else current_versions(environments.root_of)
    return RunVersions(version_for, lifetime=settings.deploy_keep_time)


def code_commands(settings: MasterSettings) -> CodeCommands | None:
    """Return the site's programs that know versions of code, None when there are none."""
    commands = settings.code_id_command, settings.code_content_command
    return CodeCommands.of(*commands, timeout=settings.command_timeout, most=settings.max_code_content)


def v4_catalogs(
    settings: MasterSettings,
    environments: Environments,
    compile_pool: CompilePool,
    indirector: Indirector,
    version_for: VersionForRun,
) -> V4Catalogs:
    """Return the compiler of catalogs for facts in requests, which does not depend on the terminus of catalogs."""
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
        version_for=version_for,
        now=utc_now,
    )


def ca_bindings(ca: CaService | None) -> list[Binding[Any]]:
    """Bind the indirections of the CA; on a master that is not the CA their termini refuse all requests."""
    return [
        Binding(CERTIFICATE, CaCertificates(ca) if ca else NoCa()),
        Binding(CERTIFICATE_REQUEST, CaRequests(ca) if ca else NoCa()),
        Binding(CERTIFICATE_REVOCATION_LIST, CaCrls(ca) if ca else NoCa()),
        Binding(CERTIFICATE_STATUS, CaStatuses(ca) if ca else NoCa()),
        Binding(OCSP, CaOcsp(ca) if ca else NoCa()),
    ]


def processor_factories(
    settings: MasterSettings, client: PuppetDbClient | None = None, state: StateTermini | None = None, place: str = "file"
) -> Mapping[str, Callable[[], Processor]]:
    """Return the report processors by their names in the setting reports; `place` is that of `store`."""
    files = partial(Store, settings.reportdir, writers=Writers(queue=settings.report_queue))
    return {
        "puppetdb": lambda: PuppetDbReports(client or puppetdb_client(settings)),
        "store": (state or StateTermini(settings)).reports if place == POSTGRESQL else files,
        "log": Logged,
        "http": lambda: Http.of(settings),
    }
