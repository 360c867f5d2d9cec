"""
The classes, defines and node blocks that an environment's manifests define, as they are written there.

Nothing is run: they are read off the syntax tree. Source: protocol reference 3.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.errors import BadRequest, EvaluationError, PuppetError
from shared.names import quoted_for_log
from shared.regexps import Regexp

from ..compiler.catalog.definitions import NodeBlock
from ..compiler.syntax import nodes as n
from ..compiler.syntax.parser import parse
from ..compiler.syntax.source import Source
from ..environments.directories import Environments
from ..environments.directory_environment import DirectoryEnvironment
from ..files.code_files import DiskFiles
from .source_text import text_of

__all__ = ["KINDS", "ResourceTypes", "check_kind", "check_name", "check_pattern", "definitions"]

KINDS = ("class", "defined_type", "node")
MAX_NAME = 512
MAX_PATTERN = 1024

_CLASS = re.compile(r"(?:::)?[a-z]\w*(?:::[a-z]\w*)*", re.ASCII)
_NODE = re.compile(r"\w[-\w]*(?:\.[-\w]+)*", re.ASCII)

Found = dict[str, Any]
"""name, kind, parameters (name to the source text of the default, None without one), doc, file, line, parent."""


def check_name(name: str) -> str:
    """The name of a class, define or node, lower case; BadRequest for anything that could mean a path."""
    lower = name.lower()
    if len(name) > MAX_NAME or not (_CLASS.fullmatch(lower) or _NODE.fullmatch(lower)):
        raise BadRequest(f"Not the name of a class, define or node: {quoted_for_log(name)}")
    return lower.removeprefix("::")


def check_pattern(pattern: str) -> Regexp | None:
    """What names are searched for: a regular expression of Ruby's flavour, None for all; else BadRequest."""
    if pattern == "*":
        return None
    if len(pattern) > MAX_PATTERN:
        raise BadRequest(f"A pattern has at most {MAX_PATTERN} characters")
    expression = Regexp(pattern)
    try:
        expression.pattern  # noqa: B018  # compiled at the first look
    except PuppetError as err:
        raise BadRequest(f"Invalid regex '{quoted_for_log(pattern)[1:-1]}': {err.message}") from err
    return expression


def check_kind(kind: str) -> str:
    """One of KINDS, or '' for all; else BadRequest."""
    if kind and kind not in KINDS:
        raise BadRequest(f"Unrecognized kind filter: {quoted_for_log(kind)}, expected one of {', '.join(map(repr, KINDS))}")
    return kind


def definitions(source: Source) -> list[Found]:
    """All classes, defines and node blocks of one file, in the order in which they end; ParseError."""
    found: list[Found] = []
    for each in parse(source).definitions:
        if isinstance(each, n.ClassDefinition):
            found.append(_described(each, source, "class", each.name, each.parameters, each.parent))
        elif isinstance(each, n.DefineDefinition):
            found.append(_described(each, source, "defined_type", each.name, each.parameters, None))
        elif isinstance(each, n.NodeDefinition):
            parent = text_of(each.parent, source) if each.parent is not None else None
            found += [_described(each, source, "node", _node_name(match), (), parent) for match in each.matches]
    return found


def _described(node: n.Node, source: Source, kind: str, name: str, parameters: tuple[n.Parameter, ...], parent: str | None) -> Found:
    return {
        "name": name.lower().removeprefix("::"),
        "kind": kind,
        "parameters": {each.name: None if each.default is None else text_of(each.default, source) for each in parameters},
        "doc": _doc(source, source.line(node.at)),
        "file": source.file,
        "line": source.line(node.at),
        "parent": parent.removeprefix("::") if parent else None,
    }


def _node_name(match: n.Node) -> str:
    if isinstance(match, n.Regex):
        return NodeBlock.title_of(Regexp(match.source))
    return match.value.lower() if isinstance(match, n.String) else "default"


