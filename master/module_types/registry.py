"""
The resource types of an environment: Puppet's own, what `puppet generate types` wrote, what modules bring in Python and in Ruby.

A type is looked for when a manifest first names it. Ruby is read, not run; what of it cannot be read makes the type open: each
attribute is taken, and the agent, which has the type, checks them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shared.ral.plugins import plugin_types

from ..compiler.host import NativeType
from ..compiler.loading.nativetypes import NativeTypes, known_type
from ..files.code_files import CodeFiles
from .generated import FOLDER, read_generated
from .models import DeclaredType
from .ruby_types import read_ruby_type

__all__ = ["ModuleTypes", "RubyTypes"]

_NAME = re.compile(r"[a-z]\w*", re.ASCII)
MAX_KEPT = 10_000
"""Types in Ruby that are kept."""


class RubyTypes:
    """Types in Ruby, kept until one of the files changes that were read for them."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def get(self, name: str, path: str, files: CodeFiles, libs: Sequence[str]) -> DeclaredType:
        """The type that the file at `path` declares; `libs` are the folders in which required files are looked for."""
        kept = self._kept.get(path)
        if kept is not None and all(_digest(files.read(each)) == digest for each, digest in kept.digests.items()):
            return kept.type
        digests: dict[str, bytes | None] = {}

        def read(each: str) -> bytes | None:
            data = files.read(each)
            digests[each] = _digest(data)
            return data

        found = read_ruby_type(name, path, read, libs)
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[path] = _Kept(found, digests)
        return found


@dataclass(frozen=True, slots=True)
class _Kept:
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
        note: is told which file makes a type open.
    """

    def __init__(
        self,
        files: CodeFiles,
        roots: Sequence[str],
        *,
        environment: str | None = None,
        libdirs: Sequence[str] = (),
        ruby: RubyTypes | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.files = files
        self.environment = environment
        self.libs = [*(f"{root}/lib" for root in roots), *libdirs]
        self.note = note
        self._native = NativeTypes()
        self._ruby = ruby or RubyTypes()
        self._python: dict[str, NativeType] | None = None
        self._found: dict[str, NativeType | None] = {}

    def find(self, name: str) -> NativeType | None:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> NativeType | None:
        """Types that left Puppet for modules of their own are a module's first, if there is such a module."""
        if self._native.is_core(name) or _NAME.fullmatch(name) is None:
            return self._native.find(name)
        return self._generated(name) or self._brought(name) or self._native.find(name)

    def _generated(self, name: str) -> NativeType | None:
        path = f"{self.environment}/{FOLDER}/{name}.pp"
        data = self.files.read(path) if self.environment is not None else None
        return None if data is None else read_generated(name, data.decode("utf-8", "replace"), path).known()

    def _brought(self, name: str) -> NativeType | None:
        for lib in self.libs:
            if self.files.exists(f"{lib}/puppet/type/{name}.py"):
                return self._in_python().get(name)
            path = f"{lib}/puppet/type/{name}.rb"
            if self.files.exists(path):
                found = self._ruby.get(name, path, self.files, self.libs)
                if found.open:
                    self.note(f"The attributes of {name} are not checked: {path} cannot be read without running it: {found.open}")
                return found.known()
        return None

    def _in_python(self) -> dict[str, NativeType]:
        if self._python is None:
            found = plugin_types([Path(lib) for lib in self.libs])
            self._python = {name: known_type(name, cls.declaration) for name, cls in found.items()}
        return self._python
