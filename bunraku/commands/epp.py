"""Check, render and dump EPP templates. Source: command line reference 2.9."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.listings.manifests import problems
from language.errors.locations import locate_error
from language.evaluation.compilation import Compilation
from language.evaluation.compile import open_top_scope
from language.evaluation.expressions import evaluate
from language.syntax.checker import Diagnostic
from language.syntax.dump import as_data, notation_of
from language.syntax.parser import parse
from language.syntax.source import Source
from language.types.inference.infer import infer
from language.values.core import Sensitive, Value
from shared.data import plainyaml
from shared.errors import BadData, ConfigError, Location, ParseError, PuppetError, Unsupported
from shared.process.cli import flag, maybe_text, text
from shared.process.command import CommandSpec
from shared.process.log import level_of
from shared.settings import AgentSettings, MasterSettings

from ..catalogs.compilation import LocalEnvironment, Manifest, compiling_settings, external_for, node_for
from ..catalogs.nodes import facts_of, given_facts
from ..console import complain, printer, say
from ..environment import environment_of
from ..faces import FaceOptions


@dataclass(frozen=True, slots=True)
class EppOptions(FaceOptions):
    """The command line of `puppet epp`."""

    e: str | None = maybe_text("SOURCE", "a template as text, instead of files", "-e")
    values: str | None = maybe_text(
        "CODE", "Puppet code: a hash of the template's parameters, or undef; the template sees variables that it sets"
    )
    values_file: str | None = maybe_text("FILE", "the same in a .pp file, or the hash in a .yaml file; --values override it")
    facts: str | None = maybe_text("FILE", "JSON or YAML: these facts override the node's")
    node: str | None = maybe_text("NAME", "the node whose stored facts are used; by default this machine")
    format: str = text("FORMAT", "dump: pn (the default) or json", default="pn")
    header: bool = flag("no line `--- TEMPLATE` above each of several templates", default=True, negatable=True)
    continue_on_error: bool = flag("validate: print the errors of all templates, not only of the first bad one", negatable=True)
    validate: bool = flag("dump: do not check the template first", default=True, negatable=True)
    pretty: bool = flag("dump: on many lines")


@CommandSpec(
    "epp",
    EppOptions,
    actions={
        "validate [TEMPLATE...]": "print nothing and exit with 0 when all is well; else print the errors, and exit with 1",
        "render [TEMPLATE...]": "print the templates' text",
        "dump [TEMPLATE...]": "print their syntax trees",
    },
    notes="TEMPLATE is module/name.epp, or a file; without any the template is read from standard input.",
).main
def main(options: EppOptions, flags: dict[str, Any]) -> int:
    command = EppCommand(options, *compiling_settings(flags))
    return options.choose({"validate": command.validate, "render": command.render, "dump": command.dump})()


@dataclass(frozen=True, slots=True)
class EppCommand:
    """One call of `puppet epp`."""

    options: EppOptions
    agent: AgentSettings
    master: MasterSettings

    # --- which templates ---

    def _site(self) -> LocalEnvironment:
        agent = self.agent
        log = printer(level_of(agent))
        return LocalEnvironment.of(self.master, environment_of(self.master), Manifest(), log)

    def _sources(self, site: LocalEnvironment) -> tuple[list[tuple[str, Source]], list[str]]:
        """Return the templates with their names, and the names that are none. A module's template comes before a file of that name."""
        sources: list[tuple[str, Source]] = []
        missing: list[str] = []
        for word in self.options.names:
            path = site.host.find_file(word, "templates") or word
            if not Path(path).is_file():
                missing.append(word)
                continue
            try:
                sources.append((word, Source(Path(path).read_text("utf-8"), path)))
            except (OSError, UnicodeDecodeError) as err:
                raise PuppetError(f"Could not read {path}: {err}") from err
        return sources, missing

    def _given(self, nothing: str) -> str:
        """Return the template from the command line or standard input; raise PuppetError(`nothing`) if there is none."""
        if self.options.e is not None:
            return self.options.e
        if sys.stdin.isatty():
            raise PuppetError(nothing)
        return sys.stdin.read()

    def _has_header(self) -> bool:
        return len(self.options.names) > 1 and self.options.header

    # --- the actions ---

    def validate(self) -> int:
        """Print the errors of templates."""
        missing: list[str] = []
        if self.options.e is not None:
            sources = [("", Source(self.options.e))]
        elif self.options.names:
            sources, missing = self._sources(self._site())
        elif sys.stdin.isatty():
            say("notice", "No template specified. No action taken")
            return 0
        else:
            sources = [("", Source(sys.stdin.read(), "<stdin>"))]
        wrong = 0
        for _, source in sources:
            if not _valid(source, self.master.strict):
                wrong += 1
                if not self.options.continue_on_error:
                    break
        _refuse(missing)
        if wrong:
            raise PuppetError("Errors while validating epp")
        return 0

    def dump(self) -> int:
        """Print syntax trees."""
        form = self.options.format
        if form not in ("pn", "json"):
            hint = "There are pn (Puppet's notation) and json (the same graph)."
            raise Unsupported(f"A dump in the format {form} is not supported", hint=hint)
        missing: list[str] = []
        if self.options.names and self.options.e is None:
            sources, missing = self._sources(self._site())
        else:
            sources = [("", Source(self._given("No input to parse given on command line or stdin")))]
        wrong = 0
        for name, source in sources:
            if self.options.validate and not _valid(source, self.master.strict, header=name if self._has_header() else ""):
                wrong += 1
                continue
            try:
                program = parse(source, epp=True)
            except ParseError as err:
                complain(err)
                wrong += 1
                continue
            if self._has_header():
                print(f"--- {name}")
            pretty = self.options.pretty
            if form == "pn":
                print(notation_of(program, pretty=pretty))
            else:
                print(json.dumps(as_data(program), ensure_ascii=False, indent=2 if pretty else None))
        _refuse(missing)
        return 1 if wrong else 0

    def render(self) -> int:
        """Print the rendered text of templates. A faulty one prints only its error, and the others are printed."""
        site = self._site()
        compilation = asyncio.run(self._compiler(site))
        parameters = self._values(compilation)
        if not self.options.names or self.options.e is not None:
            text = _render_template(
                compilation, "inline_epp", self._given("No input to process given on command line or stdin"), parameters
            )
            _write(text if text.endswith("\n") else f"{text}\n")
            return 0
        wrong = 0
        for number, name in enumerate(self.options.names):
            path = name
            if site.host.find_file(name, "templates") is None and Path(name).exists():
                path = str(Path(name).absolute())
            try:
                text = _render_template(compilation, "epp", path, parameters)
            except PuppetError as err:
                complain(err)
                wrong += 1
                continue
            if self._has_header():
                print(("\n" if number else "") + f"--- {name}")
            _write(text)
        if wrong:
            raise PuppetError("error while rendering epp")
        return 0

    async def _compiler(self, site: LocalEnvironment) -> Compilation:
        """Return a compilation that has only top scope: the node's variables and facts."""
        name = self.agent.node_name_value if self.options.node is None else self.options.node
        node = await node_for(self.master, name)
        own_facts = {} if self.options.facts is None else given_facts(Path(self.options.facts))
        facts = {**await facts_of(name, self.agent, self.master, site.environment, required=False), **own_facts}
        compilation = site.compilation(node, facts, printer(self.agent.log_level), await external_for(self.master, node.name))
        open_top_scope(compilation)
        return compilation

    def _values(self, compilation: Compilation) -> dict[str, Value] | None:
        """Return the parameters; None: the template is called without any, and sees all variables."""
        parameters: Any = None
        if self.options.values_file is not None:
            parameters = _of_file(compilation, Path(self.options.values_file))
            if not (parameters is None or isinstance(parameters, dict)):
                type_text = infer(parameters).generalized()
                raise ConfigError(f"--values_file option must evaluate to a Hash or undef/nil, got: '{type_text}'")
        if self.options.values is not None:
            own_values = evaluate(compilation, Source(self.options.values, "values-hash"))
            if isinstance(own_values, dict):
                parameters = {**(parameters or {}), **own_values}
            elif own_values is not None:
                raise ConfigError(f"--values option must evaluate to a Hash or undef, got: '{infer(own_values).generalized()}'")
        return parameters  # type: ignore[no-any-return]


