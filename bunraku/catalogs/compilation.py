"""Compiling catalogs in this process, for commands: settings, environment, facts and node become a catalog."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, gather
from agent.facts.own import own_facts
from environments.config_version import version_of
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import DiskFiles
from environments.ruby import RubyProgram, RubySettings, find_ruby
from language.catalog.wire import wire_catalog
from language.codegen.codecache import CodeCache
from language.evaluation.compilation import Compilation
from language.evaluation.compile import begin, compile_node, raised_recursion_limit
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from language.syntax.checker import Diagnostic
from master.authorization.trusted import trusted_data
from shared.data.richdata import WireDeferred
from shared.errors import PuppetError
from shared.indirector import Request, Terminus
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import Facts, permitted_facts
from shared.models.node import Node
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.settings import AgentSettings, MasterSettings, load
from shared.settings.in_manifests import values_in_manifests
from shared.wire.dialects import MODERN

from ..environment import modules_of
from .deferring import resolve_deferred


@dataclass(frozen=True, slots=True)
class Manifest:
    """The code to compile: `code` as text, or the file or folder at `path`."""

    code: str | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """
    A catalog, the resolver of its deferred values, and the seconds that compiling took.

    Attributes:
        let_go: frees the compilation, once no value has to be resolved any more.
    """

    catalog: Catalog
    resolve: Callable[[WireDeferred], Any]
    seconds: float
    let_go: Callable[[], None]


def compiling_settings(flags: Mapping[str, Any], *, section: str = "user") -> tuple[AgentSettings, MasterSettings]:
    """Return the settings of a command that compiles here, whose pattern_timeout counts from now on; `section` is that of the second."""
    agent, master = load(AgentSettings, section="user", flags=flags), load(MasterSettings, section=section, flags=flags)
    PATTERN_TIMEOUT.set(master.pattern_timeout)
    return agent, master


def with_module_facts(sources: FactSources, environment: Environment) -> FactSources:
    """Return the sources with those that the modules of an environment have."""
    modules = modules_of(environment)
    return replace(
        sources,
        external=[*sources.external, *(folder for module in modules if (folder := module / "facts.d").is_dir())],
        custom=[*sources.custom, *(folder for module in modules if (folder := module / "lib" / "facter").is_dir())],
    )


async def facts_for(host: Host, sources: FactSources, environment: Environment, *, certname: str, noop: bool) -> dict[str, Any]:
    """Return this machine's facts, including those of the environment's modules, because there is no plugin sync before."""
    values = await gather(host, with_module_facts(sources, environment))
    return {**values, **own_facts(certname, MODERN.version, noop=noop)}


async def node_for(settings: MasterSettings, name: str) -> Node:
    """
    Return this node as the node terminus knows it.

    Raises:
        PuppetError: it fails, or does not know the node. ConfigError: there is no such terminus.
    """
    if settings.node_terminus == "plain":
        return Node(name=name)
    from master.bindings import node_factories
    from master.termini.registry import built_in_terminus

    terminus: Terminus[Node] = built_in_terminus("node", node_factories(settings), settings.node_terminus)
    node = await terminus.find(Request(name, settings.environment))
    if node is None:
        raise PuppetError(f"Could not find node {name}", hint="The node terminus does not know it.")
    return node


async def external_for(settings: MasterSettings, name: str) -> Mapping[str, Any]:
    """Return the data of trusted_external_command for this node; PuppetError when it fails."""
    if not settings.trusted_external_command:
        return {}
    from master.termini.trusted_external import TrustedExternal

    return await TrustedExternal.of(settings).about(name)


def settings_in_manifests(settings: MasterSettings, environment: Environment, manifest: Manifest) -> dict[str, Any]:
    """Return the values of `$settings::…` in manifests."""
    return values_in_manifests(settings, AgentSettings) | {
        "environment": environment.name,
        "manifest": "no_manifest" if manifest.path is None else str(manifest.path.absolute()),
        "modulepath": os.pathsep.join(environment.modulepath),
        "config_version": environment.config_version,
        "storeconfigs": False,
        "hiera_config": str(settings.site_hiera_config),
    }


def ruby_of(settings: MasterSettings) -> RubyProgram | None:
    """Return the Ruby program for templates and functions; None: there is none."""
    program = find_ruby(settings.ruby)
    return RubyProgram(RubySettings(program, settings.ruby_timeout, settings.ruby_answer)) if program else None


Say = Callable[[LogEntry], None]


@dataclass(frozen=True, slots=True)
class LocalEnvironment:
    """An environment with its cache, for repeated compilations."""

    settings: MasterSettings
    environment: Environment
    host: DirectoryEnvironment
    loader: Loader

    @classmethod
    def of(cls, settings: MasterSettings, environment: Environment, manifest: Manifest, log: Say) -> LocalEnvironment:
        host = DirectoryEnvironment(
            replace(environment, manifest=str(manifest.path.absolute()) if manifest.path is not None else None),
            DiskFiles(),
            settings=settings_in_manifests(settings, environment, manifest),
            code=manifest.code,
            services=EnvironmentServices(ruby=ruby_of(settings)),
        )

        def told(level: str, diagnostic: Diagnostic) -> None:
            log(LogEntry(level, diagnostic.message, diagnostic.where))

        return cls(settings, environment, host, Loader(host, NAMES, CodeCache(), log=told, builtins=all_functions()))

    def compilation(self, node: Node, facts: Mapping[str, Any], log: Say, external: Mapping[str, Any]) -> Compilation:
        """Return a compilation of this node's catalog; `external`: external data among the trusted facts."""
        permitted = permitted_facts(Facts(name=node.name, values=dict(facts)))
        node_input = NodeInput.for_node(
            node.name,
            self.environment.name,
            facts=permitted,
            parameters={**permitted, **node.parameters},
            classes=node.class_parameters(),
            trusted=trusted_data(node.name, None, external),
            server_facts={},
        )
        return begin(self.host, self.loader, node_input, log)

    def data(self, compilation: Compilation) -> dict[str, Any]:
        """
        Return the catalog of a compiler, as plain data. Blocks.

        Raises:
            CompileError: located, in the reference's words, with the node's name.
        """
        with raised_recursion_limit():
            compile_node(compilation)
            return wire_catalog(compilation, version=version_of(self.environment, timeout=self.settings.command_timeout), rich=True)


