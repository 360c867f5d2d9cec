"""One run, from the first question to the report. Source: protocol reference 6.2 to 6.4."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.clock import utc_now
from shared.errors import PeerError, PuppetError, text_with_hint
from shared.failpoints import failpoint
from shared.filesystem.checksums import algorithm
from shared.indirector.core import Request
from shared.models.catalog import Catalog
from shared.models.report import Report
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.settings import AgentSettings
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..state.runlog import RunLog
from ..state.statefiles import TransactionStore, write_classes, write_resources, write_summary
from .admincommands import CommandFailed, run_command
from .retrieval import NoCatalog, Retrieval, RetrievedCatalog, UnknownEnvironment
from .steps import Steps
from .wiring import Wiring

if TYPE_CHECKING:
    from ..providers.file.context import FileContext
    from ..transaction.run import ApplyResult
    from ..transaction.summary import ReportHeader
    from .deferred import Resolver, ResolverFactory

log = logging.getLogger("puppet.agent")

CatalogSource = Callable[[Retrieval], Awaitable[RetrievedCatalog]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    The result of a run.

    Attributes:
        completed: A catalog was applied, even if resources failed.
        bits: The bits of the exit code: 2 for changes, 4 for failures.
        summary: The sections of last_run_summary.yaml.
    """

    completed: bool
    bits: int
    report: Report
    summary: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AskedEnvironment:
    """
    What is asked of a run's environment.

    Attributes:
        is_fixed: It was given on the command line.
        configured: The one that puppet.conf or the command line names; None: it is only the default.
    """

    is_fixed: bool = False
    configured: str | None = None


