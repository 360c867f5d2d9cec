"""Resource types as the compiler knows them, from the declarations of the resource layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.types import CORE, KNOWN, builtin_types

from ..host import AnyAttribute, NativeType


class NativeTypes:
    """Types written in Python first, then those that are known by their attributes' names only."""

    def __init__(self, extra: Mapping[str, NativeType] | None = None) -> None:
        self._found: dict[str, NativeType | None] = {
            "whit": NativeType("whit", frozenset(("name",))),
            "component": NativeType("component", frozenset(("name",))),
            **(extra or {}),
        }
        self._declared = builtin_types()

    def find(self, name: str) -> NativeType | None:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def is_core(self, name: str) -> bool:
        """Return whether the type is part of Puppet itself; a module cannot redefine such a type."""
        return name in CORE

    def _find(self, name: str) -> NativeType | None:
        declared = self._declared.get(name)
        if declared is not None:
            return native_type(name, declared.declaration)
        known = KNOWN.get(name)
        if known is None:
            return None
        attributes = (
            AnyAttribute() if known.any_attribute else frozenset((*known.namevars, *known.properties, *known.parameters, "provider"))
        )
        return NativeType(name, attributes, known.namevars, known.isomorphic, trim_slashes=name == "file")


def native_type(name: str, declaration: Any) -> NativeType:
    """Return the compiler's description of a declared type."""
    attributes_of_type = [attribute for attribute in declaration.attributes.values() if not attribute.meta]
    attributes = frozenset(attribute.name for attribute in attributes_of_type) | {"provider"}
    namevars = tuple(attribute.name for attribute in attributes_of_type if attribute.namevar) or ("name",)
    return NativeType(name, attributes, namevars, declaration.isomorphic, trim_slashes=name == "file")
