"""Generated texts as trees, and the smaller texts that a tree can be cut down to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

__all__ = ["Question", "Tree"]


@dataclass(frozen=True)
class Tree:
    """
    What one rule of the grammar produced.

    Attributes:
        kind: the rule's name; a tree can stand wherever another of its kind stands.
        parts: text and sub-trees, in order.
        separator: not None for a list, of whose parts each can be left out; the text between them.
        leaves: the shortest texts of this kind, to try instead.
    """

    kind: str
    parts: tuple[str | Tree, ...]
    separator: str | None = None
    leaves: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return (self.separator or "").join(part if isinstance(part, str) else part.text for part in self.parts)

    def descendants(self) -> Iterator[Tree]:
        """All trees below this one, the nearest first."""
        level = [part for part in self.parts if isinstance(part, Tree)]
        while level:
            yield from level
            level = [part for tree in level for part in tree.parts if isinstance(part, Tree)]

    def smaller(self) -> Iterator[Tree]:
        """Trees with a shorter text that differ from this one in one place, the largest cuts first."""
        yield from self._cuts()
        for index, part in enumerate(self.parts):
            if isinstance(part, Tree):
                for cut in part.smaller():
                    yield replace(self, parts=(*self.parts[:index], cut, *self.parts[index + 1 :]))

    def _cuts(self) -> Iterator[Tree]:
        size = len(self.text)
        if self.separator is not None and self.parts:
            half = len(self.parts) // 2
            if half > 1:
                yield replace(self, parts=self.parts[:half])
                yield replace(self, parts=self.parts[half:])
            for index in range(len(self.parts)):
                yield replace(self, parts=(*self.parts[:index], *self.parts[index + 1 :]))
            return
        for leaf in self.leaves:
            if len(leaf) < size:
                yield replace(self, parts=(leaf,), leaves=())
        for tree in self.descendants():
            if tree.kind == self.kind and len(tree.text) < size:
                yield tree


@dataclass(frozen=True)
class Question:
    """
    One case for both compilers.

    Attributes:
        topic: which part of the language it is about.
        manifest: the site manifest.
        files: further files of the environment, by their path inside it.
        settings: settings other than the recorder's own.
        stdlib: whether the reference has puppetlabs-stdlib.
    """

    topic: str
    manifest: Tree
    files: Mapping[str, Tree]
    settings: Mapping[str, str]
    stdlib: bool = False

    def case(self) -> dict[str, object]:
        """The question in the form of the conformance cases."""
        return {
            "manifest": self.manifest.text,
            "files": {path: tree.text for path, tree in self.files.items()},
            "settings": dict(self.settings),
            "stdlib": self.stdlib,
        }

    @property
    def size(self) -> int:
        """Characters in all files."""
        return len(self.manifest.text) + sum(len(tree.text) for tree in self.files.values())

    def smaller(self) -> Iterator[Question]:
        """Questions with less text that differ from this one in one place."""
        for name in self.settings:
            yield replace(self, settings={key: value for key, value in self.settings.items() if key != name})
        for path in self.files:
            yield replace(self, files={key: tree for key, tree in self.files.items() if key != path})
        for tree in self.manifest.smaller():
            yield replace(self, manifest=tree)
        for path, tree in self.files.items():
            for cut in tree.smaller():
                yield replace(self, files={**self.files, path: cut})
