"""
The grammar that questions are generated from: YAML files of rules in `grammar/`, one file a noun.

A file maps the name of a rule to a list of templates, each a text or `[text, weight]`. In a template

    <kind>      stands for something that the rule `kind` produces; <kind?> for that or nothing
    <kind*>     for up to four of them with commas between, <kind+> for at least one
    <kind**>    for one to five of them, each on a line of its own: a block, at whose end its variables end
    <bind:kind> for a new variable, which the rest of this template can read where it needs a `kind`
    <let:kind>  for a new variable, which the rest of the block can read

`\\<` is a literal `<` where something of this form is meant as text. The kind `fresh` is built in: a word that the question has
nowhere else. `topics.yaml` names what a question consists of, `supplements.yaml` the definitions that are added where they are used.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.trees import Question, Tree

__all__ = ["Generator", "Grammar", "GrammarError", "Topic"]

FOLDER = Path(__file__).parent / "grammar"
_SLOT = re.compile(r"\\<|<(?:(bind|let):)?([a-z][a-z0-9_]*)(\*\*|[*+?])?>")
_MOST_ITEMS = 4
_VARIABLE_CHANCE = 0.35
_FOREIGN_CHANCE = 0.012
_DEPTH = 6
"""Nested rules until short templates are preferred; only the shortest are left at _DEEPEST."""
_DEEPEST = -3


class GrammarError(Exception):
    """A file of the grammar is not what it has to be."""


@dataclass(frozen=True)
class Slot:
    """A place of a template that something else fills: `role` is '', 'bind' or 'let', `many` the sign behind the kind."""

    kind: str
    role: str = ""
    many: str = ""

    @property
    def may_be_empty(self) -> bool:
        return self.many in ("*", "?")


@dataclass(frozen=True)
class Template:
    """One way to write what a rule stands for."""

    parts: tuple[str | Slot, ...]
    weight: float

    @classmethod
    def of(cls, text: str, weight: float = 1) -> Template:
        parts: list[str | Slot] = []
        end = 0
        for match in _SLOT.finditer(text):
            parts.append(text[end : match.start()])
            parts.append("<" if match[2] is None else Slot(match[2], match[1] or "", match[3] or ""))
            end = match.end()
        parts.append(text[end:])
        return cls(tuple(part for part in parts if part != ""), weight)

    @property
    def slots(self) -> Iterator[Slot]:
        return (part for part in self.parts if isinstance(part, Slot))


@dataclass(frozen=True)
class Topic:
    """What a question about one part of the language consists of; `files` and `manifest` are templates."""

    name: str
    manifest: Template
    files: Mapping[str, Template]
    settings: Mapping[str, Template]
    weight: float = 1
    stdlib: bool = False


@dataclass(frozen=True)
class Grammar:
    """All rules and topics."""

    rules: Mapping[str, tuple[Template, ...]]
    topics: tuple[Topic, ...]
    supplements: tuple[tuple[re.Pattern[str], str], ...] = ()

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Grammar:
        """
        Read all files of `folder`.

        Raises:
            GrammarError: a rule is defined twice, or a template names one that does not exist.
        """
        rules: dict[str, tuple[Template, ...]] = {}
        topics: list[Topic] = []
        supplements: tuple[tuple[re.Pattern[str], str], ...] = ()
        for path in sorted(folder.glob("*.yaml")):
            content: dict[str, Any] = yaml.load(path.read_text(), yaml.CSafeLoader)
            if path.stem == "topics":
                topics = [_topic(name, entry) for name, entry in content.items()]
                continue
            if path.stem == "supplements":
                supplements = tuple((re.compile(pattern), rule) for pattern, rule in content.items())
                continue
            for name, entries in content.items():
                if name in rules:
                    raise GrammarError(f"{path.name}: the rule '{name}' is defined twice")
                rules[name] = tuple(Template.of(*entry) if isinstance(entry, list) else Template.of(entry) for entry in entries)
        grammar = cls(rules, tuple(topics), supplements)
        grammar._check()
        return grammar

    def _check(self) -> None:
        unknown = [rule for _, rule in self.supplements if rule not in self.rules]
        if unknown:
            raise GrammarError(f"supplements.yaml: there is no rule '{unknown[0]}'")
        whole = {f"topic {topic.name}": (topic.manifest, *topic.files.values(), *topic.settings.values()) for topic in self.topics}
        for name, templates in {**self.rules, **whole}.items():
            for template in templates:
                for slot in template.slots:
                    if slot.kind not in self.rules and slot.kind != "fresh" and not slot.role:
                        raise GrammarError(f"{name}: there is no rule '{slot.kind}'")
        endless = [name for name in self.rules if name not in self.depths]
        if endless:
            raise GrammarError(f"These rules never end: {', '.join(endless)}")

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """The least number of nested rules that each rule needs."""
        depths: dict[str, int] = {"fresh": 1}
        changed = True
        while changed:
            changed = False
            for name, templates in self.rules.items():
                possible = [depth for template in templates if (depth := self._depth(template, depths)) is not None]
                if possible and depths.get(name) != min(possible):
                    depths[name] = min(possible)
                    changed = True
        return depths

    @staticmethod
    def _depth(template: Template, depths: Mapping[str, int]) -> int | None:
        needed = [slot.kind for slot in template.slots if not slot.role and not slot.may_be_empty]
        if any(kind not in depths for kind in needed):
            return None
        return 1 + max((depths[kind] for kind in needed), default=0)

    def depth(self, template: Template) -> int:
        """The least number of nested rules that a template needs."""
        return self._depth(template, self.depths) or 0

    @cached_property
    def leaves(self) -> Mapping[str, tuple[str, ...]]:
        """For each rule its shortest texts without any slot."""
        plain = {
            name: sorted(("".join(map(str, each.parts)) for each in templates if not any(each.slots)), key=len)
            for name, templates in self.rules.items()
        }
        return {name: tuple(texts[:2]) for name, texts in plain.items()}


def _topic(name: str, entry: Mapping[str, Any]) -> Topic:
    return Topic(
        name,
        Template.of(entry["manifest"]),
        {path: Template.of(text) for path, text in (entry.get("files") or {}).items()},
        {key: Template.of(text) for key, text in (entry.get("settings") or {}).items()},
        entry.get("weight", 1),
        entry.get("stdlib", False),
    )


def _weighted(templates: tuple[Template, ...]) -> tuple[tuple[Template, ...], list[float]]:
    return templates, [each.weight for each in templates]


# What a place for one kind of value may also take from variables of another.
_FITS = {
    "any": None,
    "data": {"data", "int", "float", "str", "bool", "array", "hash"},
    "num": {"num", "int", "float"},
    "array": {"array", "ints", "strs"},
    "scalar": {"int", "float", "str", "bool"},
}


@dataclass
class Generator:
    """Writes questions; equal seeds write equal ones."""

    grammar: Grammar
    chance: random.Random
    blocks: list[list[tuple[str, str]]] = field(default_factory=lambda: [[]])
    names: int = 0

    def question(self, topics: tuple[Topic, ...]) -> Question:
        """A question about one of the topics."""
        topic = self.chance.choices(topics, [each.weight for each in topics])[0]
        self.names = 0
        files = {path: self._fresh(path, template) for path, template in topic.files.items()}
        settings = {name: self._fresh(name, template).text for name, template in topic.settings.items()}
        manifest = self._fresh("manifest", topic.manifest)
        manifest = self._supplemented(manifest, files.values())
        return Question(
            topic.name,
            manifest,
            {path: tree for path, tree in files.items() if tree.text.strip()},
            {name: value for name, value in settings.items() if value},
            topic.stdlib,
        )

    def _supplemented(self, manifest: Tree, files: Iterable[Tree]) -> Tree:
        """The manifest with the definitions before it that any of the files, or another definition, names."""
        definitions: dict[str, Tree] = {}
        texts = [manifest.text, *(tree.text for tree in files)]
        while texts:
            text = texts.pop()
            for pattern, rule in self.grammar.supplements:
                if rule not in definitions and pattern.search(text):
                    template = self.chance.choices(*_weighted(self.grammar.rules[rule]))[0]
                    definitions[rule] = self._fresh(rule, template)
                    texts.append(definitions[rule].text)
        ordered = [definitions[rule] for _, rule in self.grammar.supplements if rule in definitions]
        return Tree("manifest", (*ordered, manifest), separator="\n") if ordered else manifest

    def _fresh(self, kind: str, template: Template) -> Tree:
        self.blocks = [[]]
        return self._fill(kind, template, _DEPTH)

    def _fill(self, kind: str, template: Template, depth: int, leaves: tuple[str, ...] = ()) -> Tree:
        own: list[tuple[str, str]] = []
        self.blocks.append(own)
        lets: list[tuple[str, str]] = []
        parts: list[str | Tree] = []
        for part in template.parts:
            if isinstance(part, str):
                parts.append(part)
            elif part.role:
                name = self._new_name()
                (own if part.role == "bind" else lets).append((name, part.kind))
                parts.append(name)
            else:
                parts.append(self._slot(part, depth))
        self.blocks.pop()
        self.blocks[-1].extend(lets)
        return Tree(kind, tuple(parts), leaves=leaves)

    def _new_name(self) -> str:
        self.names += 1
        return f"$v{self.names}"

    def _slot(self, slot: Slot, depth: int) -> Tree:
        if slot.many == "?":
            return Tree("optional", (self._rule(slot.kind, depth - 1),) if self.chance.random() < 0.5 else (), separator="")
        if slot.many in ("*", "+"):
            least = 1 if slot.many == "+" else 0
            most = _MOST_ITEMS if depth > 0 else 2 if depth > _DEEPEST else least
            count = max(least, min(self.chance.randint(0, most), self.chance.randint(0, most) + 1))
            return Tree("list", tuple(self._rule(slot.kind, depth - 1) for _ in range(count)), separator=", ")
        if slot.many == "**":
            self.blocks.append([])
            items = tuple(self._rule(slot.kind, depth - 1) for _ in range(self.chance.randint(1, 4 if depth > 4 else 2)))
            self.blocks.pop()
            return Tree("block", items, separator="\n")
        return self._rule(slot.kind, depth - 1)

    def _rule(self, kind: str, depth: int) -> Tree:
        if kind == "fresh":
            self.names += 1
            return Tree(kind, (f"n{self.names}",))
        leaves = self.grammar.leaves.get(kind, ())
        if kind in _VALUES:
            if kind != "type" and self.chance.random() < _FOREIGN_CHANCE:
                kind = self.chance.choice(_VALUES)
            if self.chance.random() < _VARIABLE_CHANCE and (name := self._variable(kind)):
                return Tree(kind, (name,), leaves=leaves)
        templates = self.grammar.rules[kind]
        if depth <= 0:
            most = min(self.grammar.depth(each) for each in templates) + (1 if depth > _DEEPEST else 0)
            templates = tuple(each for each in templates if self.grammar.depth(each) <= most)
        template = self.chance.choices(*_weighted(templates))[0]
        return self._fill(kind, template, depth, leaves)

    def _variable(self, kind: str) -> str | None:
        fitting = _FITS.get(kind, {kind})
        names = [name for block in self.blocks for name, held in block if fitting is None or held in fitting]
        return self.chance.choice(names) if names else None


_VALUES = ["any", "data", "scalar", "int", "float", "num", "str", "bool", "array", "ints", "strs", "hash", "type", "regex"]
"""
The kinds that are values of the language: variables can stand for them, and once in a while another kind does; not for a type, as the
reference takes anything for the member of a Struct (deviations.yaml, type-args-accepted-without-checking).
"""
