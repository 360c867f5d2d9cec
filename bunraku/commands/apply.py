"""Apply a manifest without a master. Source: command line reference 2.2."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.process.process_environment import public_directory_modes, secure_directories, set_search_path
from shared import VERSIONS
from shared.errors import ConfigError, PuppetError, text_with_hint
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.process import log as logs
from shared.process.cli import DEBUGGING, CommandOptions, flag, maybe_text, text
from shared.process.command import CommandSpec
from shared.process.daemon import take_priority
from shared.process.service import make_room
from shared.settings import AgentSettings, MasterSettings, load, read, unknown_settings

if TYPE_CHECKING:
    from agent.state.runlog import RunLog
    from environments.directories import Environment
    from language.log import LogEntry

    from ..catalogs.compilation import Manifest
    from ..catalogs.localrun import LocalRun, Prepared

log = logging.getLogger("puppet.apply")

UNREADABLE_CLASSES = 63

_PARSEONLY = "--parseonly has been removed. Please use 'puppet parser validate <manifest>'"


@dataclass(frozen=True, slots=True)
class ApplyOptions(CommandOptions):
    """The options that are not settings, or mean more here."""

    execute: str | None = maybe_text("CODE", "the manifest as text", "-e")  # it may look like an option
    test: bool = flag("--verbose --show_diff --detailed-exitcodes", "-t")
    detailed_exitcodes: bool = flag("exit with 2 for changes, 4 for failures, 6 for both", negatable=True)
    catalog: str = text("FILE", "apply a catalog document (- for standard input) and compile nothing", "-c")
    loadclasses: bool = flag("also declare the classes of the last run (the setting classfile)", "-L")
    # Only when asked for; the setting is for agents.
    write_catalog_summary: bool = flag("write the catalog's classes and resources to classes.txt and resources.txt", negatable=True)
    modulepath: str = text("FOLDERS", "directories of modules, instead of the environment's; colon-separated")
    version: bool = flag("print the version", "-V")
    parseonly: bool = flag(None)
    use_nodes: bool = flag(None)  # without effect since 2.6


@CommandSpec(
    "apply",
    ApplyOptions,
    usage=["[FILE | FOLDER] [--execute CODE] [--noop] [--test] [--SETTING VALUE ...]", "--catalog FILE"],
    text="""Compiles a manifest on this machine and applies it, without a master: modules, data and files come from the environment's
    folders. Without FILE and --execute the manifest is read from standard input.""",
    setting_docs={
        "--noop": "only print the changes that would be made",
        "--profile": "print which lines of the manifests take the most time (on standard error)",
        "--logdest DEST, -l": "console, syslog, journal, or files' absolute paths; comma-separated",
    },
    aliases={**DEBUGGING, "-l": "--logdest"},
    notes="""Exit codes: 0 applied, 1 it could not be compiled or applied, 63 the file of classes cannot be read; with
    --detailed-exitcodes 2 changes, 4 failures, 6 both.""",
    is_face=False,
).main
def main(options: ApplyOptions, flags: dict[str, Any]) -> int:
    if options.version:
        print(VERSIONS)
        return 0
    if options.parseonly:
        raise ConfigError(_PARSEONLY)
    options, flags = with_test(options, flags)
    settings = load(AgentSettings, section="user", flags=flags)
    master = load(MasterSettings, section="user", flags=flags)
    if master.given("storeconfigs"):
        hint = "`puppet apply` neither exports nor collects: set it in the section [server] only."
        raise ConfigError("Could not set storeconfigs to 'true': that is not supported here", hint=hint)
    make_room(settings)
    logs.set_up_by(settings, foreground=True, ident="puppet-user")
    for sentence in unknown_settings(read(settings.config), MasterSettings, AgentSettings):
        log.warning("%s", sentence)
    set_search_path(settings.path, os.environ)
    take_priority(settings.priority)
    PATTERN_TIMEOUT.set(settings.pattern_timeout)
    try:
        return asyncio.run(ApplyCommand(options, settings, master, logs.level_of(settings)).run())
    except KeyboardInterrupt:
        print("Exiting", file=sys.stderr)
        return 1


def with_test(options: ApplyOptions, flags: dict[str, Any]) -> tuple[ApplyOptions, dict[str, Any]]:
    """Return options and settings with those implied by --test."""
    if not options.test:
        return options, flags
    return replace(options, detailed_exitcodes=True), {"verbose": True, "show_diff": True, "splay": False, **flags}


class ApplyCommand:
    """One `puppet apply`."""

    def __init__(self, options: ApplyOptions, settings: AgentSettings, master: MasterSettings, level: str) -> None:
        from agent.state.logbridge import print_line
        from agent.state.runlog import RunLog

        self.options = options
        self.settings = settings
        self.master = master
        self.log: RunLog = RunLog(level=level, printers=[print_line])
        self.times: dict[str, float] = {}

    async def run(self) -> int:
        """Return the exit code, after logging errors."""
        from agent.state.logbridge import record_logging

        with record_logging(self.log):
            try:
                secure_directories(
                    (self.settings.vardir, self.settings.statedir, self.settings.publicdir), public_directory_modes(self.settings)
                )
                return await (self._apply_document() if self.options.catalog else self._apply_manifest())
            except PuppetError as err:
                self._complain(err)
            except TimeoutError:
                seconds = self.settings.runtimeout
                self.log.err(f"Execution of catalog run did not complete within {seconds} seconds and was terminated.")
            except OSError as err:
                self.log.err(f"Could not run: {err}")
        return 1

    def _complain(self, err: PuppetError) -> None:
        self.log.err(text_with_hint(err))

    async def _apply_manifest(self) -> int:
        from agent.facts.builtin.host import Host
        from agent.run.factsources import fact_sources
        from agent.run.nodename import with_node_name

        from ..catalogs.compilation import compile_here, external_for, facts_for, node_for
        from ..environment import environment_of

        settings, options = self.settings, self.options
        manifest = self._manifest()
        environment = environment_of(self.master, modulepath=options.modulepath)
        await self._splay()
        facts = await facts_for(Host(), fact_sources(settings), environment, certname=settings.certname, noop=settings.noop)
        settings = self.settings = with_node_name(settings, facts)
        node = await node_for(self.master, settings.node_name_value)
        external = await external_for(self.master, settings.node_name_value)
        if options.loadclasses and (classes := self._classes()) is None:
            return UNREADABLE_CLASSES
        elif options.loadclasses:
            node = node.model_copy(update={"classes": classes})
        # On the loop's own thread: nothing else waits here, and deep manifests need the main thread's stack.
        compiled = compile_here(
            self.master, environment, manifest, node, facts, self._say, external, profile=self._print_profile if settings.profile else None
        )
        self.times["config_retrieval"] = compiled.seconds
        self.log.notice(f"Compiled catalog for {node.name} in environment {environment.name} in {compiled.seconds:.2f} seconds")
        run = self._local_run(environment, facts)
        prepared = await run.prepared(compiled.catalog, compiled.resolve)
        if not any(resource.pending for resource in prepared.resources.order):  # else its functions are called during the run
            compiled.let_go()
        del compiled  # all of it is there a second time by now
        return await self._finish(run, prepared)

    async def _apply_document(self) -> int:
        from agent.facts.builtin.host import Host
        from agent.facts.facter import gather
        from agent.run.factsources import fact_sources
        from agent.run.nodename import with_node_name

        from ..catalogs.localrun import catalog_from
        from ..environment import environment_of

        name = self.options.catalog
        try:
            text = await asyncio.to_thread(sys.stdin.buffer.read if name == "-" else Path(name).read_bytes)
        except OSError as err:
            raise PuppetError(f"Could not read the catalog {name}: {err.strerror}") from err
        catalog = catalog_from(text)
        environment = environment_of(self.master, modulepath=self.options.modulepath)
        facts = await gather(Host(), fact_sources(self.settings))
        self.settings = with_node_name(self.settings, facts)
        run = self._local_run(environment, facts)
        return await self._finish(run, await run.prepared(catalog, None))

    def _local_run(self, environment: Environment, facts: dict[str, Any]) -> LocalRun:
        from ..catalogs.localrun import LocalRun
        from ..environment import modules_of

        return LocalRun(
            self.settings,
            self.master,
            tuple(map(Path, environment.modulepath)),
            self.log,
            facts,
            datetime.now(UTC),
            libs=tuple(module / "lib" for module in modules_of(environment)),
            classes_too=self.options.write_catalog_summary,
        )

    async def _finish(self, run: LocalRun, prepared: Prepared) -> int:
        report, completed = await run.apply(prepared, self.times)
        if self.settings.summarize:
            from agent.transaction.summary import summary_text

            now = int(datetime.now(UTC).timestamp())
            print(summary_text(report.to_summary(last_run=now, run_mode="user", initial_environment=self.settings.environment)))
        if not completed:
            return 1
        if self.options.detailed_exitcodes:
            return max(report.exit_bits, 0)
        return 1 if any(resource.fault for resource in prepared.resources.order) else 0  # as for a manifest that does not compile

    def _say(self, entry: LogEntry) -> None:
        self.log.log(entry.level, entry.text, source=entry.source or "Puppet", where=entry.where)

    def _print_profile(self, text: str) -> None:
        print(text, file=sys.stderr)

    def _manifest(self) -> Manifest:
        """Return the manifest of the command line: text, a file or folder, or standard input if it is a pipe."""
        from ..catalogs.compilation import Manifest

        if self.options.execute is not None:
            return Manifest(code=self.options.execute)
        if not self.options.arguments:
            try:
                return Manifest(code=sys.stdin.buffer.read().decode("utf-8"))
            except UnicodeDecodeError as err:
                raise PuppetError(f"Could not run: the manifest on standard input is not UTF-8: {err.reason} at octet {err.start}") from err
        path = Path(self.options.arguments[0])
        if not path.exists():
            raise PuppetError(f"Could not run: Could not find file {path}", hint=self.options.flag_hint)
        if len(self.options.arguments) > 1:
            self.log.warning(f"Only one file can be applied per run.  Skipping {', '.join(self.options.arguments[1:])}")
        return Manifest(path=path)

    def _classes(self) -> list[str] | None:
        """Return the names in the file of classes; [] without a file, None, after an error message, when it cannot be read."""
        path = self.settings.classfile
        try:
            return path.read_text("utf-8").split()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError):
            print(f"{path} is not readable", file=sys.stderr)
            return None

    async def _splay(self) -> None:
        """Wait a random part of splaylimit, so that a fleet's cron jobs do not run at once."""
        if self.settings.splay and self.settings.splaylimit:
            seconds = random.randrange(self.settings.splaylimit + 1)  # noqa: S311  # not a secret
            self.log.info(f"Sleeping for {seconds} seconds (splay is enabled)")
            await asyncio.sleep(seconds)