def compile_here(
    settings: MasterSettings,
    environment: Environment,
    manifest: Manifest,
    node: Node,
    facts: Mapping[str, Any],
    log: Say,
    external: Mapping[str, Any],
    *,
    profile: Callable[[str], None] | None = None,
) -> Compiled:
    """
    Return the catalog of this node; `profile` gets the slowest lines of a second compile. Blocks.

    Raises:
        CompileError: located, in the reference's words, with the node's name.
    """
    began = time.perf_counter()
    site = LocalEnvironment.of(settings, environment, manifest, log)
    compilation = site.compilation(node, facts, log, external)
    data = site.data(compilation)
    seconds = time.perf_counter() - began
    if profile is not None:
        profile(profile_text(site, node, facts, external))

    def done() -> None:
        site.host.close()
        compilation.dispose()

    return Compiled(CATALOG.model.from_data(data), lambda deferred: resolve_deferred(compilation, deferred), seconds, done)


def profile_text(site: LocalEnvironment, node: Node, facts: Mapping[str, Any], external: Mapping[str, Any]) -> str:
    """Compile a catalog once more, with everything read already, and return a table of the slowest lines."""
    from .profiling import LineTimes

    times = LineTimes()
    compilation = site.compilation(node, facts, lambda entry: None, external)
    with raised_recursion_limit(), times:
        compile_node(compilation)
    return times.text()
