"""Applying a catalog without a master: local file serving, local buckets, the report processed here."""

from __future__ import annotations

import asyncio
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.plugins.loading import Plugins, plugins_for
from agent.providers.file.context import FileContext
from agent.ruby.needs import RubyNeeds
from agent.run.admincommands import CommandFailed, run_command
from agent.servers.sources import SourceRouter
from agent.state.runlog import RunLog
from agent.state.statefiles import write_classes, write_report, write_resources, write_summary
from agent.transaction.context import ApplyContext
from agent.transaction.run import ApplyResult, apply_catalog
from agent.transaction.summary import ReportHeader, report_of
from master.reports.processors import Http, Logged, Processed, Processor, Render, Store, processors_for
from master.termini.files import ContentServer, MetadataServer
from master.termini.mounts import FileServer
from shared.data import plainjson
from shared.data.richdata import WireDeferred
from shared.errors import BadData, PuppetError
from shared.filesystem.checksums import algorithm
from shared.indirector import Binding, Request
from shared.models.catalog import CATALOG, Catalog
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.models.report import Report
from shared.ral import Providers
from shared.ral.catalog import RalCatalog, resources_of
from shared.settings import AgentSettings, MasterSettings
from shared.types import KNOWN
from shared.types.filebucket import Filebucket
from shared.types.schedule import default_schedules
from shared.wire.dialects import MODERN

RUN_MODE = "user"  # what `puppet apply` is in the summary


@dataclass(frozen=True, slots=True)
class Prepared:
    """The resources of a catalog with their providers; of the catalog itself only the head is stored."""

    head: Catalog
    resources: RalCatalog
    providers: Providers
    plugins: Plugins


