"""Files parsed and checked, or taken from the cache of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shared.errors import Location

from ..codegen.codecache import CodeCache
from ..codegen.units import StoredWarning, Unit
from ..host import CompilerHost
from ..syntax.checker import Diagnostic, check, log_and_refuse
from ..syntax.parser import parse
from ..syntax.source import Source
from .loaded_files import LoadedFile

DiagnosticLog = Callable[[str, Diagnostic], None]
"""Gets the level of a warning, and the warning."""


class FileReader:
    """Reads manifests and templates for one environment; `runtime` has the functions that their code calls, by name."""

    def __init__(self, host: CompilerHost, runtime: Mapping[str, Any], cache: CodeCache, log: DiagnosticLog) -> None:
        self.host = host
        self.runtime = runtime
        self.cache = cache
        self.log = log

    def read(self, source: Source, namespace: str | None, *, epp: bool = False) -> LoadedFile:
        """
        Parse and check a file, or take it from the cache, and log its warnings.

        Args:
            namespace: the name that the file's definitions have to begin with; None: any name.
        Raises:
            ParseError: the file has an error; the message has its place.
        """
        strict: Any = self.host.setting("strict") or "warning"
        key = self.cache.key(source.text, f"{namespace}|{strict}|{epp}")
        unit = self.cache.get(key)
        if unit is None:
            program = parse(source, epp=epp)
            findings = check(program, source, namespace=namespace, strict=strict)
            log_and_refuse(findings, self.log)
            warnings = [(f.severity, f.message, f.where.line, f.where.column, f.lexical) for f in findings]
            unit = Unit.read(program, source, epp=epp, warnings=warnings)
            self.cache.put(key, unit)
        else:
            self.repeat_warnings(unit, source)
        return LoadedFile(source, unit, self.runtime, partial(self.cache.put, key))

    def repeat_warnings(self, unit: Unit, source: Source) -> None:
        """Log the warnings of a file that was checked before; those of a template come at each use."""
        log_and_refuse([_diagnostic(warning, source.file) for warning in unit.warnings], self.log)


def _diagnostic(stored: StoredWarning, file: str | None) -> Diagnostic:
    severity, message, line, column, lexical = stored
    return Diagnostic(severity, message, Location(file, line, column), lexical=lexical)
