"""Print and change the resources of this system. Source: command line reference 2.7."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.plugins.loading import Plugins
from agent.state.runlog import RunLog
from shared.data import plainyaml
from shared.errors import PuppetError, ResourceError, Unsupported, text_with_hint
from shared.filesystem.textdiff import Differ
from shared.process import log as logs
from shared.process.cli import CommandOptions, flag, text, texts
from shared.process.command import CommandSpec
from shared.ral import ABSENT, Provider, Providers, State, Type, displayed
from shared.ral.catalog import RalCatalog
from shared.ral.handling import Handler
from shared.settings import AgentSettings, load
from shared.types import builtin_types

from ..catalogs.moduletypes import facts_here, names_of_types, plugins_here
from ..environment import plugin_folders

log = logging.getLogger("puppet.resource")

_PAIR = re.compile(r"(\w+)=(.*)", re.DOTALL)
_NO_LIST = {"file": "Listing all file instances is not supported.  Please specify a file or directory, e.g. puppet resource file /etc"}


_NOTHING: tuple[Any, ...] = (None, ABSENT, "notlink", "", [], ())  # what a property's value is that is not there
_SAID_OTHERWISE = frozenset((("file", "checksum_value"),))  # content says it already


@dataclass(frozen=True, slots=True)
class ResourceOptions(CommandOptions):
    """The command line without settings."""

    param: tuple[str, ...] = texts("PARAMETER", "also print this parameter; may be repeated", "-p")
    to_yaml: bool = flag("print YAML", "-y")
    types: bool = flag("print the types", "-t")
    edit: bool = flag("open the printed resources in $EDITOR, and apply the edited text", "-e")
    modulepath: str = text("FOLDERS", "directories of modules with types, instead of the environment's; colon-separated")


@dataclass(frozen=True, slots=True)
class PrintedResource:
    """One resource as it is printed: attributes in their order, `ensure` first."""

    type: str
    title: str
    attributes: Mapping[str, Any]

    def manifest(self) -> str:
        """Return the resource in Puppet's language, with aligned arrows."""
        width = max(map(len, self.attributes), default=0)
        lines = [f"  {name:<{width}} => {displayed(value)},\n" for name, value in self.attributes.items()]
        return f"{self.type} {{ {displayed(self.title)}:\n{''.join(lines)}}}"


