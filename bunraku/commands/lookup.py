"""`puppet lookup`: what the site's data says for a node, and why. Source: command line reference 2.8."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from master.compiler.evaluation.compilation import Compilation
from master.compiler.host import NotFoundInData
from master.compiler.types.base import PuppetType
from master.compiler.values.core import Value, entries
from master.compiler.values.text import to_s
from master.hiera import Explainer, merge_of
from master.hiera.merging import STRATEGIES, require_type
from shared.data import plainyaml
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, EvaluationError
from shared.models.node import Node
from shared.process.cli import value_of
from shared.regexps import PATTERN_TIMEOUT
from shared.settings import AgentSettings, MasterSettings, flags_of, load

from ..catalogs.compilation import Manifest, Site, environment_of, external_for, node_for
from ..catalogs.nodes import facts_of, given_facts
from ..console import printer
from ..faces import Call, call_of

HELP = """Usage: puppet lookup KEY... [--node NAME] [--facts FILE] [--environment NAME] [--explain] [--compile]

Prints the value that Hiera has for a key, of several the first that is found. Run it where the data is: on the master.

  --node NAME             for which node; its facts are those it last sent. This machine by default
  --facts FILE            JSON or YAML: these facts go over the node's
  --compile, -c           compile the node's catalog first, for data that uses variables of classes
  --explain               say where was looked and what was found, instead of the value
  --explain-options       say how lookup_options for the key came to be
  --merge STRATEGY        first, unique, hash or deep, whatever lookup_options say
  --knock-out-prefix P    with deep: values that begin so take others away
  --sort-merged-arrays    with deep
  --merge-hash-arrays     with deep: hashes in arrays are merged by their position
  --default VALUE         what to print when there is no value
  --type TYPE             the type that the value has to be of
  --render-as FORMAT      yaml, json, or s for plain text

$trusted has the node's name and nothing else of its certificate.