def _of_file(compilation: Compilation, path: Path) -> Any:
    """Return the values in a file."""
    if path.suffix not in (".yaml", ".pp"):
        raise ConfigError("Only .yaml or .pp can be used as a --values_file")
    try:
        data = path.read_bytes()
        if path.suffix == ".yaml":
            return plainyaml.loads(data)
        return evaluate(compilation, Source(data.decode("utf-8"), str(path)))
    except OSError as err:
        raise ConfigError(f"Could not load --values_file {path}: {err.strerror}") from err
    except (BadData, UnicodeDecodeError) as err:
        raise ConfigError(f"Could not load --values_file {path}: {err}") from err


def _render_template(compilation: Compilation, function: str, template: str, parameters: dict[str, Value] | None) -> str:
    arguments: list[Any] = [template] if parameters is None else [template, parameters]
    try:
        text = compilation.definitions.function(function).call(compilation.top, arguments)
    except PuppetError as err:
        raise locate_error(err) from err
    return str(text.unwrap() if isinstance(text, Sensitive) else text)


def _write(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _valid(source: Source, strict: str, *, header: str = "") -> bool:
    """Return whether a template is valid; print its errors."""
    diagnostics = problems(source, strict, epp=True)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if errors and header:
        say("err", f"--- {header}")
    for diagnostic in diagnostics:
        if diagnostic.severity == "error":
            complain(_as_error(diagnostic))
        else:
            say("warning", str(diagnostic))
    return not errors


def _as_error(issue: Diagnostic) -> ParseError:
    return ParseError(issue.message, where=issue.where or Location(None), hint=issue.hint)


def _refuse(missing: Sequence[str]) -> None:
    if missing:
        raise PuppetError("One or more file(s) specified did not exist:\n" + "\n".join(f"   {word}" for word in missing))
