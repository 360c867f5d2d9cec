"""Retrieval of a run's catalog: environment, node, plugins, facts, the master, the cache. Source: protocol reference 6.2, 6.3."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from shared.data import plainyaml
from shared.data.plainjson import dumps
from shared.errors import BadData, NotFound, PeerError, PuppetError, text_with_hint
from shared.filesystem.files import read_regular
from shared.indirector.core import Option, Request
from shared.indirector.rest import Rest
from shared.models.catalog import Catalog
from shared.models.facts import FACTS, Facts
from shared.models.file_metadata import FileMetadata
from shared.names import valid_environment
from shared.process.log import NOTICE
from shared.settings import AgentSettings
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..facts.legacy import facts_as_text
from ..facts.limits import SoftLimits
from ..facts.own import own_facts
from ..plugins.pluginsync import PluginLimits as PluginLimits
from ..plugins.pluginsync import PluginMount, PluginSync, SyncResult
from .nodename import with_node_name
from .steps import Steps
from .wiring import Wiring

log = logging.getLogger("puppet.agent")

MAX_RESTARTS = 4
LOCALES_SINCE = (5, 3, 4)
PROBE = {"recurse": "false", "links": "manage", "checksum_type": "sha256", "source_permissions": "ignore"}


class NoCatalog(PuppetError):
    """The error that there is no catalog to apply; the run has failed, and the log has the reason."""


class UnknownEnvironment(NoCatalog):
    """The error that the master does not have the environment of the run, for which it takes no report either."""


class NotStable(PuppetError):
    """The error that the master names another environment each time."""


@dataclass
class RetrievedCatalog:
    """A catalog, the facts that it was compiled for, and in `cached` the status that reports give (`cached_catalog_status`)."""

    catalog: Catalog
    facts: Facts
    cached: str


@dataclass(frozen=True, slots=True)
class LastEnvironments:
    """The environments of the last run: the one that it began in, and the one that it ended in."""

    initial: str
    converged: str

    @classmethod
    def read(cls, path: Path) -> LastEnvironments | None:
        """Return the environments in last_run_summary.yaml; None when it has none of an agent's run. Blocks."""
        try:
            application = _application_section(read_regular(path))
        except (OSError, BadData):
            return None
        if not isinstance(application, dict) or application.get("run_mode") != "agent":
            return None
        initial, converged = application.get("initial_environment"), application.get("converged_environment")
        try:
            return cls(valid_environment(initial), valid_environment(converged)) if initial and converged else None
        except (PuppetError, TypeError):
            return None


_WRITTEN_SECTION = re.compile(
    rb"^application:\n  run_mode: (\w+)\n  initial_environment: (\w+)\n  converged_environment: (\w+)\n(?! )", re.MULTILINE
)


def _application_section(body: bytes) -> Any:
    """Return the section `application` of a summary. As an agent writes it, it is read without YAML, which takes a megabyte."""
    sections = _WRITTEN_SECTION.findall(body)
    if len(sections) == 1:
        names = ("run_mode", "initial_environment", "converged_environment")
        return {name: plainyaml.PSYCH.plain(word.decode()) for name, word in zip(names, sections[0], strict=True)}
    data = plainyaml.loads(body)
    return data.get("application") if isinstance(data, dict) else None


def facts_option(facts: Facts, dialect: Dialect, *, stringify: bool, old_server: bool = False) -> dict[str, Option]:
    """
    Return the parameters that carry facts: rendered, then escaped, so that the form escapes them a second time.

    Args:
        stringify: Send all values as text, to 3.x.
        old_server: The server is of 4.x, which reads only PSON.
    Source: protocol reference 3.3.
    """
    if dialect is LEGACY and stringify:
        facts = facts.model_copy(update={"values": facts_as_text(facts.values)})
    text = dumps(facts.to_data(dialect))
    if dialect is LEGACY:
        return {"facts_format": "pson", "facts": quote_plus(text)}
    return {"facts_format": "pson" if old_server else "application/json", "facts": quote(text, safe="")}


