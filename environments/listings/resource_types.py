"""
Lists the classes, defined types and node blocks in an environment's manifests, as they are written there.

Nothing is evaluated: they are read from the syntax tree. Source: protocol reference 3.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from language.catalog.definitions import NodeBlock
from language.loading.loader import manifest_files
from language.syntax import nodes as n
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import BadRequest, EvaluationError, PuppetError
from shared.names import quoted_for_log
from shared.regexps import Regexp

from ..directories import Environments
from ..directory_environment import DirectoryEnvironment, compiler_host
from .manifests import text_of

KINDS = ("class", "defined_type", "node")
MAX_NAME = 512
MAX_PATTERN = 1024

_CLASS = re.compile(r"(?:::)?[a-z]\w*(?:::[a-z]\w*)*", re.ASCII)
_NODE = re.compile(r"\w[-\w]*(?:\.[-\w]+)*", re.ASCII)

DefinitionEntry = dict[str, Any]
"""The keys name, kind, parameters (name to the source text of the default, None without one), doc, file, line, parent."""


def check_name(name: str) -> str:
    """Return the name of a class, defined type or node in lower case; raise BadRequest for anything that could be a path."""
    lower = name.lower()
    if len(name) > MAX_NAME or not (_CLASS.fullmatch(lower) or _NODE.fullmatch(lower)):
        raise BadRequest(f"Not the name of a class, define or node: {quoted_for_log(name)}")
    return lower.removeprefix("::")


def check_pattern(pattern: str) -> Regexp | None:
    """Return the regular expression, in Ruby's syntax, for a search, or None for all names; raise BadRequest for an invalid one."""
    if pattern == "*":
        return None
    if len(pattern) > MAX_PATTERN:
        raise BadRequest(f"A pattern has at most {MAX_PATTERN} characters")
    expression = Regexp(pattern)
    try:
        expression.pattern  # noqa: B018  # compiled when it is first read
    except PuppetError as err:
        raise BadRequest(f"Invalid regex '{quoted_for_log(pattern)[1:-1]}': {err.message}") from err
    return expression


def check_kind(kind: str) -> str:
    """Return one of KINDS, or '' for all; raise BadRequest for any other."""
    if kind and kind not in KINDS:
        raise BadRequest(f"Unrecognized kind filter: {quoted_for_log(kind)}, expected one of {', '.join(map(repr, KINDS))}")
    return kind


def definitions(source: Source) -> list[DefinitionEntry]:
    """Return all classes, defined types and node blocks of one file, in the order in which they end; raise ParseError."""
    entries: list[DefinitionEntry] = []
    for node in parse(source).definitions:
        if isinstance(node, n.ClassDefinition):
            entries.append(_entry(node, source, "class", node.name, node.parameters, node.parent))
        elif isinstance(node, n.DefineDefinition):
            entries.append(_entry(node, source, "defined_type", node.name, node.parameters, None))
        elif isinstance(node, n.NodeDefinition):
            parent = text_of(node.parent, source) if node.parent is not None else None
            entries += [_entry(node, source, "node", _node_name(match), (), parent) for match in node.matches]
    return entries


def _entry(
    node: n.SyntaxNode, source: Source, kind: str, name: str, parameters: tuple[n.ParameterDeclaration, ...], parent: str | None
) -> DefinitionEntry:
    return {
        "name": name.lower().removeprefix("::"),
        "kind": kind,
        "parameters": {
            parameter.name: None if parameter.default is None else text_of(parameter.default, source) for parameter in parameters
        },
        "doc": _doc(source, source.line(node.at)),
        "file": source.file,
        "line": source.line(node.at),
        "parent": parent.removeprefix("::") if parent else None,
    }


def _node_name(match: n.SyntaxNode) -> str:
    if isinstance(match, n.RegexpLiteral):
        return NodeBlock.title_of(Regexp(match.source))
    return match.value.lower() if isinstance(match, n.StringLiteral) else "default"


