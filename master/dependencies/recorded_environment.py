"""An environment that notes what compilations ask about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.host import NativeType, NativeTypeLookup
from ..compiler.syntax.source import Source
from ..environments.directory_environment import DirectoryEnvironment
from ..files.code_files import CodeFiles
from ..hiera.data.files import DataFiles
from .inputs import Inputs


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
