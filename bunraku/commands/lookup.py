"""Look up Hiera data and explain it. Source: command line reference 2.8."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.hiera import Explainer, merge_of
from environments.hiera.merging import STRATEGIES, require_type
from language.evaluation.compilation import Compilation
from language.evaluation.compile import compile_node
from language.host import LookupArguments, NotFoundInData
from language.types.notation.parse import parse_type
from language.values.core import PuppetType, Value, entries
from language.values.text import to_s
from shared.data import plainyaml
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, EvaluationError
from shared.models.node import Node
from shared.process.cli import CommandOptions, flag, maybe_text, text
from shared.process.command import CommandSpec
from shared.process.log import level_of
from shared.settings import AgentSettings, MasterSettings

from ..catalogs.compilation import LocalEnvironment, Manifest, compiling_settings, external_for, node_for
from ..catalogs.nodes import facts_of, given_facts
from ..console import printer
from ..environment import environment_of

FORMATS = ("s", "json", "yaml")
TRUSTED_FACTS = ("hostname", "domain", "fqdn", "clientcert")
_RUN_HELP = "Run 'puppet lookup --help' for more details"


@dataclass(frozen=True, slots=True)
class LookupCommandOptions(CommandOptions):
    """The command line without settings; its arguments are keys."""

    node: str | None = maybe_text("NAME", "the node, with the facts that it last sent; by default this machine")
    facts: str | None = maybe_text("FILE", "JSON or YAML: these facts override the node's")
    merge: str | None = maybe_text("STRATEGY", "first, unique, hash or deep; overrides lookup_options")
    # The value may be `--`, which ends the options elsewhere.
    knock_out_prefix: str | None = maybe_text("PREFIX", "with deep: values with this prefix remove others")
    sort_merged_arrays: bool = flag("with deep: sort arrays")
    merge_hash_arrays: bool = flag("with deep: merge hashes in arrays by their position")
    default: str | None = maybe_text("VALUE", "printed if there is no value")
    type: str | None = maybe_text("TYPE", "the type that the value must have")
    compile: bool = flag("compile the node's catalog first, for data that uses variables of classes", "-c")
    explain: bool = flag("show where Hiera looked and what it found, instead of the value")
    explain_options: bool = flag("show how lookup_options for the key came to be")
    json: bool = flag("the same as --render-as json")
    render_as: str = text("FORMAT", "yaml (the default), json, or s for plain text")
    trusted: bool = flag(None)  # without effect

    @property
    def is_explained(self) -> bool:
        return self.explain or self.explain_options


@CommandSpec(
    "lookup",
    LookupCommandOptions,
    usage=["KEY... [--node NAME] [--facts FILE] [--environment NAME] [--explain] [--compile]"],
    text="Prints Hiera's value of a key; of several keys, the first that has a value. Run it on the master, where the data is.",
    notes="""$trusted has the node's name and nothing else of its certificate.

    Exit codes: 0; 1 when there is no value, or an error. With --explain 0 as well when there is no value.""",
).main
def main(options: LookupCommandOptions, flags: dict[str, Any]) -> int:
    merge = _merge(options)
    explained = options.is_explained
    only_options = explained and not options.explain
    if not options.arguments and not only_options:
        raise ConfigError("No keys were given to lookup.", hint=_RUN_HELP)
    form = options.render_as.lower() or ("json" if options.json else "s" if explained else "yaml")
    if form not in FORMATS:
        raise ConfigError(f"Unknown rendering format '{form}'", hint=f"There are {', '.join(FORMATS)}.")
    explainer = Explainer(only_options=only_options) if explained else None
    compilation = asyncio.run(_compiler(options, *compiling_settings(flags, section="master")))
    return _answer(options, compilation, merge, explainer, form)


def _answer(options: LookupCommandOptions, compilation: Compilation, merge: Any, explainer: Explainer | None, form: str) -> int:
    """Look up, print, and return the exit code."""
    try:
        value = _value(compilation, options, merge, explainer)
    except NotFoundInData:
        if explainer is None:
            return 1
        many = ", ".join(f"'{key}'" for key in options.arguments)
        which = f"the name '{options.arguments[0]}'" if len(options.arguments) == 1 else f"any of the names [{many}]"
        explainer.add_text(f"Function lookup() did not find a value for {which}")
    except EvaluationError as error:
        if explainer is None:
            raise
        explainer.add_text(error.message)
    else:
        if explainer is None:
            _write(value, form)
            return 0
    assert explainer is not None
    if form == "s":
        print(explainer.text(), end="")
    else:
        _write(explainer.root.data(), form)
    return 0


def _value(compilation: Compilation, options: LookupCommandOptions, merge: Any, explainer: Explainer | None) -> Value:
    """
    Return the value of the first key that has one.

    Raises:
        NotFoundInData: none has, and there is no default. EvaluationError: the data is wrong, or the value is of another type.
    """
    type_: PuppetType | None = None if options.type is None else parse_type(options.type, compilation.definitions)
    keys = options.arguments or ("__global__",)
    for key in keys:
        try:
            value = compilation.top.look_up(key, merge, LookupArguments(explainer=explainer))
        except NotFoundInData:
            continue
        return value if type_ is None or (explainer is not None and explainer.only_options) else require_type("Found value", type_, value)
    if options.default is None:
        raise NotFoundInData(keys[0])
    return options.default if type_ is None else require_type("Default value", type_, options.default)


async def _compiler(options: LookupCommandOptions, agent: AgentSettings, master: MasterSettings) -> Compilation:
    """Return a compilation for the node: of its catalog with --compile, else of nothing, with its facts in top scope."""
    name = master.certname if options.node is None else options.node
    log = printer(level_of(agent))
    given = {} if options.facts is None else given_facts(Path(options.facts))
    if given.keys() & set(TRUSTED_FACTS) and not given.keys() >= set(TRUSTED_FACTS):
        names, file = ",".join(TRUSTED_FACTS), options.facts
        raise ConfigError(
            f"When overriding any of the {names} facts with {file} given via the --facts flag, they must all be overridden.",
            hint="They identify the node.",
        )
    environment = environment_of(master)
    facts = {**await facts_of(name, agent, master, environment, required=not given), **given}
    node = await node_for(master, name) if options.compile else Node(name=name)
    manifest = Manifest(path=Path(environment.manifest)) if options.compile and environment.manifest else Manifest(code="undef")
    site = LocalEnvironment.of(master, environment, manifest, log)
    compilation = site.compilation(node, facts, log, await external_for(master, node.name))
    compile_node(compilation)
    return compilation


def _merge(options: LookupCommandOptions) -> Any:
    """Return the strategy of the command line; None when it has none."""
    name = options.merge
    if name != "deep" and (options.sort_merged_arrays or options.merge_hash_arrays or options.knock_out_prefix is not None):
        raise ConfigError(
            "The options --knock-out-prefix, --sort-merged-arrays, and --merge-hash-arrays are only available with '--merge deep'",
            hint=_RUN_HELP,
        )
    if name is None:
        return None
    if name not in STRATEGIES:
        raise ConfigError("The --merge option only accepts 'first', 'hash', 'unique', or 'deep'", hint=_RUN_HELP)
    if name != "deep":
        return name
    strategy: dict[str, Any] = {
        "strategy": "deep",
        "sort_merged_arrays": options.sort_merged_arrays,
        "merge_hash_arrays": options.merge_hash_arrays,
    }
    if options.knock_out_prefix is not None:
        strategy["knockout_prefix"] = options.knock_out_prefix
    merge_of(strategy)
    return strategy


def _write(value: Value, form: str) -> None:
    plain = _plain(value)
    if form == "s":
        print(to_s(value))
    elif form == "json":
        sys.stdout.buffer.write(dumps_pretty(plain))
    else:
        sys.stdout.buffer.write(plainyaml.dumps(plain))
    sys.stdout.flush()


def _plain(value: Value) -> Any:
    """Return a value in the form of JSON and YAML; other values become text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str | int) else to_s(key): _plain(item) for key, item in entries(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or (isinstance(value, str | int | float | bool)):
        return value
    return to_s(value)