def _doc(source: Source, line: int) -> str:
    """The comment that ends in the line above a definition."""
    found: list[str] = []
    for number in range(line - 1, 0, -1):
        text = source.text[source.starts[number - 1] : source.starts[number]].strip()
        if not text.startswith("#"):
            break
        found.append(text[1:].removeprefix(" "))
    return "\n".join(reversed(found))


class ResourceTypes:
    """
    Answers about all environments. Files are read anew for each question, what was made of one is kept while its text is the same.

    A manifest that cannot be parsed is logged (`log` gets level and text) and hides only what it defines.
    """

    def __init__(self, environments: Environments, log: Callable[[str, str], None]) -> None:
        self.environments = environments
        self.log = log
        self._read: dict[str, tuple[str, list[Found]]] = {}

    def answer(self, question: Mapping[str, Any]) -> list[Found]:
        """What a question of the master's asks: `environment`, and `name`, or `pattern` and `kind`."""
        if question["name"]:
            found = self.find(question["environment"], question["name"])
            return [] if found is None else [found]
        return self.search(question["environment"], question["pattern"], question["kind"])

    def find(self, environment: str, name: str) -> Found | None:
        """The class, define or node of that name: where it is autoloaded from, or in the main manifests. NotFound: no such environment."""
        name = check_name(name)
        world = self._world(environment)
        candidates = [each for source in world.manifests() for each in self._of(source, None)]
        segments = name.split("::")
        for count in range(len(segments), 0, -1) if _CLASS.fullmatch(name) else ():
            path = "/".join(segments[1:count]) if count > 1 else "init"
            source = world.module_file(segments[0], f"manifests/{path}.pp")
            candidates += self._of(source, segments[0]) if source is not None else []
        matching = [each for each in candidates if each["name"] == name]
        return min(matching, key=lambda each: KINDS.index(each["kind"]), default=None)

    def search(self, environment: str, pattern: str, kind: str) -> list[Found]:
        """All whose name fits, by kind, then name. NotFound: no such environment."""
        expression, kind = check_pattern(pattern), check_kind(kind)
        world = self._world(environment)
        known: dict[tuple[str, str], Found] = {}
        for source, module in self._sources(world):
            for each in self._of(source, module):
                known.setdefault((each["kind"], each["name"]), each)
        ordered = sorted(known.items(), key=lambda item: (KINDS.index(item[0][0]), item[0][1]))
        try:
            return [
                definition
                for (of_kind, name), definition in ordered
                if (not kind or of_kind == kind) and (expression is None or expression.search(name))
            ]
        except EvaluationError as err:  # it takes too long, which is the fault of whoever asks
            raise BadRequest(err.message, hint=err.hint) from err

    def forget(self) -> None:
        """Drop what is kept."""
        self._read.clear()

    def _world(self, environment: str) -> DirectoryEnvironment:
        found = self.environments.read(environment)
        return DirectoryEnvironment(environment, found.root, DiskFiles(), modulepath=found.modulepath, manifest=found.manifest)

    def _sources(self, world: DirectoryEnvironment) -> Iterator[tuple[Source, str | None]]:
        """The main manifests, then those of every module; of two modules of a name the first counts."""
        for source in world.manifests():
            yield source, None
        seen: set[str] = set()
        for folder in world.modulepath:
            for module in world.files.names(folder):
                if module in seen or not _CLASS.fullmatch(module) or not world.files.is_folder(f"{folder}/{module}"):
                    continue
                seen.add(module)
                root = f"{folder}/{module}"
                for path in world.files.matching(root, "manifests/**/*.pp"):
                    found = world.module_file(module, path.removeprefix(f"{root}/"))
                    if found is not None:
                        yield found, module

    def _of(self, source: Source, module: str | None) -> list[Found]:
        """The definitions of a file; of a module's file those that may stand there."""
        key = source.file or ""
        kept = self._read.get(key)
        if kept is None or kept[0] != source.text:
            try:
                made = definitions(source)
            except PuppetError as err:
                self.log("err", str(err))
                made = []
            kept = self._read[key] = (source.text, made)
        if module is None:
            return kept[1]
        return [each for each in kept[1] if each["kind"] != "node" and each["name"].split("::")[0] == module]
