"""An environment's folder as the compiler's host."""

from __future__ import annotations

import posixpath
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from language.catalog.richdata import encode
from language.host import (
    NO_ARGUMENTS,
    DataContext,
    ExportedResource,
    LookupArguments,
    LookupMethods,
    NativeTypeLookup,
    NodeInput,
    RubyRuntime,
)
from language.syntax.source import Source
from language.values.core import Value
from shared.errors import EvaluationError, ParseError

from .directories import Environment, Environments
from .files.code_files import CodeFiles, DiskFiles
from .files.globbing import Globbing
from .files.manifest_access import ManifestAccess
from .hiera import DataLayers, DataSources, detached_context, look_up
from .module_types.registry import ModuleTypes, RubyTypeCache
from .repeated_calls import ProgramCall, RepeatableCall, RepeatedCalls, digest_of_result
from .ruby import RubyHost, RubyProgram
from .store_questions import AskPuppetDb, StoreQuestions

_MODULE = re.compile(r"[a-z]\w*", re.ASCII)
PROGRAM_TIMEOUT = 300.0
"""Seconds that a program of `generate` may take."""


@dataclass(frozen=True, slots=True)
class EnvironmentServices:
    """
    What an environment's host has from the process that compiles.

    Args:
        access: What manifests may read and start on this host.
        ruby: Runs what modules have in Ruby. None: nothing does.
        ruby_types: Keeps what was read of types in Ruby.
        note: Is told of types whose attributes are not known.
        ask_puppetdb: Has questions answered by the site's PuppetDB. None: there is none.
        export_keys: See EnvironmentSettings.
        clock: Returns the time in nanoseconds since 1970.
    """

    access: ManifestAccess = field(default_factory=ManifestAccess)
    ruby: RubyProgram | None = None
    ruby_types: RubyTypeCache | None = None
    note: Callable[[str], None] = lambda text: None
    ask_puppetdb: AskPuppetDb | None = None
    export_keys: str = ""
    clock: Callable[[], int] = time.time_ns


