"""An environment that records the questions of compilations about it, with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import CodeFiles, Signature, TrackedFiles
from language.evaluation.dependencies import NodeDependencies
from language.host import NativeType, NativeTypeLookup
from language.loading.loader import Loader
from language.syntax.source import Source

from .answers import LoadedAnswers
from .inputs import Input, Inputs


class RecordedFiles:
    """The files of an environment's code, which record in a table all questions about them, with absolute paths."""

    def __init__(self, files: CodeFiles, table: dict[Input, None]) -> None:
        self._files = files
        self._table = table

    def read(self, path: str) -> bytes | None:
        self._table["read", path] = None
        return self._files.read(path)

    def exists(self, path: str) -> bool:
        self._table["kind", path] = None
        return self._files.exists(path)

    def names(self, folder: str) -> Sequence[str]:
        self._table["names", folder] = None
        return self._files.names(folder)

    def is_folder(self, path: str) -> bool:
        self._table["kind", path] = None
        return self._files.is_folder(path)

    def signature(self, path: str) -> Signature:
        self._table["read", path] = None
        return self._files.signature(path)

    def note_read(self, path: str, since: int) -> None:
        self._table["read", path] = None
        self._files.note_read(path, since)

    def actual(self, path: str) -> str:
        return self._files.actual(path)

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        self._table["glob", folder, pattern] = None
        return self._files.matching(folder, pattern)


class RecordedTypes:
    """The resource types of an environment, which record all questions about them."""

    def __init__(self, types: NativeTypeLookup, table: dict[Input, None]) -> None:
        self._types = types
        self._table = table
        self._known: dict[str, NativeType | None] = {}

    def find(self, name: str) -> NativeType | None:
        if name not in self._known:
            self._table["type", name] = None
            self._known[name] = self._types.find(name)
        return self._known[name]


class RecordedEnvironment(DirectoryEnvironment):
    """An environment's folder as the compiler's host, which notes the inputs of catalogs."""

    def __init__(self, environment: Environment, files: TrackedFiles, *, live: TrackedFiles, **options: Any) -> None:
        self.inputs = Inputs(environment.root)
        super().__init__(environment, files, live=live, **options)
        self._configured = environment
        self._tracked = files, live
        self._recorded_types = RecordedTypes(self._types, self.inputs.shared)
        self._data.files = RecordedFiles(files, self.inputs.code_files)
        if self.access.roots:
            self.inputs.shared["modules",] = None  # links to modules say what may be read

    def finish_catalog(self, loader: Loader, reads: NodeDependencies, catalog: Mapping[str, Any]) -> None:
        """End the recording of a catalog, which looked for the definitions and functions whose names were read."""
        self.inputs.finish(loader, reads, self._tracked[1].questions(), catalog)

    @cached_property
    def answers(self) -> LoadedAnswers:
        """The answers that compilations get as long as the environment is loaded."""
        files, live = self._tracked
        services = EnvironmentServices(access=self.access)
        host = DirectoryEnvironment(self._configured, files, settings=self.settings(), types=self._types, services=services)
        return LoadedAnswers(host, files, live, self.inputs.relative_input)

    def _note_ruby(self, path: str, since: int) -> None:
        self.inputs.code_files["read", self._tracked[0].named(path)] = None
        super()._note_ruby(path, since)

    @property
    def types(self) -> NativeTypeLookup:
        return self._recorded_types

    def manifests(self) -> Sequence[Source]:
        self.inputs.shared["manifests",] = None
        return super().manifests()

    def module_root(self, name: str) -> str | None:
        self.inputs.modules[name] = None
        return super().module_root(name)

    def module_file(self, module: str, path: str) -> Source | None:
        if not path.startswith(("manifests/", "functions/")):  # those are found by the names of definitions and functions
            self.inputs.shared["module-file", module, path] = None
        return super().module_file(module, path)

    def environment_file(self, path: str) -> Source | None:
        if not path.startswith("functions/"):
            self.inputs.shared["environment-file", path] = None
        return super().environment_file(path)
