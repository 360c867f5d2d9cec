"""
What a catalog depends on besides its node: questions that its compilation asked about the code, by the way they are asked.

A compilation is a function of the answers. Asked in the same order, the questions have other answers in another environment, or the
catalog is the same. Some questions are asked once for all compilations of an environment, such as those about types, functions and
configurations, since what they find stays in memory; these count for every catalog. All others are of one catalog.

Paths are kept relative to the environment, so that a question can be asked about another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..compiler.catalog.definitions import Definition
from ..compiler.loading.loader import Loader

Input = tuple[str, ...]
"""A question: its kind, and what it is about."""

ROOT = "\0"
"""Stands for the folder of the environment in an input."""


def relative(text: str, root: str) -> str:
    """Return a path as inputs have it."""
    return ROOT + text[len(root) :] if text == root or text.startswith(f"{root}/") else text


def absolute(text: str, root: str) -> str:
    """Return the path of an input in the environment at `root`."""
    return root + text[len(ROOT) :] if text.startswith(ROOT) else text


class Inputs:
    """
    The inputs of the compilations of one environment.

    Attributes:
        shared: of every catalog that is compiled from now on, in the order in which they were asked.
        own: of the current catalog.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.shared: dict[Input, None] = {}
        self.own: dict[Input, None] = {}
        self._places = 0

    def begin(self) -> None:
        """Begin a catalog."""
        self.own = {}

    def finish(self, loader: Loader, definitions: Iterable[str]) -> None:
        """End a catalog, which looked for classes and defined types of these names."""
        for name in loader.type_names:
            self.shared[_definition_input(name, None, loader)] = None
        if len(loader.places) != self._places:  # functions and types that stand in other files than those named after them
            self._places = len(loader.places)
            self.shared.update({("read", relative(place.file, self.root)): None for place in loader.places.values() if place.file})
        for name in sorted(definitions):
            definition: Definition | None = loader.classes.get(name) or loader.defines.get(name)
            self.own[_definition_input(name, definition, loader)] = None
            while definition is not None:
                if definition.place is not None and definition.place.file:
                    self.own["read", relative(definition.place.file, self.root)] = None
                parent = getattr(definition, "parent", None)
                if parent is not None:
                    self.own[_definition_input(parent.name, parent, loader)] = None
                definition = parent

    def questions(self) -> tuple[Input, ...]:
        """Return the inputs of the current catalog, when it has ended."""
        return tuple(dict.fromkeys([*self.shared, *self.own]))

    def note(self, kind: str, *about: str, shared: bool = False) -> None:
        """Note an input."""
        (self.shared if shared else self.own)[(kind, *(relative(text, self.root) for text in about))] = None


def manifests_for(name: str) -> Iterator[tuple[str, str]]:
    """Yield the module and path of each manifest that may define a class or type, in the order in which they are read."""
    segments = name.split("::")
    for count in range(len(segments), 0, -1):
        yield segments[0], f"manifests/{'/'.join(segments[1:count]) if count > 1 else 'init'}.pp"


def _definition_input(name: str, definition: Definition | None, loader: Loader) -> Input:
    """Return the input for a class or defined type: the manifests that may define it, up to the one that does."""
    count = name.count("::") + 1
    if definition is not None and definition.place is not None and definition.place.file:
        for number, (module, path) in enumerate(manifests_for(name), 1):
            if definition.place.file == f"{loader.host.module_root(module)}/{path}":
                count = number
                break
    return "definition", name, str(count)
