"""Resource types that modules bring: in Python, known by their declaration; in Ruby, known by the file's name alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from shared.ral.plugins import plugin_types

from .compiler.nativetypes import NativeTypes, known_type
from .compiler.world import AnyAttribute, KnownType
from .environment_files import Files

__all__ = ["ModuleTypes"]

_NAME = re.compile(r"[a-z]\w*", re.ASCII)


class ModuleTypes:
    """
    The built-in types, and those below `lib/puppet/type` of the modules at `roots`.

    A type in Ruby cannot be read here: every attribute is taken, and the agent, which has the type, checks them.
    """

    def __init__(self, files: Files, roots: Sequence[str]) -> None:
        self.files = files
        self.roots = list(roots)
        self._native = NativeTypes()
        self._python: dict[str, KnownType] | None = None
        self._found: dict[str, KnownType | None] = {}

    def find(self, name: str) -> KnownType | None:
        if name not in self._found:
            self._found[name] = self._native.find(name) or self._brought(name)
        return self._found[name]

    def _brought(self, name: str) -> KnownType | None:
        if _NAME.fullmatch(name) is None:
            return None
        for root in self.roots:
            if self.files.exists(f"{root}/lib/puppet/type/{name}.py"):
                return self._in_python().get(name)
            if self.files.exists(f"{root}/lib/puppet/type/{name}.rb"):
                return KnownType(name, AnyAttribute(), isomorphic=False)
        return None

    def _in_python(self) -> dict[str, KnownType]:
        if self._python is None:
            found = plugin_types([Path(root, "lib") for root in self.roots])
            self._python = {name: known_type(name, cls.declaration) for name, cls in found.items()}
        return self._python
