"""
The API for programs that compile manifests given as texts: no folder, no data, no Ruby, no master.

`compile_manifest` is enough for most. A program that has more of an environment passes a host of its own to `evaluation.compile`:
`CompilerHost` says what the compiler asks, and `TextHost` is the smallest one. That of a master is in `environments`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Never

from shared.errors import CompileError, EvaluationError, ParseError

from .codegen.codecache import CodeCache
from .evaluation.compile import compile_catalog
from .evaluation.runtime import NAMES
from .host import CompilerHost, ExportedResource, NodeInput, NotFoundInData
from .loading.builtins import all_functions
from .loading.loader import Loader
from .loading.nativetypes import NativeTypes
from .log import LogEntry
from .syntax.source import Source

__all__ = [
    "CompileError",
    "CompilerHost",
    "EvaluationError",
    "LogEntry",
    "NodeInput",
    "ParseError",
    "Source",
    "TextHost",
    "compile_manifest",
]


class TextHost:
    """
    An environment that is nothing but texts.

    Args:
        manifest: The main manifest.
        modules: Texts of modules' files by their paths, `apache/manifests/init.pp`.
        settings: What `$settings::…` and the compiler itself read, such as `strict`.
    """

    environment = "production"
    ruby = None

    def __init__(self, manifest: str, modules: Mapping[str, str] | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.manifest = manifest
        self.modules = modules or {}
        self.types = NativeTypes()
        self._settings = settings or {}

    def manifests(self) -> Sequence[Source]:
        return [Source(self.manifest)]

    def module_file(self, module: str, path: str) -> Source | None:
        text = self.modules.get(f"{module}/{path}")
        return None if text is None else Source(text, f"{module}/{path}")

    def function_extension(self, name: str) -> Source | None:
        return None

    def environment_file(self, path: str) -> Source | None:
        return None

    def module_root(self, name: str) -> str | None:
        return name if any(path.startswith(f"{name}/") for path in self.modules) else None

    def find_file(self, reference: str, kind: str) -> str | None:
        module, _, rest = reference.partition("/")
        path = f"{module}/{kind}/{rest}"
        return path if path in self.modules else None

    def matching_paths(self, pattern: str) -> Sequence[str]:
        return ()

    def read_file(self, path: str) -> bytes:
        return self.modules[path].encode()

    def execute(self, command: Sequence[str]) -> str:
        raise EvaluationError(f"Failed to execute generator {command[0]}: no programs are run here")

    def is_executed_again(self, command: Sequence[str], output: str | None) -> bool:
        return False

    def lookup(self, key: str, *context: Any) -> Never:
        raise NotFoundInData(f"There are no data here: {key}")

    def lookup_context(self, *context: Any) -> Never:
        raise EvaluationError("There are no data here")

    def setting(self, name: str) -> Any:
        return self._settings.get(name)

    def settings(self) -> Mapping[str, Any]:
        return self._settings

    def exported(self, *question: Any) -> Sequence[ExportedResource]:
        return ()

    def query_puppetdb(self, query: Any) -> Never:
        raise EvaluationError("There is no PuppetDB here")

    def now(self) -> int:
        return time.time_ns()


def compile_manifest(
    manifest: str,
    *,
    node: str = "localhost",
    facts: Mapping[str, Any] | None = None,
    modules: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    log: Callable[[LogEntry], None] = lambda entry: None,
) -> dict[str, Any]:
    """
    Return the catalog of a node as plain data, as in protocol reference 3.4: its resources and edges.

    Args:
        facts: The node's facts; each is a top scope variable, too.
        modules, settings: As `TextHost` takes them.
        log: Gets what the manifest and the compiler log.
    Raises:
        CompileError: Located, in Puppet's words; a syntax error (ParseError) is one.
    """
    host: CompilerHost = TextHost(manifest, modules, settings)

    def tell(level: str, finding: Any) -> None:
        log(LogEntry(level, finding.message, finding.where))

    loader = Loader(host, NAMES, CodeCache(), log=tell, builtins=all_functions())
    given = facts or {}
    return compile_catalog(host, loader, NodeInput(node, facts=given, parameters=given, trusted={"certname": node}), version=0, log=log)
