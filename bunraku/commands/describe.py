"""Show the attributes of resource types. Source: Debian's `puppet describe`."""

from __future__ import annotations

import asyncio
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.plugins.loading import Plugins
from agent.providers import ProviderRun, builtin_providers
from agent.providers.file.context import FileContext
from agent.ruby.types import RubyParam, RubyProperty, RubyType
from agent.servers.dipper import bucket_factory
from agent.servers.sources import LocalSources
from agent.state.runlog import RunLog
from shared.errors import ResourceError
from shared.process import log as logs
from shared.process.cli import CommandOptions, flag, text
from shared.process.command import CommandSpec
from shared.ral import Confine, Param, Platform, Provider, Providers, Type
from shared.ral.attributes import TypeDeclaration, Value, text_of
from shared.settings import AgentSettings, load
from shared.types import KNOWN, builtin_types

from ..catalogs.moduletypes import facts_here, names_of_types, plugins_here
from ..environment import plugin_folders

_WIDTH = 76  # columns of a text
_SUMMARY = 46  # characters of a type's text in the list


@dataclass(frozen=True, slots=True)
class DescribeOptions(CommandOptions):
    """The options that select the printed parts of a type; the arguments are names of types."""

    list: bool = flag("print the types", "-l")
    short: bool = flag("only the attributes' names", "-s")
    providers: bool = flag("show the providers with their requirements, defaults and features", "-p")
    meta: bool = flag("also the attributes that all types have", "-m")
    modulepath: str = text("FOLDERS", "directories of modules with types, instead of the environment's; colon-separated")


