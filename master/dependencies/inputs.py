"""
The inputs of a catalog other than its node: the questions that its compilation asks about the code, in their order.

A compilation is a function of the answers. Asked in the same order, the questions have other answers in another environment, or the
catalog is the same. Some questions are asked once for all compilations of an environment, such as those about types and
configurations, since what they find stays in memory; these count for every catalog. All others are of one catalog.

Paths are kept relative to the environment, so that a question can be asked about another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from environments.module_sources import module_sources
from language.catalog.definitions import Definition
from language.evaluation.dependencies import NodeDependencies
from language.loading.loader import Loader, function_files, is_loadable, manifest_files

Input = tuple[str, ...]
"""A question: its kind, and what it is about."""

MAX_SETS = 100
"""Sets of names of which the inputs are kept."""
MAX_KNOWN = 50_000
"""Inputs about files of which the relative form is kept."""
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
        modules: modules that the current catalog looked up.
        code_files: of every catalog, about files of the code; with absolute paths.
        live: of the current catalog, when it has ended, about files that are read anew for each one; with absolute paths.
        sources: files of modules, as `MODULE/PATH`, that the agent reads for the current catalog; the catalog itself is the same without
            them.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.shared: dict[Input, None] = {}
        self.own: dict[Input, None] = {}
        self.modules: dict[str, None] = {}
        self.code_files: dict[Input, None] = {}
        self.live: Sequence[Input] = ()
        self.sources: dict[str, None] = {}
        self._below = f"{root}/"
        self._places = self._type_names = self._code_files = 0
        self._of_definitions: dict[frozenset[str], tuple[int, dict[Input, None]]] = {}
        self._relative_inputs: dict[Input, Input] = {}

    def begin(self) -> None:
        """Begin a catalog."""
        for table in (self.own, self.modules, self.sources):
            table.clear()

    def finish(self, loader: Loader, reads: NodeDependencies, live: Sequence[Input], catalog: Mapping[str, Any]) -> None:
        """
        End a catalog.

        Args:
            reads: It has the names of the definitions, functions and settings that were looked up.
            live: The questions about files that are read again for each catalog.
        """
        self.live = live
        if len(loader.type_names) != self._type_names:
            self._type_names = len(loader.type_names)
            self.shared.update({_definition_input(name, None, loader): None for name in loader.type_names})
        if len(loader.places) != self._places:  # functions and types that stand in other files than those named after them
            self._places = len(loader.places)
            self.shared.update({("read", self.relative(file)): None for file in _files_elsewhere(loader)})
        if len(self.code_files) != self._code_files:
            self._code_files = len(self.code_files)
            self.shared.update(dict.fromkeys(map(self.relative_input, self.code_files)))
        self.own.update(self._inputs_of_all(frozenset(reads.definitions), loader))
        self.own.update(dict.fromkeys(_function_inputs(frozenset(reads.functions - loader.builtins.keys()))))
        self.own.update({("setting", name): None for name in sorted(reads.settings)})
        self.own.update({("module", name): None for name in self.modules})
        for resource in catalog["resources"]:
            if resource["type"] == "File" and "source" in (parameters := resource.get("parameters", {})):
                self.sources.update(dict.fromkeys(module_sources(parameters)))

    def _inputs_of_all(self, names: frozenset[str], loader: Loader) -> dict[Input, None]:
        """Return the inputs for classes and defined types; many nodes look for the same ones."""
        count = len(loader.classes) + len(loader.defines)  # a loader only gets more of them
        known = self._of_definitions.get(names)
        if known is not None and known[0] == count:
            return known[1]
        inputs: dict[Input, None] = {}
        are_parents_known = True
        for name in sorted(names):
            definition: Definition | None = loader.classes.get(name) or loader.defines.get(name)
            inputs.update(dict.fromkeys(self._inputs_of(name, definition, loader)))
            are_parents_known &= getattr(definition, "parent_name", None) is None or getattr(definition, "parent", None) is not None
        if len(self._of_definitions) >= MAX_SETS:
            self._of_definitions.clear()
        if are_parents_known:
            self._of_definitions[names] = count, inputs
        return inputs

    def _inputs_of(self, name: str, definition: Definition | None, loader: Loader) -> Iterator[Input]:
        """Yield the inputs for a class or defined type and its parents: the files that may define it, and the one that does."""
        yield _definition_input(name, definition, loader)
        while definition is not None:
            if definition.place is not None and definition.place.file:
                yield "read", self.relative(definition.place.file)
            parent = getattr(definition, "parent", None)
            if parent is not None:
                yield _definition_input(parent.name, parent, loader)
            definition = parent

    def of_code(self) -> list[Input]:
        """Return the inputs of the current catalog, when it has ended, whose answers are the same as long as the environment is loaded."""
        return [*self.shared, *self.own]

    def questions(self) -> tuple[Input, ...]:
        """Return all inputs of the current catalog, when it has ended."""
        return (*self.shared, *self.own, *map(self.relative_input, self.live))

    def relative_input(self, question: Input) -> Input:
        """Return an input about a file with its path as inputs have it."""
        known = self._relative_inputs.get(question)
        if known is None:
            if len(self._relative_inputs) >= MAX_KNOWN:
                self._relative_inputs.clear()
            known = self._relative_inputs[question] = (question[0], self.relative(question[1]), *question[2:])
        return known

    def relative(self, path: str) -> str:
        """Return a path as inputs have it."""
        return ROOT + path[len(self.root) :] if path.startswith(self._below) or path == self.root else path


def _definition_input(name: str, definition: Definition | None, loader: Loader) -> Input:
    """Return the input for a class or defined type: the manifests that may define it, up to the one that does."""
    count = name.count("::") + 1
    if definition is not None and definition.place is not None and definition.place.file:
        for number, (module, path) in enumerate(manifest_files(name), 1):
            if definition.place.file == f"{loader.host.module_root(module)}/{path}":
                count = max(number, 2)  # the init of a module is read with the next
                break
    return "definition", name, str(count)


@lru_cache(MAX_SETS)
def _function_inputs(names: frozenset[str]) -> Sequence[Input]:
    """Return the inputs for functions; many nodes call the same ones."""
    plain_names = {name.removeprefix("::") for name in names}
    return [("function", name) for name in sorted(plain_names) if is_loadable(name)]


def _files_elsewhere(loader: Loader) -> Iterator[str]:
    """Yield the files of functions, defined types and type aliases, but for those in which these are looked for by their names."""
    for (kind, name), place in loader.places.items():
        if place.file and not place.file.endswith(tuple(_own_files(kind, name.lower()))):
            yield place.file


def _own_files(kind: str, name: str) -> Iterator[str]:
    """Yield the ends of the paths of files in which something is looked for by its name."""
    segments = name.split("::")
    if kind == "function":
        own, module, path = function_files(name)
        yield f"/{module}/{path}"
        if own is not None:
            yield f"/{own}"
        return
    yield from (f"/{module}/{path}" for module, path in manifest_files(name))
    yield f"/{segments[0]}/types/{'/'.join(segments[1:])}.pp" if len(segments) > 1 else f"/types/{name}.pp"