@CommandSpec(
    "resource",
    ResourceOptions,
    usage=["TYPE [NAME] [ATTRIBUTE=VALUE ...] [--to_yaml] [--param PARAMETER]", "--types"],
    text="""Prints the resources of a type that exist on this system, or the one of that name, in Puppet's language. Attributes are set
    first, as in a run; the command then prints the new state.""",
    setting_docs={"--noop": "only print the changes that would be made"},
    arguments_only_after=2,
    notes="Exit codes: 0, also when a change failed (an error is printed); 1 for a usage error.",
    is_face=False,
).main
def main(options: ResourceOptions, flags: dict[str, Any]) -> int:
    settings = load(AgentSettings, section="user", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    try:
        folders = plugin_folders(settings, flags, options.modulepath)
        if options.types:
            print("\n".join(sorted({*builtin_types(), *names_of_types(folders)})))
            return 0
        resources = asyncio.run(ResourceCommand(options, settings, logs.level_of(settings), folders).run())
    except PuppetError as err:
        log.error("Could not run: %s", text_with_hint(err))
        return 1
    printed = render(options.arguments[0].lower(), resources, options.to_yaml)
    if options.edit and not options.to_yaml:
        return edit_and_apply(printed)
    if printed:
        print(printed)
    return 0


def plain(value: Any) -> Any:
    """Return a value as text where Puppet's language has no literal for it."""
    return value.strftime("%Y-%m-%d %H:%M:%S %z") if isinstance(value, datetime) else value


def render(type_name: str, resources: Sequence[PrintedResource], yaml: bool) -> str:
    """Return the printed text, without the last newline."""
    if not yaml:
        return "\n".join(resource.manifest() for resource in resources)
    return plainyaml.dumps({type_name: {resource.title: dict(resource.attributes) for resource in resources}}).decode().rstrip("\n")


def edit_and_apply(text: str) -> int:
    """Let the caller's editor change a manifest, and apply it."""
    from .apply import main as apply

    editor = shlex.split(os.environ.get("EDITOR") or os.environ.get("VISUAL") or "vi")
    with tempfile.TemporaryDirectory(prefix="puppet-resource-") as folder:  # 0700: it may hold hashes of passwords
        path = Path(folder) / "resource.pp"
        path.write_text(text + "\n")
        done = subprocess.run([*editor, str(path)], check=False)
        if done.returncode:
            print(f"{editor[0]} ended with {done.returncode}; nothing was applied", file=sys.stderr)
            return 1
        return apply(["--verbose", str(path)])


def _is_builtin(cls: type[Type]) -> bool:
    return builtin_types().get(cls.declaration.name) is cls


class ResourceCommand:
    """One `puppet resource`."""

    def __init__(self, options: ResourceOptions, settings: AgentSettings, level: str, folders: Sequence[Path] = ()) -> None:
        from agent.state.logbridge import print_line

        self.options = options
        self.settings = settings
        self.folders = folders  # like a module's `lib`
        self.log = RunLog(level=level, printers=[lambda line: None if line.message.startswith("Applied catalog in ") else print_line(line)])
        self.providers: Providers | None = None
        self.facts: dict[str, Any] | None = None
        self.plugins: Plugins | None = None

    async def run(self) -> list[PrintedResource]:
        """
        Return the text to print.

        Raises:
            ResourceError: no such type or attribute, or it cannot be listed.
        """
        try:
            return await self._run()
        finally:
            if self.plugins is not None:
                await asyncio.to_thread(self.plugins.close)

    async def _run(self) -> list[PrintedResource]:
        cls, name, assignments = await self._parse_arguments()
        self.providers = await self._providers()
        if name is None:
            return await self._all(cls)
        if assignments:
            resource = await asyncio.to_thread(cls, name, assignments)
            await self._change(resource)
            if not _is_builtin(cls) and resource.handler is not None:
                # A provider in Ruby may know what it did only of the resource with which it did it.
                state = await resource.handler.retrieve(resource)
                return [self._printed(cls, name, resource.handler, {"ensure": ABSENT} if state is None else state, resource)]
        elif (existing := await self._listed(cls, name)) is not None:
            return [existing]
        chooser = await asyncio.to_thread(cls, name, {key: value for key, value in assignments.items() if key == "provider"})
        return [await self._read_one(cls, name, self.providers.for_resource(chooser), assignments)]

    async def _parse_arguments(self) -> tuple[type[Type], str | None, dict[str, str]]:
        """Type, name and attributes of the command line."""
        if not self.options.arguments:
            raise ResourceError("You must specify the type to display")
        type_name, *rest = self.options.arguments
        if rest and not rest[0].strip():
            raise ResourceError("The name must not be empty")
        assignments: dict[str, str] = {}
        for word in rest[1:]:
            pair = _PAIR.fullmatch(word)
            if pair is None:
                raise ResourceError(f"Invalid parameter setting {word}", hint="Give attributes as name=value.")
            assignments[pair[1]] = pair[2]
        if not rest and type_name.lower() in _NO_LIST:
            raise ResourceError(_NO_LIST[type_name.lower()])
        cls = await self._type(type_name, {*assignments, *self.options.param})
        for parameter in self.options.param:
            if parameter not in cls.declaration.attributes:
                raise ResourceError(f"{type_name} has no parameter named '{parameter}'")
        return cls, (rest[0] if rest else None), assignments

    async def _type(self, type_name: str, attributes: Set[str]) -> type[Type]:
        """Return the built-in type, or a module's; the attributes are those that the command line uses."""
        name = type_name.lower()
        if name not in builtin_types() and name not in names_of_types(self.folders):
            raise ResourceError(f"Could not find type {type_name}", hint="`puppet resource --types` names those that there are.")
        self.facts = await facts_here(self.settings)
        self.plugins = await asyncio.to_thread(
            plugins_here, {name: dict.fromkeys(attributes, False)}, self.folders, self.settings, self.facts, self.log
        )
        if name not in self.plugins.types:
            raise ResourceError(f"The type {name} cannot be used")  # why has been said
        return self.plugins.types[name]

    async def _providers(self) -> Providers:
        from agent.providers.file.context import FileContext
        from agent.servers.dipper import bucket_factory
        from agent.servers.sources import LocalSources

        assert self.plugins is not None
        buckets = bucket_factory(self.settings.clientbucketdir, report=lambda level, message: self.log.log(level, message))
        files = FileContext(
            sources=LocalSources(),
            buckets=buckets,
            log=self.log,
            show_diff=self.settings.show_diff,
            differ=Differ.of(self.settings),
        )
        return self.plugins.providers(files=lambda: files, facts=self.facts or {})

    # --- reading

    async def _all(self, cls: type[Type]) -> list[PrintedResource]:
        """Everything of a type: of its default provider first, then of those that look elsewhere; of two with one name the first counts."""
        by_title: dict[str, PrintedResource] = {}
        refused: list[Unsupported] = []
        sources = self._sources(cls.declaration.name)
        for provider in sources:
            try:
                existing = await provider.instances()
            except Unsupported as err:
                refused.append(err)
                continue
            except PuppetError as err:
                self.log.log("warning", f"Could not list {cls.declaration.name} resources of the provider {provider.name}: {err}")
                continue
            for name, state in existing.items():
                by_title.setdefault(name, self._printed(cls, name, provider, state))
        if refused and len(refused) == len(sources) and not _is_builtin(cls):
            raise refused[0]
        return [by_title[name] for name in sorted(by_title)]

    async def _listed(self, cls: type[Type], name: str) -> PrintedResource | None:
        """Return a resource of a module's type as its providers list it; None: none does."""
        if _is_builtin(cls):
            return None
        for provider in self._sources(cls.declaration.name):
            with suppress(Unsupported):
                state = (await provider.instances()).get(name)
                if state is not None:
                    resource = await asyncio.to_thread(cls, name, {}) if self.options.param else None
                    return self._printed(cls, name, provider, state, resource)
        return None

    def _sources(self, type_name: str) -> Sequence[Provider[Any]]:
        assert self.providers is not None
        default, _ = self.providers.default(type_name)
        if default is None:
            return []
        chosen = [default]
        for provider in self.providers.suitable(type_name):
            if not any(provider.reads_as(source) for source in chosen):
                chosen.append(provider)
        return chosen

    async def _read_one(self, cls: type[Type], name: str, provider: Provider[Any], assignments: Mapping[str, str]) -> PrintedResource:
        resource = await asyncio.to_thread(cls, name, {**assignments, "audit": "all"})  # a `target` says in which file to look
        resource.handler = provider
        state = await provider.retrieve(resource)
        return self._printed(cls, name, provider, {"ensure": ABSENT} if state is None else state, resource)

    def _printed(self, cls: type[Type], name: str, provider: Handler[Any], state: State, resource: Type | None = None) -> PrintedResource:
        """Return the printed part of a state: properties that have a value, and the requested parameters."""
        declared = cls.declaration
        properties = [property_.name for property_ in declared.properties if property_.name != "ensure"]
        attributes: dict[str, Any] = {}
        if "ensure" in declared.attributes:
            attributes["ensure"] = state.get("ensure", "present")
        absent = attributes.get("ensure") in (ABSENT, "purged")
        current = {} if absent else {key: state[key] for key in properties if state.get(key) not in _NOTHING}
        more = {key: plain(value) for key, value in current.items() if (declared.name, key) not in _SAID_OTHERWISE}
        if provider.name:
            more["provider"] = provider.name
        for parameter in self.options.param:
            value = state.get(parameter, resource.value_of(parameter) if resource else None)
            if value not in (None, [], ABSENT):
                more[parameter] = value
        return PrintedResource(declared.name, name, attributes | dict(sorted(more.items())))

    # --- changing

    async def _change(self, resource: Type) -> None:
        """Set the given attributes, as a run does; a failure is in the log."""
        from agent.state.statefiles import StateFile
        from agent.transaction.context import ApplyContext
        from agent.transaction.run import apply_catalog

        assert self.providers is not None
        resources = RalCatalog(self.plugins.types if self.plugins else builtin_types(), name=self.settings.certname)
        resources.add(resource)
        self.providers.check_named(resources.order)
        context = ApplyContext(log=self.log, providers=self.providers, state=StateFile(None), noop=self.settings.noop)
        done = await apply_catalog(resources, context)
        if done.error is not None:
            raise done.error