@CommandSpec(
    "describe",
    DescribeOptions,
    usage=["[--short] [--providers] [--meta] TYPE ...", "--list"],
    text="Prints the purpose of a type, and its attributes with their values.",
    notes="docs/types.md has all of them, with how each provider is tested.",
    is_face=False,
).main
def main(options: DescribeOptions, flags: dict[str, Any]) -> int:
    if not (options.arguments or options.list):
        print(main.help())
        return 0
    settings = load(AgentSettings, section="user", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    folders = plugin_folders(settings, flags, options.modulepath)
    names = frozenset(options.arguments) if not options.list else names_of_types(folders)
    with _types_of(names, folders, settings) as (plugins, facts):
        if options.list:
            print(type_list(plugins.types))
            return 0
        for name in options.arguments:
            if name in plugins.broken:
                raise ResourceError(f"The type {name} cannot be used", hint="See the error before.")
            if name not in plugins.types:
                raise _unknown(name)
        descriptions = [_description(plugins, name, options, facts) for name in options.arguments]
    print("\n".join(descriptions))
    return 0


@contextmanager
def _types_of(names: frozenset[str], folders: Sequence[Path], settings: AgentSettings) -> Iterator[tuple[Plugins, Mapping[str, Any]]]:
    """Yield Puppet's types together with those of the folders that are in `names`, and the facts that these may read."""
    from agent.state.logbridge import print_line

    own = names & names_of_types(folders) - builtin_types().keys()
    facts = asyncio.run(facts_here(settings)) if own else {}
    plugins = plugins_here({name: {} for name in own}, folders, settings, facts, RunLog(level="warning", printers=[print_line]))
    try:
        yield plugins, facts
    finally:
        plugins.close()


def _description(plugins: Plugins, name: str, options: DescribeOptions, facts: Mapping[str, Any]) -> str:
    if name in builtin_types():
        return type_description(builtin_types()[name], providers_of(name), options)
    files = _no_files(plugins.log)
    return type_description(plugins.types[name], plugins.providers(files=lambda: files, facts=facts).of(name), options)


def _unknown(name: str) -> ResourceError:
    if name in KNOWN:
        return ResourceError(f"The type '{name}' is not supported", hint="Manifests with it compile, but no resource of it can be applied.")
    return ResourceError(f"Unknown type {name}", hint="`puppet describe --list` names those that there are.")


def providers_of(type_name: str, platform: Platform | None = None) -> Sequence[Provider[Any]]:
    """Return all providers of a type, whether they fit or not; the features of some depend on the platform."""
    log, host_platform = RunLog(), platform or Platform()
    files = _no_files(log)
    run = Providers({}, host_platform)
    makers = builtin_providers(ProviderRun(log, lambda: files, lambda: run, builtin_types(), host_platform))
    return makers[type_name]() if type_name in makers else ()


def _no_files(log: RunLog) -> FileContext:
    """Return the services for providers of files in which nothing is read or stored."""
    return FileContext(sources=LocalSources(), buckets=bucket_factory(Path("/nonexistent")), log=log)


def type_list(types: Mapping[str, type[Type]]) -> str:
    """Return the types, one a line, each with the beginning of its text."""
    lines = (f"{name:<18} - {textwrap.shorten(types[name].declaration.doc, _SUMMARY, placeholder=' ...')}" for name in sorted(types))
    return "These are the types known to puppet:\n" + "\n".join(lines)


def type_description(cls: type[Type], providers: Sequence[Provider[Any]], options: DescribeOptions) -> str:
    """A type as it is printed."""
    declaration = cls.declaration
    named_providers = [attribute for attribute in providers if attribute.name]
    own = {name: attribute for name, attribute in declaration.attributes.items() if not attribute.meta and name != "provider"}
    parts = [f"\n{declaration.name}\n{'=' * len(declaration.name)}\n{_text(declaration.doc, in_ruby=issubclass(cls, RubyType))}\n"]
    parts.append(_attributes("Parameters", own, declaration, short=options.short))
    if options.meta:
        meta = {name: attribute for name, attribute in declaration.attributes.items() if attribute.meta}
        parts.append(_attributes("Meta Parameters", meta, declaration, short=options.short))
    if named_providers:
        details = "\n".join(map(_provider, sorted(named_providers, key=lambda attribute: attribute.name)))
        parts.append(_headed("Providers", details if options.providers else _names(attribute.name for attribute in named_providers)))
    return "\n".join(parts)


def _attributes(title: str, attributes: Mapping[str, Param[Any]], declaration: TypeDeclaration, *, short: bool) -> str:
    if short:
        return _headed(title, _names(attributes))
    return _headed(title, "\n".join(_attribute(attributes[name], declaration) for name in sorted(attributes)))


def _attribute(attribute: Param[Any], declaration: TypeDeclaration) -> str:
    sentences = []
    if attribute.namevar:
        sentences.append("It names the resource; by default the title.")
    if attribute.values:
        sentences.append(f"Valid values are {', '.join(map(_value, attribute.values))}.")
    if attribute.pattern_texts:
        sentences.append(f"Values can match {', '.join(f'`{pattern}`' for pattern in attribute.pattern_texts)}.")
    if attribute.requires:
        sentences.append(f"Requires features {', '.join(attribute.requires)}.")
    text = _text(attribute.doc, in_ruby=isinstance(attribute, RubyParam | RubyProperty), more=" ".join(sentences), indent=4)
    return f"- **{attribute.name}**\n{text}\n"


def _value(value: Value) -> str:
    aliases = f" (also called `{', '.join(value.aliases)}`)" if value.aliases else ""
    return f"`{text_of(value.value)}`{aliases}"


def _provider(provider: Provider[Any]) -> str:
    lines = [f"- **{provider.name}**", _filled(_own_doc(provider), indent=4)]
    for what, values in (("Needs", _needs(provider.confine)), ("Default for", "; ".join(map(conditions, provider.default_for)))):
        lines += [_filled(f"* {what}: {values}.", indent=4)] if values else []
    if provider.features:
        lines.append(_filled(f"* Supported features: {', '.join(f'`{feature}`' for feature in sorted(provider.features))}.", indent=4))
    return "\n".join(lines) + "\n"


def _own_doc(provider: Provider[Any]) -> str:
    text = provider.doc if provider.doc is not None else provider.__doc__ or ""
    return text.strip().partition("\n\n")[0]


def _needs(confine: Iterable[Confine]) -> str:
    return ", ".join(condition.needs for condition in confine)


def conditions(facts: Mapping[str, Any]) -> str:
    """Return facts with the values that they must have."""
    return " and ".join(
        f"{fact} {', '.join(map(text_of, value)) if isinstance(value, list | tuple) else text_of(value)}" for fact, value in facts.items()
    )


def _headed(title: str, text: str) -> str:
    return f"\n{title}\n{'-' * len(title)}\n{text}"


def _names(names: Iterable[str]) -> str:
    return _filled(", ".join(sorted(names)), indent=4) + "\n"


def _text(doc: str, *, in_ruby: bool, more: str = "", indent: int = 0) -> str:
    """Return a text for the terminal; texts of modules in Ruby have examples and lists, so their lines are preserved."""
    if not in_ruby:
        return _filled(f"{doc} {more}", indent=indent)
    lines = [*inspect.cleandoc(doc).splitlines(), *([more] if more else [])]
    return "\n".join(_broken(line, " " * indent) if line.strip() else "" for line in lines)


def _broken(line: str, indent: str) -> str:
    begin = indent + line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(), _WIDTH, initial_indent=begin, subsequent_indent=begin, break_long_words=False, break_on_hyphens=False
    )


def _filled(text: str, *, indent: int = 0) -> str:
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent, break_long_words=False
    )