async def sync_plugins(wiring: Wiring, dialect: Dialect | None) -> AsyncGenerator[tuple[PluginMount, SyncResult], None]:
    """Sync the plugins of one mount after the other; yield each mount with its result."""
    settings = wiring.settings
    mounts = [
        PluginMount("pluginfacts", settings.pluginfactsource, settings.pluginfactdest, permissions=True),
        PluginMount("plugin", settings.pluginsource, settings.plugindest),
    ]
    if not settings.disable_i18n and (wiring.file_server.version or wiring.server.version or ()) >= LOCALES_SINCE:
        mounts.append(PluginMount("locales", settings.localesource, settings.localedest))
    sync = PluginSync(
        wiring.sources(),
        legacy=dialect is LEGACY,
        ignore=tuple(settings.pluginsignore.split()),
        checksum_type="md5" if dialect is LEGACY else "sha256",
        limits=PluginLimits(settings.max_plugin_files, settings.max_file_body),
    )
    for mount in mounts:
        try:
            result = await sync.sync(mount)
        except (PuppetError, OSError) as err:
            result = SyncResult(problem=err)
        yield mount, result


class Retrieval:
    """
    The retrieval of one run's catalog.

    Args:
        uuid: The transaction's UUID.
        environment_fixed: The environment was given on the command line.
        configured_environment: The environment that puppet.conf or the command line names; None: it is only the default.
    """

    def __init__(self, wiring: Wiring, steps: Steps, *, uuid: str, environment_fixed: bool, configured_environment: str | None) -> None:
        self.wiring = wiring
        self.steps = steps
        self.uuid = uuid
        self.environment_fixed = environment_fixed
        self.configured_environment = configured_environment
        self._prefers_cached = False  # set when plugins failed: a new catalog may need newer plugins than there are

    @property
    def settings(self) -> AgentSettings:
        return self.wiring.settings

    async def retrieve(self) -> RetrievedCatalog:
        """
        Return the catalog to apply; `wiring.environment` is then its environment.

        Raises:
            NoCatalog: there is none.
            NotStable: the master names another environment each time.
            PuppetError: facts could not be gathered, or plugins could not be fetched.
        """
        if self.settings.use_cached_catalog:
            cached = await self._find_cached()
            if cached is not None:
                return self._use_cached(cached)
        start = self.wiring.environment
        facts = await self._sync_and_gather_facts() if self.settings.node_name_fact else None  # the first request names the node
        await self._initial_environment()
        log.info("Using environment '%s'", self.wiring.environment)
        if facts is None or self.wiring.environment != start:
            facts = await self._sync_and_gather_facts()
        fallback = self.settings.usecacheonfailure and not self.settings.use_cached_catalog
        retrieved = await self._retrieve_once(facts, fallback=fallback)
        if self.settings.strict_environment_mode and retrieved.catalog.environment != self.wiring.environment:
            log.error(
                "Not using catalog because its environment '%s' does not match agent specified environment '%s' "
                "and strict_environment_mode is set",
                retrieved.catalog.environment,
                self.wiring.environment,
            )
            raise NoCatalog("Could not retrieve catalog; skipping run")
        for tries in range(MAX_RESTARTS + 1):
            catalog_environment = retrieved.catalog.environment
            if not catalog_environment or catalog_environment == self.wiring.environment:
                return retrieved
            if tries == MAX_RESTARTS:
                break
            log.log(
                NOTICE,
                "Local environment: '%s' doesn't match server specified environment '%s', restarting agent run with environment '%s'",
                self.wiring.environment,
                catalog_environment,
                catalog_environment,
            )
            self.wiring.environment = valid_environment(catalog_environment)
            retrieved = await self._retrieve_once(await self._sync_and_gather_facts(first=False), fallback=fallback)
        raise NotStable(f"Catalog environment didn't stabilize after {MAX_RESTARTS} fetches, aborting run")

    async def download(self) -> RetrievedCatalog:
        """Return the master's current catalog in the environment of the settings, without plugin sync; raise PuppetError without one."""
        facts = await self._gather_facts()
        return RetrievedCatalog(await self._ask_catalog(facts), facts, "not_used")

    async def cached_catalog(self) -> RetrievedCatalog:
        """Return the cached catalog of the last run or download; raise NoCatalog when there is none."""
        cached = await self._find_cached()
        if cached is None:
            raise NoCatalog(f"Could not find catalog for {self.settings.node_name_value}")
        return cached

    async def accept(self, catalog: Catalog) -> RetrievedCatalog:
        """Return a catalog from elsewhere as if it had been cached; raise BadData when it is another node's."""
        facts = await self._gather_facts()
        return RetrievedCatalog(_check_node(catalog, self.settings.node_name_value), facts, "explicitly_requested")

    async def submit_facts(self) -> None:
        """Gather the facts and send them to the master; raise PuppetError when there are none, or the master refuses them."""
        facts = await self._gather_facts()
        await Rest(FACTS, self.wiring.server).save(Request(facts.name, self.wiring.environment, body=facts))

    async def _find_cached(self) -> RetrievedCatalog | None:
        """Return this node's cached catalog with the current facts; None when there is none."""
        facts = await self._gather_facts() if self.settings.node_name_fact else None
        catalog = await self._load_cached_catalog()
        return None if catalog is None else RetrievedCatalog(catalog, facts or await self._gather_facts(), "explicitly_requested")

    def _use_cached(self, cached: RetrievedCatalog) -> RetrievedCatalog:
        """Return the cached catalog, without asking for the node or its plugins (use_cached_catalog), and take over its environment."""
        catalog = cached.catalog
        if catalog.environment and catalog.environment != self.wiring.environment and not self.settings.strict_environment_mode:
            log.log(
                NOTICE,
                "Local environment: '%s' doesn't match the environment of the cached catalog '%s', switching agent to '%s'.",
                self.wiring.environment,
                catalog.environment,
                catalog.environment,
            )
            self.wiring.environment = catalog.environment
        log.log(NOTICE, "Using cached catalog")
        return cached

    # --- the environment to begin in

    async def _initial_environment(self) -> None:
        if self.environment_fixed or self.settings.strict_environment_mode:
            return
        dialect = await self._server_dialect()
        if dialect is not LEGACY and self.settings.use_last_environment:
            last = await asyncio.to_thread(LastEnvironments.read, self.settings.lastrunfile)
            if last is not None:
                if last.converged != last.initial:
                    self.wiring.environment = last.converged
                return
        with self.steps.step("node", metric="node_retrieval") as step:
            step.detail = await self._ask_node(dialect)

    async def _ask_node(self, dialect: Dialect | None) -> str:
        """Ask for this node's environment and take it over; return words for the step. Without an answer the configured one stays."""
        options: dict[str, Option] = {"transaction_uuid": self.uuid}
        options |= {"fail_on_404": "true"} if dialect is LEGACY else {}
        if dialect is not LEGACY and self.configured_environment:
            options["configured_environment"] = self.configured_environment
        name = self.settings.node_name_value
        try:
            node = await self.wiring.indirector["node"].find(Request(name, self.wiring.environment, options=options))
            if node is None:  # only from a terminus that routes.yaml names; a server's answer is raised with its own words
                raise NotFound(f"Could not find the node {name}")
            node_environment = valid_environment(node.environment) if node.environment else self.wiring.environment
        except PuppetError as err:
            log.warning("Unable to fetch my node definition, but the agent run will continue:")
            log.warning("%s", err)
            return "no answer"
        if node_environment != self.wiring.environment:
            text = "Local environment: '%s' doesn't match server specified node environment '%s', switching agent to '%s'."
            log.log(logging.WARNING if dialect is LEGACY else NOTICE, text, self.wiring.environment, node_environment, node_environment)
            self.wiring.environment = node_environment
        return f"environment {node_environment}"

    async def _server_dialect(self) -> Dialect | None:
        """Return the dialect of the master; None when it is unreachable, which the next request will report."""
        try:
            return await self.wiring.server.dialect()
        except PeerError:
            return None

    async def _environment_exists(self) -> bool:
        """Return whether the master has the environment, as agents of 7 ask: a missing one must not empty the plugin directories."""
        if await self._server_dialect() is LEGACY:
            return True
        request: Request[FileMetadata] = Request("plugins", self.wiring.environment, options=PROBE)
        try:
            if await self.wiring.indirector["file_metadata"].search(request) is not None:
                return True
        except PuppetError as err:
            log.error("%s", err)
            return False
        if self.settings.strict_environment_mode:
            raise UnknownEnvironment(f"Environment '{self.wiring.environment}' not found on server, aborting run.")
        log.log(NOTICE, "Environment '%s' not found on server, skipping initial pluginsync.", self.wiring.environment)
        return False

    # --- one attempt: plugins, facts, catalog

    async def _sync_and_gather_facts(self, *, first: bool = True) -> Facts:
        """Sync the plugins, then return the facts. `first`: it is not known yet that the environment exists."""
        if self.settings.pluginsync:
            with self.steps.step("pluginsync", metric="plugin_sync") as step:
                step.detail = await self._sync_plugins(first=first)
        return await self._gather_facts()

    async def _retrieve_once(self, facts: Facts, *, fallback: bool) -> RetrievedCatalog:
        if self._prefers_cached:
            cached = await self._load_cached_catalog()
            if cached is not None and cached.environment in (None, "", self.wiring.environment):
                log.info("Using cached catalog from environment '%s'", cached.environment)
                return RetrievedCatalog(cached, facts, "on_failure")
        with self.steps.step("catalog", metric="config_retrieval") as step:
            try:
                catalog = await self._ask_catalog(facts)
                step.detail = f"{len(catalog.resources)} resources"
                return RetrievedCatalog(catalog, facts, "not_used")
            except (PuppetError, OSError) as err:
                log.error("Could not retrieve catalog from remote server: %s", text_with_hint(err))
                step.detail = "failed"
        if not fallback:
            log.warning("Not using cache on failed catalog")
            raise NoCatalog("Could not retrieve catalog; skipping run")
        cached = await self._load_cached_catalog()
        if cached is None:
            raise NoCatalog("Could not retrieve catalog; skipping run")
        if cached.environment and cached.environment != self.wiring.environment:
            log.error(
                "Not using cached catalog because its environment '%s' does not match '%s'", cached.environment, self.wiring.environment
            )
            raise NoCatalog("Could not retrieve catalog; skipping run")
        log.info("Using cached catalog from environment '%s'", cached.environment)
        return RetrievedCatalog(cached, facts, "on_failure")

    async def _sync_plugins(self, *, first: bool) -> str:
        """
        Sync the plugins; return a description of the copied and removed files.

        Raises:
            PuppetError: a file could not be fetched, and this is neither ignored nor may an older catalog be applied instead.
        """
        dialect = await self._server_dialect()
        results: list[SyncResult] = []
        failed = ""
        async with aclosing(sync_plugins(self.wiring, dialect)) as mounts:
            async for mount, synced in mounts:
                if synced.problem is not None:
                    if first and not results and not await self._environment_exists():
                        return "left out"
                    log.error("Could not retrieve %s: %s", mount.label, synced.problem)
                # Masters of 3.x may lack a mount, which agents of 3.x ignore.
                if synced.failed or (synced.problem and not (dialect is LEGACY and isinstance(synced.problem, NotFound))):
                    failed = failed or mount.label
                results.append(synced)
        if failed and not self.settings.ignore_plugin_errors:
            if not self.settings.usecacheonfailure or self.settings.use_cached_catalog:
                raise PuppetError(f"Failed to retrieve {failed}", hint="With ignore_plugin_errors a run goes on without.")
            self._prefers_cached = True
        fetched, removed = sum(len(result.fetched) for result in results), sum(len(result.removed) for result in results)
        return f"{fetched} fetched, {removed} removed"

    async def _gather_facts(self) -> Facts:
        with self.steps.step("facts", metric="fact_generation") as step:
            log.info("Loading facts")
            try:
                facts: Facts | None = await self.wiring.indirector["facts"].find(
                    Request(self.settings.node_name_value, self.wiring.environment)
                )
            except (PuppetError, OSError) as err:
                raise PuppetError(f"Could not retrieve local facts: {err}") from err
            if facts is None:
                raise PuppetError(f"Could not retrieve local facts: there are none for {self.settings.node_name_value}")
            version = (await self._server_dialect() or MODERN).version  # masters and manifests compare the version of the dialect
            agent_facts = own_facts(self.settings.certname, version, noop=self.settings.noop, environment=self.configured_environment or "")
            step.detail = f"{len(facts.values) + len(agent_facts)} facts"
            values = {**facts.values, **agent_facts}
            for sentence in SoftLimits.of(self.settings).excesses(values):
                log.warning("%s", sentence)
            self.wiring.settings = with_node_name(self.settings, values)
            return facts.model_copy(update={"name": self.settings.node_name_value, "values": values})

    async def _ask_catalog(self, facts: Facts) -> Catalog:
        dialect = await self.wiring.server.dialect()
        old = (self.wiring.server.version or (5,))[0] == 4
        options = facts_option(facts, dialect, stringify=self.settings.stringify_facts, old_server=old)
        for sentence in SoftLimits.of(self.settings).of_payload(len(str(options["facts"]))):
            log.warning("%s", sentence)
        options["transaction_uuid"] = self.uuid
        if dialect is LEGACY:
            options["fail_on_404"] = "true"
        else:
            options |= {"configured_environment": self.configured_environment} if self.configured_environment else {}
            options |= {"job_uuid": self.settings.job_id} if self.settings.job_id else {}
            options |= {
                "check_environment": "true",
                "static_catalog": "true",
                "checksum_type": ".".join(self.settings.supported_checksum_types),
            }
            options["inline_metadata"] = "true"  # our own masters then answer at once what would take a request for each file
        name = self.settings.node_name_value
        request: Request[Catalog] = Request(name, self.wiring.environment, options=options, ignore_cache=True, ignore_cache_save=True)
        catalog = await self.wiring.catalog.find(request)
        if catalog is None:  # only from a terminus that routes.yaml names; a server's answer is raised with its own words
            raise NotFound(f"Could not find a catalog for {name}")
        return _check_node(catalog, name)

    async def _load_cached_catalog(self) -> Catalog | None:
        """Return the cached catalog; None when there is none. A file that cannot be read is moved aside."""
        name = self.settings.node_name_value
        try:
            catalog = await self.wiring.catalog.find(Request(name, self.wiring.environment, ignore_terminus=True))
            if catalog is not None:
                return _check_node(catalog, name)
        except PuppetError as err:
            log.error("Could not retrieve catalog from cache: %s", err)
        path = self.settings.client_datadir / "catalog" / f"{name}.json"
        if await asyncio.to_thread(path.exists):
            log.warning("The cached catalog %s cannot be used; keeping it as %s.bad", path, path.name)
            await asyncio.to_thread(path.rename, path.with_name(path.name + ".bad"))
        return None


def _check_node(catalog: Catalog, name: str) -> Catalog:
    """Return the catalog; raise BadData when it is another node's."""
    if catalog.name != name:
        raise BadData(f"The catalog is for {catalog.name!r}, not for {name!r}", hint="Nothing of it was applied.")
    return catalog
