"""The catalogs of a server's nodes, compiled by the installed Puppet and by this master, and their differences as a preview has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from environments.comparison.catalogs import CatalogComparison, NodeWords
from environments.directories import Environment, Environments
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from environments.module_sources import ModuleSources
from environments.settings import environment_settings
from master.bindings import BindingOptions, bind
from master.pools.compile_pool import CompilePool
from master.pools.jobs import CompileJob
from master.preview.nodes import PreviewNodes
from master.preview.pool import PreviewPool
from master.preview.result import PreviewResult, PreviewSide
from master.puppetdb.configured import puppetdb_client
from master.puppetdb.queries import PuppetDbQueries
from shared.clock import utc_now
from shared.data import plainjson
from shared.errors import CompileError, NotFound, PuppetError
from shared.settings import MasterSettings

ENVIRONMENT_FACT = "agent_specified_environment"
OnNode = Callable[[str, int], None]


class InstalledPuppet(Protocol):
    """A Puppet that compiles nodes, as `RealPuppet` does."""

    version: str

    def compile(self, job: CompileJob) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Comparer:
    """
    Compiles nodes with both programs.

    Args:
        settings: this master's, with the server's code and data.
        real: the installed Puppet.
    """

    settings: MasterSettings
    real: InstalledPuppet

    async def compare(self, names: Sequence[str], on_node: OnNode) -> PreviewResult:
        """
        Return the differences of these nodes, all nodes with facts when none is named.

        Args:
            on_node: called with the state of each finished node and the number of all.
        Raises:
            PuppetError: the nodes cannot be listed, or a process failed.
        """
        environments = Environments(environment_settings(self.settings))
        client = await asyncio.to_thread(puppetdb_client, self.settings)
        pool = PreviewPool.of(self.settings, environments, on_question=PuppetDbQueries(client)).compile_pool
        began = time.monotonic()
        sides = PreviewSide(f"Puppet {self.real.version}", ""), PreviewSide("this master", "")
        result = PreviewResult(*sides, environment="", time=utc_now().isoformat(timespec="seconds"))

        @cache
        def comparison(environment: str) -> CatalogComparison:
            return _comparison(environments.read(environment))

        try:
            indirector = await asyncio.to_thread(bind, self.settings, environments, pool, None, BindingOptions(client=client))
            nodes = {
                name: PreviewNodes(
                    settings=self.settings,
                    facts=indirector.facts,
                    nodes=indirector.node,
                    client=client,
                    environment=name,
                    classification="current",
                )
                for name in environments.names()
            }
            if not nodes:
                raise NotFound("There is no environment", hint="The setting is environmentpath.")
            listed = names or await next(iter(nodes.values())).all()
            for name in listed:
                outcome = await self._outcome(pool, await _job(name, nodes), comparison)
                result.add(name, outcome)
                on_node(outcome["state"], len(listed))
        finally:
            await pool.processes.close()
            await client.close()
        result.seconds = time.monotonic() - began
        return result

    async def _outcome(
        self, pool: CompilePool, job: CompileJob | PuppetError, comparison: Callable[[str], CatalogComparison]
    ) -> dict[str, Any]:
        """Return what `PreviewResult.add` takes of a node."""
        if isinstance(job, PuppetError):
            return _outcome("failed", errors=[_message(str(job), "old", job.hint)])
        theirs, ours = await asyncio.gather(asyncio.to_thread(self.real.compile, job), self._ours(pool, job))
        if isinstance(ours, CompileError):
            fails_there, place = "error" in theirs, ours.where
            error = _message(ours.message, "old" if fails_there else "new", ours.hint, (place.file, place.line) if place else (None, None))
            return _outcome("failed", errors=[error])
        if "error" in theirs:
            return _outcome("fixed", errors=[_message(theirs["error"], "fixed")])
        differences = comparison(job.environment).differences(theirs["catalog"], ours, NodeWords.of(job.certname, job.facts))
        return _outcome("changed" if differences else "unchanged", changes=list(differences.values()))

    async def _ours(self, pool: CompilePool, job: CompileJob) -> Mapping[str, Any] | CompileError:
        try:
            catalog: Mapping[str, Any] = plainjson.loads((await pool(job)).body)
        except CompileError as err:
            return err
        return catalog


def _comparison(environment: Environment) -> CatalogComparison:
    """Return the comparison of catalogs of an environment, whose files are the same for both programs."""
    sources = ModuleSources(DirectoryEnvironment(environment, DiskFiles()))
    return CatalogComparison((environment.root, environment.root), (sources, sources))


async def _job(name: str, nodes: Mapping[str, PreviewNodes]) -> CompileJob | PuppetError:
    """Return what a node is compiled from, in the environment that its classifier or its facts name; the error when it has no facts."""
    first = nodes.get("production", next(iter(nodes.values())))
    ordered = [first, *(each for each in nodes.values() if each is not first)]
    try:
        for each in ordered:
            job = await each.job(name)
            if job is None:
                continue
            asked = job.facts.get(ENVIRONMENT_FACT)
            other = nodes.get(asked) if isinstance(asked, str) and asked != each.environment else None
            return (await other.job(name) if other is not None else None) or job
    except PuppetError as err:
        return err
    return NotFound(f"The environment of {name} is not there")


def _message(text: str, state: str, hint: str = "", place: tuple[str | None, int | None] = (None, None)) -> dict[str, Any]:
    return {"message": text, "file": place[0], "line": place[1], "hint": hint, "state": state}


def _outcome(state: str, *, errors: Sequence[Any] = (), changes: Sequence[Any] = ()) -> dict[str, Any]:
    nothing: dict[str, Any] = {"warnings": (), "findings": (), "unstable": ()}
    return {"state": state, "compiled": True, "compilations": 2, "errors": errors, "changes": changes, **nothing}


def options_of(settings: MasterSettings, confdir: Path, scratch: Path) -> list[str]:
    """Return the words that tell the installed Puppet where its files are; what it writes goes to a folder of its own."""
    words = {
        "confdir": confdir,
        "codedir": settings.codedir,
        "ssldir": settings.ssldir,
        "vardir": scratch,
        "libdir": settings.libdir,
        "logdir": scratch / "log",
        "rundir": scratch / "run",
    }
    return [part for name, value in words.items() for part in (f"--{name}", str(value))]