Exit codes: 0; 1 when there is no value, or something is wrong. With --explain 0 as well when there is no value."""

FORMATS = ("s", "json", "yaml")
DEEP_ONLY = ("knock-out-prefix", "sort-merged-arrays", "merge-hash-arrays")
TRUSTED_FACTS = ("hostname", "domain", "fqdn", "clientcert")
_RUN_HELP = "Run 'puppet lookup --help' for more details"
_OPTIONS = ("node", "facts", "merge", "knock-out-prefix", "default", "type")
_FLAGS = ("compile", "explain", "explain-options", "sort-merged-arrays", "merge-hash-arrays", "trusted")


def main(argv: Sequence[str]) -> int:
    """Run `puppet lookup …`; the exit code."""
    words, form = _rendered(["--compile" if word == "-c" else word for word in argv])
    flags, left = flags_of(words, AgentSettings, MasterSettings, shorts={"-v": "--verbose", "-d": "--debug"})
    call = call_of("lookup", left, options=_OPTIONS, flags=_FLAGS)
    if call.help:
        print(HELP)
        return 0
    merge = _merge(call)
    explained = bool(call.flags & {"explain", "explain-options"})
    only_options = explained and "explain" not in call.flags
    if not call.words and not only_options:
        raise ConfigError("No keys were given to lookup.", hint=_RUN_HELP)
    form = form or ("json" if call.json else "s" if explained else "yaml")
    if form not in FORMATS:
        raise ConfigError(f"Unknown rendering format '{form}'", hint=f"There are {', '.join(FORMATS)}.")
    explainer = Explainer(only_options=only_options) if explained else None
    agent = load(AgentSettings, section="user", flags=flags)
    master = load(MasterSettings, section="master", flags=flags)
    PATTERN_TIMEOUT.set(master.pattern_timeout)
    compilation = asyncio.run(_compiler(call, agent, master))
    return _answer(call, compilation, merge, explainer, form)


def _answer(call: Call, compilation: Compilation, merge: Any, explainer: Explainer | None, form: str) -> int:
    """Look up and print; the exit code."""
    try:
        value = _value(compilation, call.words or ("__global__",), merge, explainer, call.options)
    except NotFoundInData:
        if explainer is None:
            return 1
        many = ", ".join(f"'{key}'" for key in call.words)
        which = f"the name '{call.words[0]}'" if len(call.words) == 1 else f"any of the names [{many}]"
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


def _value(compilation: Compilation, keys: Sequence[str], merge: Any, explainer: Explainer | None, options: Mapping[str, str]) -> Value:
    """
    The value of the first key that has one.

    Raises:
        NotFoundInData: none has, and there is no default. EvaluationError: the data is wrong, or the value is of another type.
    """
    wanted: PuppetType | None = compilation.type_from_text(options["type"]) if "type" in options else None
    for key in keys:
        context = compilation.data_context(compilation.top)
        context.explainer = explainer
        try:
            found = compilation.data_for(key, compilation.top, merge, context)
        except NotFoundInData:
            continue
        return found if wanted is None or (explainer is not None and explainer.only_options) else require_type("Found value", wanted, found)
    if "default" not in options:
        raise NotFoundInData(keys[0])
    return options["default"] if wanted is None else require_type("Default value", wanted, options["default"])


async def _compiler(call: Call, agent: AgentSettings, master: MasterSettings) -> Compilation:
    """A compilation for the node: of its catalog with --compile, else of nothing, with its facts in top scope."""
    name = call.options.get("node", master.certname)
    log = printer("debug" if agent.debug else "info" if agent.verbose else agent.log_level)
    given = given_facts(Path(call.options["facts"])) if "facts" in call.options else {}
    if given.keys() & set(TRUSTED_FACTS) and not given.keys() >= set(TRUSTED_FACTS):
        shown, file = ",".join(TRUSTED_FACTS), call.options["facts"]
        raise ConfigError(
            f"When overriding any of the {shown} facts with {file} given via the --facts flag, they must all be overridden.",
            hint="They say who the node is.",
        )
    environment = environment_of(master)
    facts = {**await facts_of(name, agent, master, environment, required=not given), **given}
    compiles = "compile" in call.flags
    node = await node_for(master, name) if compiles else Node(name=name)
    manifest = Manifest(path=Path(environment.manifest)) if compiles and environment.manifest else Manifest(code="undef")
    site = Site.of(master, environment, manifest, log)
    compilation = site.compilation(node, facts, log, await external_for(master, node.name))
    compilation.compile()
    return compilation


def _merge(call: Call) -> Any:
    """The strategy that the command line asks for; None when it does not say."""
    given = call.options.get("merge")
    if given != "deep" and any(name in call.flags or name in call.options for name in DEEP_ONLY):
        raise ConfigError(
            "The options --knock-out-prefix, --sort-merged-arrays, and --merge-hash-arrays are only available with '--merge deep'",
            hint=_RUN_HELP,
        )
    if given is None:
        return None
    if given not in STRATEGIES:
        raise ConfigError("The --merge option only accepts 'first', 'hash', 'unique', or 'deep'", hint=_RUN_HELP)
    if given != "deep":
        return given
    options: dict[str, Any] = {
        "strategy": "deep",
        "sort_merged_arrays": "sort-merged-arrays" in call.flags,
        "merge_hash_arrays": "merge-hash-arrays" in call.flags,
    }
    if "knock-out-prefix" in call.options:
        options["knockout_prefix"] = call.options["knock-out-prefix"]
    merge_of(options)
    return options


def _rendered(words: list[str]) -> tuple[list[str], str]:
    """The command line without `--render-as FORMAT`, and the format. A prefix may be `--`, which ends the options elsewhere."""
    left, form = [], ""
    while words:
        word = words.pop(0)
        if word.partition("=")[0] == "--render-as":
            form = value_of(word, words).lower()
        elif word == "--knock-out-prefix" and words:
            left.append(f"{word}={words.pop(0)}")
        else:
            left.append(word)
    return left, form


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
    """A value as JSON and YAML have it; what they have no words for as its text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str | int) else to_s(key): _plain(item) for key, item in entries(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or (isinstance(value, str | int | float | bool)):
        return value
    return to_s(value)


__all__ = ["main"]