@dataclass(frozen=True, slots=True)
class LocalRun:
    """
    The data of a run other than its catalog.

    Attributes:
        modulepath: the folders that serve `puppet:///modules/…`.
        libs: folders like a module's `lib`, with types and providers in Python.
        classes_too: also write classes.txt and resources.txt.
    """

    settings: AgentSettings
    master: MasterSettings
    modulepath: tuple[Path, ...]
    log: RunLog
    facts: Mapping[str, Any]
    started: datetime
    libs: tuple[Path, ...] = ()
    classes_too: bool = False

    async def prepared(self, catalog: Catalog, resolve: Callable[[WireDeferred], Any] | None) -> Prepared:
        """
        Return a catalog as the run applies it.

        Args:
            resolve: calls a deferred value's function; None: there must be none.
        Raises:
            PuppetError: the catalog cannot be applied at all; nothing was changed.
        """
        needs = RubyNeeds.of(self.settings, self.facts, lambda: self._sources(catalog))
        plugins = await asyncio.to_thread(plugins_for, catalog, self.libs, self.log, needs)
        resources = await asyncio.to_thread(
            resources_of,
            catalog,
            plugins.types,
            known=frozenset(KNOWN),
            defaults=[*(default_schedules() if self.settings.default_schedules else []), self._bucket()],
            resolve=resolve,
            late=not self.settings.preprocess_deferred,
            broken=plugins.broken,
        )
        files = self._files(catalog)
        providers = plugins.providers(files=lambda: files, facts=self.facts)
        return Prepared(catalog.model_copy(update={"resources": [], "edges": []}), resources, providers, plugins)

    async def apply(self, prepared: Prepared, times: dict[str, float]) -> tuple[Report, bool]:
        """Return the report of the run, and whether there was one; `times`: seconds by phase, before the run."""
        catalog = prepared.head
        if self.classes_too:
            await write_classes(self.settings.classfile, catalog.classes, self.log)
            await write_resources(self.settings.resourcefile, prepared.resources, self.log)
        self.log.info(f"Using environment '{catalog.environment or self.settings.environment}'")
        applied: ApplyResult | None = None
        completed = False
        if await self._command("prerun_command", self.settings.prerun_command):
            try:
                applied = await self._applied(prepared)
            finally:
                prepared.plugins.close()
            completed = applied.completed
        completed = await self._command("postrun_command", self.settings.postrun_command) and completed
        return await self._reported(catalog, applied, completed, times), completed

    def _bucket(self) -> Filebucket:
        return Filebucket("puppet", {"path": str(self.settings.clientbucketdir)})

    async def _applied(self, prepared: Prepared) -> ApplyResult:
        context = await ApplyContext.of(self.settings, self.log, prepared.providers)
        with stops(self.log) as stop:
            if prepared.plugins.ruby is not None:
                prepared.plugins.ruby.stop = stop
            async with asyncio.timeout(self.settings.runtimeout or None):
                applied = await apply_catalog(prepared.resources, replace(context, stop=stop))
        return replace(applied, completed=False) if stop() else applied

    def _sources(self, catalog: Catalog) -> SourceRouter:
        from agent.servers.websources import web_sources

        settings = self.settings
        server = FileServer(
            settings.fileserverconfig,
            modulepath=lambda environment, version="": self.modulepath,
            matcher=lambda allow, deny, client: True,  # who may read is a question to a server, not to oneself
            filetimeout=settings.filetimeout,
        )
        return SourceRouter(
            Binding(FILE_METADATA, MetadataServer(server, digest=settings.digest_algorithm)),
            Binding(FILE_CONTENT, ContentServer(server)),
            environment=catalog.environment or settings.environment,
            web=lambda: web_sources(settings),
        )

    def _files(self, catalog: Catalog) -> FileContext:
        settings = self.settings
        return FileContext.of(
            settings,
            catalog,
            self.log,
            sources=self._sources(catalog),
            environment=catalog.environment or settings.environment,
            digest=algorithm(settings.digest_algorithm),
            lenses=tuple(str(path) for folder in self.modulepath for path in folder.glob("*/lib/augeas/lenses")),
        )

    async def _command(self, setting: str, command: str) -> bool:
        """Return whether an administrator's command ended with 0."""
        try:
            if command:
                await run_command(setting, command)
        except CommandFailed as err:
            self.log.err(str(err))
            return False
        return True

    async def _reported(self, catalog: Catalog, applied: ApplyResult | None, completed: bool, times: dict[str, float]) -> Report:
        """Return the report, given to the processors of the setting `reports`, and stored as that of the last run."""
        settings = self.settings
        times["total"] = (datetime.now(UTC) - self.started).total_seconds()
        environment = catalog.environment or settings.environment
        report = report_of(
            ReportHeader(
                host=settings.node_name_value,
                started=self.started,
                environment=environment,
                version=MODERN.version,
                transaction_uuid=str(uuid.uuid4()),
                configuration_version=catalog.version,
                catalog_uuid=catalog.catalog_uuid,
                cached_catalog_status="not_used",
                noop=settings.noop,
                all_resources=not settings.exclude_unchanged_resources,
            ),
            self.log,
            applied,
            times,
        )
        if not completed and report.status != "failed":
            report = report.model_copy(update={"status": "failed"})
        summary = report.to_summary(
            last_run=int(datetime.now(UTC).timestamp()), run_mode=RUN_MODE, initial_environment=settings.environment
        )
        await write_summary(settings.lastrunfile, summary, self.log)
        body = await asyncio.to_thread(report.to_ruby_yaml)
        await write_report(settings.lastrunreport, body, self.log)
        if settings.report:
            try:
                await self._processors(lambda report: body).save(Request(report.name, environment, body=report))
            except (PuppetError, OSError) as err:
                self.log.err(f"Could not send report: {err}")
        return report

    def _processors(self, render: Render) -> Processed:
        master = self.master
        makers: dict[str, Callable[[], Processor]] = {
            "store": lambda: Store(master.reportdir, render=render),
            "log": Logged,
            "http": lambda: Http.of(master, render),
        }
        return Processed(processors_for(master.reports, makers))


@contextmanager
def stops(log: RunLog) -> Iterator[Callable[[], bool]]:
    """
    Within this context, INT and TERM let the current resource finish and the rest be skipped; a second one ends the process at once.

    Yields a function that returns whether there was one.
    """
    caught: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        log.notice(f"Caught {number.name.removeprefix('SIG')}; exiting")
        caught.append(number)
        restore()

    def restore() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    loop = asyncio.get_running_loop()
    # Only the main thread hears signals; elsewhere nothing ends a run early.
    signals = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    for number in signals:
        loop.add_signal_handler(number, stop, number)
    try:
        yield lambda: bool(caught)
    finally:
        restore()


def catalog_from(text: bytes) -> Catalog:
    """
    Return the catalog in a document: JSON, with rich data or without, wrapped as 3.x wrote it or bare.

    Raises:
        BadData: it is not a catalog, or its parts contradict each other.
    """
    try:
        data = plainjson.loads(text)
        if isinstance(data, dict) and "document_type" in data and isinstance(data.get("data"), dict):
            data = data["data"]
        return CATALOG.model.from_data(data).checked()
    except BadData as err:
        raise BadData(f"Could not deserialize catalog from rich_data_json: {err.message}", hint=err.hint) from err