class DirectoryEnvironment:
    """
    An environment in a folder: its manifest is one file or a folder of them, modules are found along its modulepath.

    `settings` are what `$settings::…` and the compiler itself read; `code` stands for the manifest. A change of one of `files` makes a new
    host; templates and the like are read through `live` each time they are used. `questions` records what PuppetDB was asked.
    """

    def __init__(
        self,
        environment: Environment,
        files: CodeFiles,
        *,
        settings: Mapping[str, Any] | None = None,
        code: str | None = None,
        types: NativeTypeLookup | None = None,
        live: CodeFiles | None = None,
        services: EnvironmentServices | None = None,
    ) -> None:
        services = services or EnvironmentServices()
        self._environment = environment.name
        self.root = environment.root
        self.files = files
        self.live = live or files
        self.modulepath = list(environment.modulepath)
        self.manifest = environment.manifest
        self.code = code
        self._settings = dict(settings or {})
        self._clock = services.clock
        self.questions = StoreQuestions(services.ask_puppetdb, services.export_keys)
        self.access = services.access
        libdir = self._settings.get("libdir")
        self._types = types or ModuleTypes(
            files,
            self.module_roots(),
            environment=self.root,
            libdirs=[str(libdir)] if libdir else [],
            ruby=services.ruby_types,
            note=services.note,
        )
        self._modules: dict[str, str | None] = {}
        self.calls = RepeatedCalls(self._begin_repeats, self._repeat)
        self._ruby: RubyHost | None = None
        if services.ruby is not None:
            self._ruby = RubyHost(services.ruby, self._libraries, self._note_ruby, self.live, self.calls, self.root)
        self._data = DataSources(
            files,
            environment=environment.name,
            root=self.root,
            settings=self._settings,
            module_root=self.module_root,
            data_provider=environment.data_provider,
            data_files=self.live,
        )

    @property
    def environment(self) -> str:
        return self._environment

    @property
    def types(self) -> NativeTypeLookup:
        return self._types

    # --- manifests and modules ---

    def manifests(self) -> Sequence[Source]:
        if self.code is not None:
            return [Source(self.code)]
        if self.manifest is None:
            return []
        if not self.files.is_folder(self.manifest):
            source = self._source(self.manifest)
            return [source] if source is not None else []
        manifests: list[str] = []
        self._manifests_below(self.manifest, manifests)
        return [source for path in sorted(manifests) if (source := self._source(path)) is not None]

    def _manifests_below(self, folder: str, into: list[str]) -> None:
        for name in self.files.names(folder):
            path = f"{folder}/{name}"
            if self.files.is_folder(path):
                self._manifests_below(path, into)
            elif name.endswith(".pp"):
                into.append(path)

    def _source(self, path: str) -> Source | None:
        data = self.files.read(path)
        if data is None:
            return None
        try:
            return Source(data.decode("utf-8"), path)
        except UnicodeDecodeError as error:
            raise ParseError(f"{path} is not valid UTF-8: {error.reason} at octet {error.start}") from error

    def module_root(self, name: str) -> str | None:
        """Return the folder of a module: the first of that name along the modulepath."""
        if name not in self._modules:
            self._modules[name] = next((f"{folder}/{name}" for folder in self.modulepath if self.files.is_folder(f"{folder}/{name}")), None)
        return self._modules[name]

    def module_file(self, module: str, path: str) -> Source | None:
        root = self.module_root(module)
        return None if root is None else self._source(f"{root}/{path}")

    def module_roots(self) -> Sequence[str]:
        """Return the folders of all modules; of two with one name the first along the modulepath."""
        roots: dict[str, str] = {}
        for folder in self.modulepath:
            for name in self.files.names(folder):
                if _MODULE.fullmatch(name) is not None and self.files.is_folder(f"{folder}/{name}"):
                    roots.setdefault(name, f"{folder}/{name}")
        return list(roots.values())

    def function_extension(self, name: str) -> Source | None:
        path = name.replace("::", "/")
        module_root = self.module_root(name.split("::")[0]) if "::" in name else None
        roots = [module_root] if module_root is not None else [] if "::" in name else [self.root, *self.module_roots()]
        for extension in (f"lib/puppet/functions/{path}.py", f"lib/puppet/functions/{path}.rb", f"lib/puppet/parser/functions/{path}.rb"):
            for root in roots:
                source = self._source(f"{root}/{extension}")
                if source is not None:
                    return source
        return None

    def own_roots(self) -> Sequence[str]:
        """Return the folders that names of files are shortened by: those of modules, and the environment's own."""
        return [f"{folder}/" for folder in (*self.modulepath, self.root)]

    def environment_file(self, path: str) -> Source | None:
        return self._source(f"{self.root}/{path}")

    # --- other files ---

    def find_file(self, reference: str, kind: str) -> str | None:
        if reference.startswith("/"):
            self.access.check_read(reference, self._own_folders())
            return reference if self._is_there(reference) else None
        module, slash, rest = reference.partition("/")
        root = self.module_root(module) if slash else None
        candidates = [f"{root}/{kind}/{rest}"] if root is not None else []
        if kind == "templates":
            candidates.append(f"{self.root}/templates/{reference}")
        for candidate in candidates:
            path = _tidy(candidate)
            self.access.check_read(path, self._own_folders())
            if self._is_there(path):
                return path
        return None

    def matching_paths(self, pattern: str) -> Sequence[str]:
        return list(Globbing(self.live, lambda path: self.access.check_read(path, self._own_folders())).matches(pattern))

    def _own_folders(self) -> Iterable[str]:
        """Return the environment's own folders, wherever links lead to modules of it. Made only where somebody looks."""
        yield self.root
        yield from self.modulepath
        yield from self.module_roots()

    def _is_there(self, path: str) -> bool:
        return self.live.exists(path)

    def read_file(self, path: str) -> bytes:
        data = self.live.read(path)
        if data is None:
            raise EvaluationError(f"Could not read {path}")
        return data

    def execute(self, command: Sequence[str]) -> str:
        self.access.check_program(command[0])
        try:
            process = subprocess.run(  # what it writes to standard error belongs to the result, as in the reference
                list(command),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=PROGRAM_TIMEOUT,
                check=False,
                cwd=posixpath.dirname(command[0]) or "/",
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise EvaluationError(f"Failed to execute generator {command[0]}: {error}") from error
        output = process.stdout.decode("utf-8", "replace")
        if process.returncode != 0:
            raise EvaluationError(
                f"Failed to execute generator {command[0]}: "
                f"Execution of '{' '.join(command)}' returned {process.returncode}: {output.strip()}"
            )
        return output

    def is_executed_again(self, command: Sequence[str], output: str | None) -> bool:
        return self.calls.add(ProgramCall(tuple(command), b"" if output is None else digest_of_result(output.encode())))

    def _begin_repeats(self) -> None:
        if self._ruby is not None:
            self._ruby.begin_repeats()

    def _repeat(self, call: RepeatableCall) -> bytes:
        """Make a call again, and return the digest of its result; EvaluationError."""
        if isinstance(call, ProgramCall):
            output = self.execute(call.command)
            return digest_of_result(output.encode()) if call.result else b""
        return self._ruby.repeat(call) if self._ruby is not None else b""

    @property
    def ruby(self) -> RubyRuntime | None:
        return self._ruby

    def _note_ruby(self, path: str, since: int) -> None:
        """Add a file that Ruby has read since a time, a library or Ruby itself, to those of the environment."""
        self.files.note_read(path, since)

    def _libraries(self) -> list[str]:
        """Return the folders in which Ruby finds required files of a function."""
        folders = [f"{root}/lib" for root in (self.root, *self.module_roots())]
        return [self.files.actual(folder) for folder in folders if self.files.is_folder(folder)]

    def close(self) -> None:
        """Stop the processes of this environment; they are restarted when needed."""
        if self._ruby is not None:
            self._ruby.close()

    # --- data ---

    def lookup(self, key: str, context: DataContext, merge: Any = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        return look_up(self._data_layers(context), key, context, merge, arguments)

    def lookup_context(self, context: DataContext, module: str | None) -> LookupMethods:
        return detached_context(self._data_layers(context), context, module)

    def _data_layers(self, context: DataContext) -> DataLayers:
        """Return the layers of data of the compilation that looks something up."""
        layers: DataLayers | None = context.session.get("layers")
        if layers is None:
            layers = context.session["layers"] = DataLayers(self._data)
        return layers

    # --- settings ---

    def setting(self, name: str) -> Any:
        return self._settings.get(name)

    def settings(self) -> Mapping[str, Any]:
        return self._settings

    def exported(self, type_name: str, query: Value, node: NodeInput) -> Sequence[ExportedResource]:
        if not self._settings.get("storeconfigs"):
            return ()
        tests: list[Value] = [["=", "type", type_name], ["=", "exported", True], ["not", ["=", "certname", node.certname]]]
        return self.questions.resources(_plain(["and", *tests, *([query] if query is not None else [])]))

    def query_puppetdb(self, query: Value) -> Value:
        return self.questions.value(_plain(query))

    def now(self) -> int:
        return self._clock()


def _plain(query: Value) -> Any:
    """Return a query in the form of JSON; a reference in it becomes text."""
    return encode(query, lambda message: None, "query", rich=False)


def _tidy(path: str) -> str:
    """Return a path without `.` and `..`; a slash at the end stays, because it means a folder."""
    tidy = posixpath.normpath(path)
    return f"{tidy}/" if path.endswith("/") and tidy != "/" else tidy


def compiler_host(environments: Environments, name: str) -> DirectoryEnvironment:
    """Return the environment of that name with its files as they are on disk now; raise NotFound for an unknown one."""
    return DirectoryEnvironment(environments.read(name), DiskFiles())
