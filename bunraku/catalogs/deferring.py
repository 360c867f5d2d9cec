"""
Deferred values, resolved where a catalog is applied: with the functions that need no catalog, and modules' functions in Python.

`puppet agent` gets the compiler's functions from here, which the package agent does not import.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.run.deferred import Resolver
from agent.state.runlog import RunLog
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from language.catalog import richdata as wire
from language.codegen.codecache import CodeCache
from language.evaluation.compilation import Compilation
from language.evaluation.compile import begin, compile_node
from language.evaluation.runtime import NAMES, call
from language.functions import builtin_functions
from language.functions.api import Function, collect
from language.host import NodeInput
from language.loading.loader import Loader
from language.log import LogEntry
from language.syntax.source import Source
from language.types.notation.parse import parse_type
from language.values.core import Binary, Sensitive, Value
from shared.data import richdata
from shared.errors import CompileError, EvaluationError, PuppetError
from shared.regexps import Regexp
from shared.settings import AgentSettings


class _Synced(DirectoryEnvironment):
    """An environment without manifests, whose functions are those that plugin sync fetched into `libdir`."""

    def __init__(self, environment: str, libdir: Path) -> None:
        super().__init__(Environment(environment, str(libdir), (), None), DiskFiles(), code="")
        self.libdir = libdir

    def function_extension(self, name: str) -> Source | None:
        path = name.replace("::", "/")
        paths = (f"puppet/functions/{path}.py", f"puppet/functions/{path}.rb", f"puppet/parser/functions/{path}.rb")
        return next((source for each in paths if (source := self._source(f"{self.libdir}/{each}")) is not None), None)


def functions_without_catalog() -> Mapping[str, Function]:
    """Return Puppet's own functions that an agent can call: those that neither declare resources nor look up a master's data."""
    from language.functions import files

    return {**builtin_functions(), **collect((files,))}


def resolver(settings: AgentSettings, environment: str, facts: Mapping[str, Any], log: RunLog) -> Resolver:
    """Return the function that calls the functions of deferred values on this host. Blocks."""

    def say(entry: LogEntry) -> None:
        log.log(entry.level, entry.text, source=entry.source or "Puppet", where=entry.where)

    host = _Synced(environment, settings.plugindest)
    loader = Loader(
        host,
        NAMES,
        CodeCache(),
        log=lambda level, finding: say(LogEntry(level, finding.message, finding.where)),
        builtins=functions_without_catalog(),
    )
    known = {name: value for name, value in facts.items() if name not in ("trusted", "facts", "server_facts")}
    node = NodeInput(settings.node_name_value, environment=environment, facts=known, parameters=known)
    compilation = begin(host, loader, node, say)
    compile_node(compilation)  # of nothing: it sets the facts and what else is known at top scope
    return lambda deferred: resolve_deferred(compilation, deferred)


def resolve_deferred(compilation: Compilation, deferred: richdata.WireDeferred) -> Any:
    """
    Return the value of a deferred call, with the functions of `compiler`.

    Raises:
        EvaluationError: there is no such function here, or it fails.
    """
    try:
        value = call(compilation.top, deferred.name, None, *[_inward(argument, compilation) for argument in deferred.arguments])
    except CompileError:
        raise
    except PuppetError as err:
        raise EvaluationError(err.message, where=err.where, hint=err.hint) from err
    return richdata.read(wire.encode(value, compilation.log.warn_here, f"Deferred('{deferred.name}')"))


def _inward(value: Any, compilation: Compilation) -> Value:
    """Return a value of a catalog as functions take it."""
    match value:
        case richdata.WireSensitive():
            return Sensitive(_inward(value.value, compilation))
        case richdata.WireRegexp():
            return Regexp(value.pattern)
        case richdata.WireType():
            return parse_type(value.expanded, compilation.definitions)
        case bytes():
            return Binary(value)
        case list() | tuple():
            return [_inward(item, compilation) for item in value]
        case dict():
            return {key: _inward(item, compilation) for key, item in value.items()}
    plain: Value = value
    return plain
