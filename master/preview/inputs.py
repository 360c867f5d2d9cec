"""
What a catalog depends on besides its node: questions that its compilation asked about the code, by the way they are asked.

A compilation is a function of the answers. Asked in the same order, the questions have other answers in another environment, or the
catalog is the same. Some questions are asked once for all compilations of an environment, such as those about types, functions and
configurations, since what they find stays in memory; these count for every catalog. All others are of one catalog.

Paths are kept relative to the environment, so that a question can be asked about another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..compiler.catalog.definitions import Definition
from ..compiler.host import NativeType, NativeTypeLookup
from ..compiler.loading.loader import Loader
from ..compiler.syntax.source import Source
from ..environments.directory_environment import DirectoryEnvironment
from ..files.code_files import CodeFiles
from ..hiera.data.files import DataFiles

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


class RecordedFiles:
    """The files of an environment, which note what is asked of them."""

    def __init__(self, files: CodeFiles, inputs: Inputs, *, shared: bool) -> None:
        self._files = files
        self._inputs = inputs
        self._shared = shared

    def read(self, path: str) -> bytes | None:
        self._inputs.note("read", path, shared=self._shared)
        return self._files.read(path)

    def exists(self, path: str) -> bool:
        self._inputs.note("exists", path, shared=self._shared)
        return self._files.exists(path)

    def names(self, folder: str) -> Sequence[str]:
        self._inputs.note("names", folder, shared=self._shared)
        return self._files.names(folder)

    def is_folder(self, path: str) -> bool:
        self._inputs.note("folder", path, shared=self._shared)
        return self._files.is_folder(path)

    def signature(self, path: str) -> tuple[int, ...] | None:
        self._inputs.note("read", path, shared=self._shared)
        return self._files.signature(path)

    def actual(self, path: str) -> str:
        return self._files.actual(path)

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        self._inputs.note("glob", folder, pattern, shared=self._shared)
        return self._files.matching(folder, pattern)


class RecordedTypes:
    """The resource types of an environment, which note what is asked of them."""

    def __init__(self, types: NativeTypeLookup, inputs: Inputs) -> None:
        self._types = types
        self._inputs = inputs

    def find(self, name: str) -> NativeType | None:
        self._inputs.shared["type", name] = None
        return self._types.find(name)


class RecordedEnvironment(DirectoryEnvironment):
    """An environment's folder as the compiler's host, which notes the inputs of catalogs."""

    def __init__(self, environment: str, root: str, files: CodeFiles, *, live: CodeFiles, **options: Any) -> None:
        self.inputs = Inputs(root)
        super().__init__(environment, root, files, live=RecordedFiles(live, self.inputs, shared=False), **options)
        self._recorded_types = RecordedTypes(self._types, self.inputs)
        self._data.files = RecordedFiles(files, self.inputs, shared=True)
        self._data.data = DataFiles(self.live, self._data.strict)
        if self.access.roots:
            self.inputs.note("modules", shared=True)  # links to modules say what may be read

    @property
    def types(self) -> NativeTypeLookup:
        return self._recorded_types

    def manifests(self) -> Sequence[Source]:
        self.inputs.note("manifests", shared=True)
        return super().manifests()

    def module_root(self, name: str) -> str | None:
        self.inputs.note("module", name)
        return super().module_root(name)

    def module_file(self, module: str, path: str) -> Source | None:
        if not path.startswith("manifests/"):  # those are found by the names of definitions
            self.inputs.note("module-file", module, path, shared=True)
        return super().module_file(module, path)

    def function_extension(self, name: str) -> Source | None:
        self.inputs.note("extension", name, shared=True)
        return super().function_extension(name)

    def environment_file(self, path: str) -> Source | None:
        self.inputs.note("environment-file", path, shared=True)
        return super().environment_file(path)
