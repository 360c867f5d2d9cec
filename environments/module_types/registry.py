"""
The resource types of an environment: Puppet's own, those that `puppet generate types` wrote, and those of modules in Python and Ruby.

A type is searched when a manifest first names it. Ruby is read, not run. A type that cannot be read completely is open: each
attribute is accepted, and the agent, which has the type, checks them.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from language.host import NativeType
from language.loading.nativetypes import NativeTypes, native_type
from shared.ral.plugins import plugin_types

from ..files.code_files import CodeFiles
from .generated import FOLDER, read_generated
from .models import DeclaredType
from .ruby_types import read_ruby_type

_NAME = re.compile(r"[a-z]\w*", re.ASCII)
MAX_CACHED = 10_000
"""Types in Ruby in the cache."""


class RubyTypeCache:
    """A cache of types in Ruby; an entry is valid until one of the files changes that were read for it."""

    def __init__(self) -> None:
        self._cached: dict[str, _CachedType] = {}

    def get(self, name: str, path: str, files: CodeFiles, libs: Sequence[str]) -> DeclaredType:
        """Return the type that the file at `path` declares; required files are searched in the folders `libs`."""
        cached = self._cached.get(path)
        if cached is not None and all(_digest(files.read(dependency)) == digest for dependency, digest in cached.digests.items()):
            return cached.type
        digests: dict[str, bytes | None] = {}

        def read(dependency: str) -> bytes | None:
            data = files.read(dependency)
            digests[dependency] = _digest(data)
            return data

        declared_type = read_ruby_type(name, path, read, libs)
        if len(self._cached) >= MAX_CACHED:
            self._cached.clear()
        self._cached[path] = _CachedType(declared_type, digests)
        return declared_type


@dataclass(frozen=True, slots=True)
class _CachedType:
    type: DeclaredType
    digests: dict[str, bytes | None] = field(default_factory=dict)


def _digest(data: bytes | None) -> bytes | None:
    return None if data is None else hashlib.sha256(data).digest()


class ModuleTypes:
    """
    The built-in types, and those of an environment's modules at `roots`.

    Args:
        environment: the environment's folder, where generated types are.
        libdirs: further folders like a module's `lib`, after those of the modules.
        note: is called with a message for each file that makes a type open.
    """

    def __init__(
        self,
        files: CodeFiles,
        roots: Sequence[str],
        *,
        environment: str | None = None,
        libdirs: Sequence[str] = (),
        ruby: RubyTypeCache | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.files = files
        self.environment = environment
        self.libs = [*(f"{root}/lib" for root in roots), *libdirs]
        self.note = note
        self._native = NativeTypes()
        self._ruby = ruby or RubyTypeCache()
        self._python: dict[str, NativeType] | None = None
        self._types: dict[str, NativeType | None] = {}

    def find(self, name: str) -> NativeType | None:
        if name not in self._types:
            self._types[name] = self._find(name)
        return self._types[name]

    def _find(self, name: str) -> NativeType | None:
        """Return a type; types that left Puppet for modules of their own are first searched in modules."""
        if self._native.is_core(name) or _NAME.fullmatch(name) is None:
            return self._native.find(name)
        return self._find_generated(name) or self._find_in_modules(name) or self._native.find(name)

    def _find_generated(self, name: str) -> NativeType | None:
        path = f"{self.environment}/{FOLDER}/{name}.pp"
        data = self.files.read(path) if self.environment is not None else None
        return None if data is None else read_generated(name, data.decode("utf-8", "replace"), path).to_native_type()

    def _find_in_modules(self, name: str) -> NativeType | None:
        for lib in self.libs:
            if self.files.exists(f"{lib}/puppet/type/{name}.py"):
                return self._python_types().get(name)
            path = f"{lib}/puppet/type/{name}.rb"
            if self.files.exists(path):
                declared_type = self._ruby.get(name, path, self.files, self.libs)
                if declared_type.open:
                    reason = f"{path} cannot be read without running it: {declared_type.open}"
                    self.note(f"The attributes of {name} are not checked: {reason}")
                return declared_type.to_native_type()
        return None

    def _python_types(self) -> dict[str, NativeType]:
        if self._python is None:
            since = time.time_ns()
            classes = plugin_types([Path(self.files.actual(lib)) for lib in self.libs])
            for folder in (f"{lib}/puppet/type" for lib in self.libs):
                for name in self.files.names(folder):
                    if name.endswith(".py"):  # any of them may be imported by another one
                        self.files.note_read(f"{folder}/{name}", since)
            self._python = {name: native_type(name, cls.declaration) for name, cls in classes.items()}
        return self._python
