"""Compile, print and compare catalogs. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data.plainjson import dumps_pretty
from shared.errors import BadData, ConfigError, NotFound, PuppetError
from shared.models.catalog import CATALOG, Catalog
from shared.process.cli import maybe_text
from shared.process.command import CommandSpec
from shared.process.log import level_of
from shared.settings import AgentSettings, MasterSettings, load

from ..catalogs.compilation import LocalEnvironment, Manifest, compiling_settings, external_for, node_for, profile_text
from ..catalogs.difference import difference
from ..catalogs.nodes import facts_of, given_facts
from ..console import complain, printer
from ..environment import environment_of
from ..faces import INDIRECTION_ACTIONS, IndirectionOptions

SAME, DIFFERENT, TROUBLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CatalogOptions(IndirectionOptions):
    """The command line of `puppet catalog`."""

    facts: str | None = maybe_text("FILE", "JSON or YAML: these facts override the node's")


@CommandSpec(
    "catalog",
    CatalogOptions,
    actions={
        "compile [NODE]": "compile a node's catalog on this machine, as the master would, and print it as JSON",
        "find [NODE]": "the same, or print a stored catalog of a terminus",
        "select NODE TYPE": "print the references of a catalog's resources of one type; '*' for all",
        "diff OLD NEW": "print how NEW differs from OLD: each a file, or NODE, NODE@ENVIRONMENT, @ENVIRONMENT to compile now",
        "download": "fetch this node's catalog from the master and store it where a run does",
        "apply": "apply this node's catalog: compiled here, fetched from the master (rest), or the stored one (json). No report is sent",
        **INDIRECTION_ACTIONS,
    },
    setting_docs={
        "--profile": "compile: print which lines of the manifests take the most time, on standard error; of a second, slower compile",
        "--catalog_terminus NAME": "where the catalog comes from; find: compiler (the default), json, yaml; apply: compiler, rest, json",
        "--environment NAME": "the environment to compile in; --manifest PATH another main manifest",
        "--noop": "apply: only print the changes that would be made",
    },
    notes="""Facts are those that the node sent to this master; a node that never sent any needs --facts.

    Exit codes: 0 done (diff: the same), 1 it could not be done (diff: they differ), 2 diff: it could not be done.""",
).main
def main(options: CatalogOptions, flags: dict[str, Any]) -> int:
    if options.is_for_indirection:
        from ..modulefaces.builtin import run_action

        return run_action(options, flags)
    if options.terminus:  # as the faces of Puppet call the setting
        flags["catalog_terminus"] = options.terminus
    command = CatalogCommand(options, flags)
    actions: dict[str, Callable[[], int | None]] = {
        "compile": command.compile, "find": command.find, "select": command.select,
        "diff": command.diff, "download": command.download, "apply": command.apply,
    }  # fmt: skip
    return options.choose(actions)() or 0


@dataclass(frozen=True, slots=True)
class CatalogCommand:
    """One call of `puppet catalog`, with the settings its command line gave."""

    options: CatalogOptions
    flags: dict[str, Any]

    def settings(self, **more: str) -> tuple[AgentSettings, MasterSettings]:
        return compiling_settings({**self.flags, **more}, section="master")

    def compile(self) -> None:
        agent, _ = self.settings()
        _print(self.compiled(self._name(), profile=agent.profile))

    def find(self) -> None:
        _, master = self.settings()
        if master.catalog_terminus == "compiler":
            self.compile()
            return
        name = self._name()
        catalog = asyncio.run(_stored_catalog(name, master))
        if catalog is None:
            raise NotFound(f"Could not find a catalog of {name} in the terminus {master.catalog_terminus}")
        from shared.wire.dialects import MODERN

        _print(catalog.to_data(MODERN))

    def select(self) -> None:
        name, type_name = self.options.exactly(2)
        catalog: Catalog = CATALOG.model.from_data(self.compiled(name))
        resources = [
            resource for resource in catalog.resources if type_name in ("*", resource.type) or resource.type.lower() == type_name.lower()
        ]
        if self.options.as_json:
            sys.stdout.buffer.write(dumps_pretty([resource.model_dump(exclude_none=True) for resource in resources]))
        else:
            print("\n".join(resource.ref for resource in resources) or "no matching resources found")

    def diff(self) -> int:
        """Print how two catalogs differ."""
        try:
            old, new = (self._operand(word) for word in self.options.exactly(2))
        except PuppetError as err:
            complain(err)
            return TROUBLE
        differences = difference(old, new)
        if self.options.as_json:
            sys.stdout.buffer.write(dumps_pretty(differences.data()))
        else:
            print(f"--- {_catalog_label(old)}\n+++ {_catalog_label(new)}")
            print("\n".join(differences.lines()))
        return DIFFERENT if differences else SAME

    def download(self) -> int:
        from ..catalogs.owncatalog import download

        self.options.exactly(0)
        return download(self._agents())

    def apply(self) -> int:
        from ..catalogs.owncatalog import apply

        self.options.exactly(0)
        settings = self._agents()
        return apply(settings, settings.catalog_terminus, lambda: CATALOG.model.from_data(self.compiled(settings.certname)))

    def _agents(self) -> AgentSettings:
        """Return the settings as this machine's agent has them."""
        return load(AgentSettings, section="agent", flags=self.flags)

    def compiled(self, name: str, environment: str = "", *, profile: bool = False) -> dict[str, Any]:
        """
        Return a node's catalog as plain data.

        Raises:
            CompileError: it cannot be compiled. NotFound: the environment is not there. PuppetError: node or facts are not to be had.
        """
        agent, master = self.settings(**({"environment": environment} if environment else {}))
        return asyncio.run(self._compiled(name, agent, master, profile=profile))

    async def _compiled(self, name: str, agent: AgentSettings, master: MasterSettings, *, profile: bool) -> dict[str, Any]:
        log = printer(level_of(agent))
        node = await node_for(master, name)
        if node.environment and "environment" not in self.flags and node.environment != master.environment:
            agent, master = self.settings(environment=node.environment)
        environment = environment_of(master)
        own_facts = {} if self.options.facts is None else given_facts(Path(self.options.facts))
        facts = {**await facts_of(name, agent, master, environment, required=not own_facts), **own_facts}
        site = LocalEnvironment.of(master, environment, Manifest(path=Path(environment.manifest) if environment.manifest else None), log)
        external = await external_for(master, node.name)
        data = site.data(site.compilation(node, facts, log, external))
        if profile:
            print(profile_text(site, node, facts, external), file=sys.stderr)
        return data

    def _name(self) -> str:
        """Return the requested node: this one when none is named."""
        return self.options.exactly(1)[0] if self.options.names else self.settings()[1].certname

    def _operand(self, word: str) -> Catalog:
        """Return one side of a comparison: a file, or a catalog to compile."""
        from ..catalogs.localrun import catalog_from

        path = Path(word)
        if path.is_file():
            try:
                return catalog_from(path.read_bytes())
            except BadData as err:
                raise BadData(f"{word}: {err.message}", hint=err.hint) from err
            except OSError as err:
                raise PuppetError(f"Could not read {word}: {err.strerror}") from err
        if "/" in word or word.endswith(".json"):
            raise NotFound(f"There is no catalog at {word}")
        name, _, environment = word.partition("@")
        catalog: Catalog = CATALOG.model.from_data(self.compiled(name or self.settings()[1].certname, environment))
        return catalog


async def _stored_catalog(name: str, master: MasterSettings) -> Catalog | None:
    """A catalog that a terminus has stored."""
    from shared.indirector import Request
    from shared.indirector.termini import Json, Yaml

    if master.catalog_terminus not in ("json", "yaml"):
        raise ConfigError(f"There is no terminus {master.catalog_terminus} for catalog", hint="There are compiler, json, yaml.")
    as_json = master.catalog_terminus == "json"
    terminus = Json(CATALOG, master.server_datadir / "catalog") if as_json else Yaml(CATALOG, master.yamldir / "catalog")
    catalog: Catalog | None = await terminus.find(Request(name, master.environment))
    return catalog


def _catalog_label(catalog: Catalog) -> str:
    return f"{catalog.name}, environment {catalog.environment}, version {catalog.version}"


def _print(data: Any) -> None:
    try:
        text = dumps_pretty(data)
    except RecursionError as err:
        raise PuppetError("A value of the catalog is nested too deeply for JSON") from err
    sys.stdout.buffer.write(text)
