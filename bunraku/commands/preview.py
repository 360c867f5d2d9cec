"""Show what a code change changes in the catalogs of many nodes."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import ConfigError, PuppetError
from shared.filesystem.files import write_atomic
from shared.process.cli import CommandOptions, flag, maybe_text, text, texts
from shared.process.command import CommandSpec
from shared.settings import AgentSettings, MasterSettings, load
from shared.settings.master import settings_beside_master

from ..catalogs.nodes import given_facts
from ..console import say
from ..previews.progress import PreviewProgress
from ..previews.request import NodeSelection, SideNames, notes_about
from ..previews.text import markdown, text_lines
from ..progress import ProgressLine

FORMATS = ("text", "json", "markdown")
CLASSIFICATIONS = ("stored", "current")
FAIL_ON = ("", "new-errors", "changes")
DIFFERENT, FAILED = 2, 4


@dataclass(frozen=True, slots=True)
class PreviewOptions(CommandOptions):
    """The command line of `puppet preview` without settings."""

    from_: str = text("SIDE", "a deployed environment, or a folder (with a slash in its name); with --repo a branch, tag or commit")
    to: str = text("SIDE", "the same, of the changed code")
    repo: str = text("ADDRESS", "a control repository, of which git exports both revisions to a temporary folder")
    server: str = text("HOST", "a master that previews two of its environments, if its auth.conf allows this host /puppet/v1/preview")
    modules: tuple[str, ...] = texts("FOLDER", "further modules of both sides, as those that a Puppetfile names; may be repeated")
    nodes: tuple[str, ...] = texts("NAME,…", "the nodes with these certnames")
    file: str | None = maybe_text("FILE", "the nodes listed in a file, one per line")
    query: str | None = maybe_text("PQL", "the nodes that a query to the store or PuppetDB returns: 'nodes[certname] { facts { … } }'")
    all: bool = flag("all nodes whose facts are stored")
    facts: str = text("FILE", "JSON or YAML: these facts override those of every node; 'stored', the default, for none", default="stored")
    classification: str = text("WHICH", "classes and parameters: stored (the default), of a node's last run, or current", default="stored")
    json: bool = flag("the same as --format json")
    format: str = text("FORMAT", "text (the default), json or markdown", default="text")
    html: str | None = maybe_text("FILE", "write a page as well, to search and filter in a browser; it needs no network")
    workers: str = text("NUMBER", "processes that compile; by default one per processor", default="0")
    fail_on: str = text("WHAT", "only this makes the exit code differ from 0: new-errors, or changes")

    def check_options(self) -> None:
        """Raise ConfigError for an incomplete or contradictory command line."""
        if self.arguments:
            raise ConfigError(
                f"puppet preview takes no arguments, but you gave {' '.join(self.arguments)}",
                hint=self.flag_hint or "See puppet preview --help.",
            )
        if not self.from_ or not self.to:
            raise ConfigError("Name the sides to compare", hint="Give --from and --to.")
        self.selection.check()
        here_only = {"--repo": self.repo, "--modules": self.modules, "--facts": self.facts != "stored", "--workers": self.workers != "0"}
        if self.server and (given := [word for word, value in here_only.items() if value]):
            raise ConfigError(f"A preview by --server takes no {' and no '.join(given)}", hint="They are for previews on a master itself.")
        if self.format not in FORMATS:
            raise ConfigError(f"There is no format '{self.format}'", hint=f"There are {', '.join(FORMATS)}.")
        if self.classification not in CLASSIFICATIONS:
            raise ConfigError(f"There is no classification '{self.classification}'", hint=f"There are {' and '.join(CLASSIFICATIONS)}.")
        if self.fail_on not in FAIL_ON:
            raise ConfigError(f"Nothing called '{self.fail_on}' makes a preview fail", hint="There are new-errors and changes.")
        if not self.workers.isdecimal() or int(self.workers) > 256:
            raise ConfigError(f"'{self.workers}' is no number of processes", hint="Give one from 1 to 256.")

        if self.html is not None and not Path(self.html).absolute().parent.is_dir():
            raise ConfigError(f"There is no folder for {self.html}", hint="Make it first; --html names a file.")

    @property
    def selection(self) -> NodeSelection:
        names = tuple(name for word in self.nodes for name in word.split(",") if name)
        return NodeSelection(names, self.file, self.query, self.all)

    @property
    def form(self) -> str:
        return "json" if self.json else self.format


@CommandSpec(
    "preview",
    PreviewOptions,
    (MasterSettings,),
    usage=[
        "--from SIDE --to SIDE --all | --nodes NAME,… | --file FILE | --query PQL",
        "--repo ADDRESS --from REVISION --to REVISION --all | …",
        "--server HOST --from ENVIRONMENT --to ENVIRONMENT --all | …",
    ],
    text="""Compiles the catalogs of nodes from two states of the code, on a master, and prints the differences. Nothing is deployed. A node
    that the change cannot affect is compiled only once.""",
    setting_docs={"--environment NAME": "the environment's name in both compilations: that of --from by default, or production"},
    notes="""Facts are those that a node sent last, trusted data those of its certificate, classes and parameters those of its last run; a
    node without a stored run is classified now. Exported resources come from the current store.

    Exit codes: 0 no difference, 2 differences, 4 nodes cannot be compiled from --to, 6 both; 1 when there is no preview. With --fail-on
    new-errors 4 when nodes fail that did not; with --fail-on changes 2 when catalogs differ.""",
    is_face=False,
).main
def main(options: PreviewOptions, flags: dict[str, Any]) -> int:
    environment = str(flags.get("environment", ""))
    settings = settings_beside_master(flags)
    logging.getLogger("puppet").setLevel(logging.ERROR)
    logging.getLogger("puppet.preview").setLevel(logging.WARNING)
    command = PreviewCommand(options, settings, environment)
    if not options.server:
        return command.run()
    return command.run_remotely(load(AgentSettings, section="agent", flags={**flags, "server": options.server}))


@dataclass(frozen=True, slots=True)
class PreviewCommand:
    """One call of `puppet preview`; `environment` is the one on its command line, '' for none."""

    options: PreviewOptions
    settings: MasterSettings
    environment: str

    def run(self) -> int:
        """Compile, print, and return the exit code."""
        from dataclasses import replace

        from environments.directories import Environments
        from environments.settings import environment_settings

        limits = environment_settings(self.settings)
        modules = tuple(str(Path(folder).resolve()) for folder in self.options.modules)
        environments = Environments(replace(limits, basemodulepath=(*limits.basemodulepath, *modules)))
        names = SideNames(self.options.from_, self.options.to, self.options.repo)
        with names.opened(environments, self.environment, self.settings.command_timeout) as sides:
            for note in notes_about(sides):
                say("warning", note)
            result = asyncio.run(self.result(environments, sides))
        return self._finish(result.data())

    def run_remotely(self, settings: AgentSettings) -> int:
        """Let a master compile, print the result, and return the exit code."""
        from ..previews.remote import remote_preview

        options = self.options
        question: dict[str, Any] = {"from": options.from_, "to": options.to, "environment": self.environment}
        if options.classification != CLASSIFICATIONS[0]:
            question["classification"] = options.classification
        if options.all:
            question["all"] = True
        elif options.query is not None:
            question["query"] = options.query
        else:
            question["nodes"] = options.selection.listed()
        with _progress(0) as progress:
            result = asyncio.run(remote_preview(settings, question, progress.count))
        return self._finish(result)

    def _finish(self, result: dict[str, Any]) -> int:
        if number := len(result.get("classified_now", ())):
            nodes = "1 node was" if number == 1 else f"{number} nodes were"
            say("notice", f"{nodes} classified now, because no run of theirs is stored: see node_cache_terminus")
        if self.options.html is not None:
            write_page(Path(self.options.html), result)
        self._print(result)
        return self._code(result)

    async def result(self, environments: Any, sides: Any) -> Any:
        """Return the `PreviewResult` of the selected nodes."""
        from master.bindings import BindingOptions, bind
        from master.preview.nodes import PreviewNodes
        from master.preview.pool import PreviewPool
        from master.preview.run import run_preview
        from master.puppetdb.configured import puppetdb_client
        from master.puppetdb.queries import PuppetDbQueries

        client = await asyncio.to_thread(puppetdb_client, self.settings)
        pool = PreviewPool.of(self.settings, environments, size=int(self.options.workers), on_question=PuppetDbQueries(client))
        try:
            indirector = await asyncio.to_thread(bind, self.settings, environments, pool.compile_pool, None, BindingOptions(client=client))
            nodes = PreviewNodes(
                settings=self.settings,
                facts=indirector.facts,
                nodes=indirector.node,
                client=client,
                environment=sides.environment,
                classification=self.options.classification,
                given_facts={} if self.options.facts == "stored" else given_facts(Path(self.options.facts)),
            )
            certnames = await self.options.selection.certnames(nodes)
            with _progress(len(certnames)) as progress:
                result = await run_preview(
                    pool,
                    sides,
                    nodes,
                    certnames,
                    on_outcome=lambda node, outcome: progress.count(outcome["state"]),
                )
        finally:
            await pool.processes.close()
            await client.close()
        return result

    def _print(self, result: dict[str, Any]) -> None:
        if self.options.form == "json":
            sys.stdout.buffer.write(plainjson.dumps(result) + b"\n")
        elif self.options.form == "markdown":
            sys.stdout.write(markdown(result))
        else:
            for line in text_lines(result, colored=sys.stdout.isatty()):
                print(line)

    def _code(self, result: dict[str, Any]) -> int:
        if self.options.fail_on == "new-errors":
            return FAILED if any(error["state"] == "new" for error in result["errors"]) else 0
        different = DIFFERENT if result["changes"] else 0
        if self.options.fail_on == "changes":
            return different
        return different + (FAILED if result["counts"]["failed"] else 0)


def write_page(path: Path, data: dict[str, Any]) -> None:
    """Write the page of a result."""
    from master.preview.page import render_html

    write_html(path, render_html(data))


def write_html(path: Path, page: str) -> None:
    """Write a page; only its owner may read it, because it shows the contents of files or errors."""
    try:
        write_atomic(path, page.encode(), mode=0o600)
    except OSError as err:
        raise PuppetError(f"The page could not be written to {path}: {err.strerror}") from err
    say("notice", f"The page is {path}")


@contextmanager
def _progress(total: int) -> Iterator[PreviewProgress]:
    with ProgressLine() as line:
        yield PreviewProgress(line, total)