class Run:
    """
    One run. Its caller holds the lock and has verified the connections.

    Args:
        asked: What is asked of the environment.
        stop: Called between two resources; once it returns true, the rest is skipped.
        deferring: Makes the resolver of deferred values; None: resources with such values fail.
        catalog: Retrieves the catalog.
    """

    def __init__(
        self,
        wiring: Wiring,
        runlog: RunLog,
        steps: Steps,
        *,
        asked: AskedEnvironment = AskedEnvironment(),
        stop: Callable[[], bool] = lambda: False,
        now: Callable[[], datetime] = utc_now,
        deferring: ResolverFactory | None = None,
        catalog: CatalogSource = Retrieval.retrieve,
    ) -> None:
        self.wiring = wiring
        self.log = runlog
        self.steps = steps
        self.now = now
        self._should_stop = stop
        self._deferring = deferring
        self._catalog = catalog
        self._summary: Mapping[str, Mapping[str, Any]] = {}
        self._started = now()
        self._cleanup = ExitStack()  # of what the run started
        self._uuid = str(uuid.uuid4())
        self._initial = wiring.environment
        self._retrieval = Retrieval(
            wiring, steps, uuid=self._uuid, environment_fixed=asked.is_fixed, configured_environment=asked.configured
        )

    @property
    def settings(self) -> AgentSettings:
        """The settings of the wiring, in which facts may have set the node's name."""
        return self.wiring.settings

    async def execute(self) -> Outcome:
        """Do the run, write the state files, send the report. Expected errors are not raised: log, report and outcome have them."""
        settings = self.settings
        PATTERN_TIMEOUT.set(settings.pattern_timeout)
        applied: ApplyResult | None = None
        retrieved: RetrievedCatalog | None = None
        completed = False
        takes_report = True
        try:
            async with asyncio.timeout(settings.runtimeout or None):
                try:
                    retrieved = await self._catalog(self._retrieval)
                    applied = await self._apply(retrieved)
                    completed = applied.completed
                except NoCatalog as err:
                    takes_report = not isinstance(err, UnknownEnvironment)
                    log.error("%s", err)
                except PuppetError as err:
                    log.error("Failed to apply catalog: %s", text_with_hint(err))
                except OSError as err:
                    log.error("Failed to apply catalog: %s", err)
                except Exception:
                    # This is a fault of ours; the report of a failed run is the best place for it.
                    log.exception("Failed to apply catalog: the agent met an error that was not foreseen")
                completed = await self._postrun() and completed
                if retrieved is not None and settings.resubmit_facts:
                    await self._resubmit_facts()
        except TimeoutError:
            log.error(
                "Execution of Puppet configuration client did not complete within %d seconds and was terminated.", settings.runtimeout
            )
            completed = False
        self._cleanup.close()
        report = await self._report(retrieved, applied, completed, send=takes_report)
        return Outcome(completed, max(report.exit_bits, 0) if completed else 0, report, self._summary)

    # --- applying

    async def _apply(self, retrieved: RetrievedCatalog) -> ApplyResult:
        from shared.ral.catalog import resources_of
        from shared.types import KNOWN
        from shared.types.filebucket import Filebucket
        from shared.types.schedule import default_schedules

        from ..plugins.loading import plugins_for
        from ..ruby.needs import RubyNeeds
        from ..transaction.context import ApplyContext
        from ..transaction.run import apply_catalog

        settings, catalog = self.settings, retrieved.catalog
        dialect = await self._dialect()
        with self.steps.step("convert", metric="convert_catalog"):
            schedules = default_schedules() if settings.default_schedules else []
            defaults = [*schedules, Filebucket("puppet", {"path": str(settings.clientbucketdir)})]
            needs = RubyNeeds.of(settings, retrieved.facts.values, self.wiring.sources, self._should_stop)
            plugins = await asyncio.to_thread(plugins_for, catalog, [settings.plugindest], self.log, needs)
            self._cleanup.callback(plugins.close)
            resources = await asyncio.to_thread(
                resources_of,
                catalog,
                plugins.types,
                known=frozenset(KNOWN),
                defaults=defaults,
                resolve=self._resolver(retrieved),
                late=not settings.preprocess_deferred,
                broken=plugins.broken,
            )
        await self._cache_catalog(catalog, retrieved.cached)
        if settings.write_catalog_summary:
            await write_classes(settings.classfile, catalog.classes, self.log)
            await write_resources(settings.resourcefile, resources, self.log)
        # From here on only the catalog's head is used; its resources exist a second time by now.
        retrieved.catalog = catalog = catalog.model_copy(update={"resources": [], "edges": []})
        await self._prerun()
        store = TransactionStore(settings.transactionstorefile)
        providers = plugins.providers(files=lambda: self._file_context(catalog, dialect), facts=retrieved.facts.values)
        context = await ApplyContext.of(settings, self.log, providers, store=store, stop=self._should_stop, now=self.now)
        with self.steps.step("apply") as step:
            applied = await apply_catalog(resources, context)
            changed = sum(1 for status in applied.statuses.values() if status.changed)
            failed = sum(1 for status in applied.statuses.values() if status.failed)
            step.detail = f"{changed} changed, {failed} failed"
        return applied

    def _file_context(self, catalog: Catalog, dialect: Dialect) -> FileContext:
        from ..providers.file.context import FileContext

        settings, wiring = self.settings, self.wiring
        return FileContext.of(
            settings,
            catalog,
            self.log,
            sources=wiring.sources(static=dialect is MODERN, code_id=catalog.code_id or ""),
            environment=wiring.environment,
            digest=algorithm("md5" if dialect is LEGACY else settings.digest_algorithm),  # 3.x masters know only md5
            remote_bucket=wiring.bucket_at,
            lenses=(str(settings.plugindest / "augeas/lenses"),),
        )

    def _resolver(self, retrieved: RetrievedCatalog) -> Resolver | None:
        from .deferred import lazy_resolver

        make = self._deferring
        if make is None:
            return None
        return lazy_resolver(lambda: make(self.settings, self.wiring.environment, retrieved.facts.values, self.log))

    async def _cache_catalog(self, catalog: Catalog, cached: str) -> None:
        """Cache a catalog that can be applied, for runs in which the master is unreachable. Noop runs cache nothing."""
        cache = self.wiring.catalog.cache
        if cache is None or cached != "not_used" or self.settings.noop:
            return
        log.info("Caching catalog for %s", catalog.name)
        try:
            failpoint("agent.catalog-saving")
            # Metadata without a version would be outdated when the cached catalog is applied.
            lasting = {title: metadata for title, metadata in catalog.metadata.items() if metadata.get("content_uri")}
            catalog = catalog.model_copy(update={"metadata": lasting})
            await cache.save(Request(catalog.name, self.wiring.environment, body=catalog))
            failpoint("agent.catalog-cached")
        except OSError as err:
            log.error("Could not cache the catalog: %s", err)

    async def _prerun(self) -> None:
        if self.settings.prerun_command:
            with self.steps.step("prerun"):
                await self._run_command("prerun_command", self.settings.prerun_command)

    async def _postrun(self) -> bool:
        """Run postrun_command; return whether the run still counts as complete."""
        if not self.settings.postrun_command:
            return True
        try:
            with self.steps.step("postrun"):
                async with asyncio.timeout(self.settings.runtimeout or None):
                    await self._run_command("postrun_command", self.settings.postrun_command)
        except CommandFailed as err:
            log.error("%s", err)
            return False
        except TimeoutError:
            log.error("Could not run command from postrun_command: it did not finish within %d seconds", self.settings.runtimeout)
            return False
        return True

    async def _resubmit_facts(self) -> None:
        """Send the facts again, as the run may have changed them."""
        with self.steps.step("facts again", metric="resubmit_facts"):
            try:
                await self._retrieval.submit_facts()
            except (PuppetError, OSError) as err:
                log.error("Failed to submit facts: %s", err)

    async def _run_command(self, setting: str, command: str) -> None:
        for line in await run_command(setting, command):
            log.info("%s: %s", setting, line)

    # --- reporting

    async def _dialect(self) -> Dialect:
        """Return the dialect of the master; when it is unreachable, the remembered one, else the newer one."""
        known_dialect = self.wiring.dialects.get(self.wiring.server.site)
        if known_dialect is not None:
            return known_dialect
        try:
            return await self.wiring.server.dialect()
        except PeerError:
            return MODERN

    def _report_header(self, retrieved: RetrievedCatalog | None, dialect: Dialect) -> ReportHeader:
        from ..transaction.summary import ReportHeader

        catalog = retrieved.catalog if retrieved else None
        modern = dialect is not LEGACY
        return ReportHeader(
            host=self.settings.node_name_value,
            started=self._started,
            environment=self.wiring.environment,
            version=dialect.version,
            transaction_uuid=self._uuid,
            configuration_version=catalog.version if catalog else None,
            catalog_uuid=catalog.catalog_uuid if catalog else None,
            code_id=catalog.code_id if catalog else None,
            job_id=self.settings.job_id or None,
            server_used=str(self.wiring.server.site) if modern else None,
            cached_catalog_status=retrieved.cached if retrieved else "not_used",
            noop=self.settings.noop,
            report_format=dialect.report_format,
            all_resources=not self.settings.exclude_unchanged_resources,
        )

    async def _report(self, retrieved: RetrievedCatalog | None, applied: ApplyResult | None, completed: bool, *, send: bool) -> Report:
        """Make the report, write it here and `send` it to the master; when either fails, the result of the run stays the same."""
        from ..transaction.summary import report_of

        settings = self.settings
        dialect = self.wiring.dialects.get(self.wiring.server.site) or MODERN
        self.steps.metrics["total"] = self.steps.total()
        report = report_of(self._report_header(retrieved, dialect), self.log, applied, self.steps.metrics)
        if not completed and report.status != "failed":
            report = report.model_copy(update={"status": "failed"})
        self._summary = report.to_summary(last_run=int(self.now().timestamp()), initial_environment=self._initial)
        await write_summary(settings.lastrunfile, self._summary, self.log)
        failpoint("agent.summary-written")
        binding = self.wiring.indirector["report"]
        if settings.report and send:
            with self.steps.step("report") as step:
                try:
                    async with asyncio.timeout(settings.report_timeout):
                        await binding.save(Request(report.name, self.wiring.environment, body=report, ignore_cache_save=True))
                    step.detail = report.status
                except TimeoutError:
                    log.error("Could not send report: the master did not take it within %d seconds", settings.report_timeout)
                    step.detail = "not sent"
                except (PuppetError, OSError) as err:
                    log.error("Could not send report: %s", err)
                    step.detail = "not sent"
        try:
            await binding.save(Request(report.name, self.wiring.environment, body=report, ignore_terminus=True))
        except (PuppetError, OSError) as err:
            log.error("Could not save the report: %s", err)
        failpoint("agent.report-kept")
        return report