def _doc(source: Source, line: int) -> str:
    """Return the comment that ends in the line above a definition."""
    lines: list[str] = []
    for number in range(line - 1, 0, -1):
        text = source.text[source.starts[number - 1] : source.starts[number]].strip()
        if not text.startswith("#"):
            break
        lines.append(text[1:].removeprefix(" "))
    return "\n".join(reversed(lines))


class ResourceTypes:
    """
    Answers requests about all environments. Files are read for each request; entries are remembered while a file's text is the same.

    A manifest that cannot be parsed is logged (`log` gets level and text); only its own definitions are missing.
    """

    def __init__(self, environments: Environments, log: Callable[[str, str], None]) -> None:
        self.environments = environments
        self.log = log
        self._read: dict[str, tuple[str, list[DefinitionEntry]]] = {}

    def answer(self, question: Mapping[str, Any]) -> list[DefinitionEntry]:
        """Return the entries for a request by `environment`, and by `name`, or by `pattern` and `kind`."""
        if question["name"]:
            entry = self.find(question["environment"], question["name"])
            return [] if entry is None else [entry]
        return self.search(question["environment"], question["pattern"], question["kind"])

    def find(self, environment: str, name: str) -> DefinitionEntry | None:
        """
        Return the class, defined type or node of a name, from its autoload path or the main manifests.

        Raises:
            NotFound: there is no such environment.
        """
        name = check_name(name)
        host = compiler_host(self.environments, environment)
        candidates = [entry for source in host.manifests() for entry in self._of(source, None)]
        for module, path in manifest_files(name) if _CLASS.fullmatch(name) else ():
            source = host.module_file(module, path)
            candidates += self._of(source, module) if source is not None else []
        matching = [entry for entry in candidates if entry["name"] == name]
        return min(matching, key=lambda entry: KINDS.index(entry["kind"]), default=None)

    def search(self, environment: str, pattern: str, kind: str) -> list[DefinitionEntry]:
        """Return all entries whose name matches, by kind, then name; raise NotFound for an unknown environment."""
        expression, kind = check_pattern(pattern), check_kind(kind)
        host = compiler_host(self.environments, environment)
        known: dict[tuple[str, str], DefinitionEntry] = {}
        for source, module in self._sources(host):
            for entry in self._of(source, module):
                known.setdefault((entry["kind"], entry["name"]), entry)
        ordered = sorted(known.items(), key=lambda item: (KINDS.index(item[0][0]), item[0][1]))
        try:
            return [
                definition
                for (of_kind, name), definition in ordered
                if (not kind or of_kind == kind) and (expression is None or expression.search(name))
            ]
        except EvaluationError as err:  # the match took too long, which is the client's fault
            raise BadRequest(err.message, hint=err.hint) from err

    def forget(self) -> None:
        """Forget all remembered entries."""
        self._read.clear()

    def _sources(self, host: DirectoryEnvironment) -> Iterator[tuple[Source, str | None]]:
        """Yield the main manifests, then those of each module; of two modules with one name the first counts."""
        for source in host.manifests():
            yield source, None
        seen: set[str] = set()
        for folder in host.modulepath:
            for module in host.files.names(folder):
                if module in seen or not _CLASS.fullmatch(module) or not host.files.is_folder(f"{folder}/{module}"):
                    continue
                seen.add(module)
                root = f"{folder}/{module}"
                for path in host.files.matching(root, "manifests/**/*.pp"):
                    manifest = host.module_file(module, path.removeprefix(f"{root}/"))
                    if manifest is not None:
                        yield manifest, module

    def _of(self, source: Source, module: str | None) -> list[DefinitionEntry]:
        """Return the definitions of a file; of a module's file only those that are allowed there."""
        key = source.file or ""
        remembered = self._read.get(key)
        if remembered is None or remembered[0] != source.text:
            try:
                entries = definitions(source)
            except PuppetError as err:
                self.log("err", str(err))
                entries = []
            remembered = self._read[key] = (source.text, entries)
        if module is None:
            return remembered[1]
        return [entry for entry in remembered[1] if entry["kind"] != "node" and entry["name"].split("::")[0] == module]
