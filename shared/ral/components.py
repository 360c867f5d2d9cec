"""Resources that are not things on the system: classes and defines, and resources of types that are not supported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ResourceError
from .attributes import Param
from .core import Origin, Type
from .references import Ref


class _StandIn(Type):
    """A resource with another type's reference, of whose attributes it has only the metaparameters."""

    name = Param(str, namevar=True)

    def __init__(self, ref: Ref, parameters: Mapping[str, Any], origin: Origin | None = None) -> None:
        meta = {
            name: value
            for name, value in parameters.items()
            if name in self.declaration.attributes and self.declaration.attributes[name].meta
        }
        super().__init__(ref.title, meta, origin, ref=ref)


class Component(_StandIn, name="component"):
    """A class, a node or an instance of a define: it contains resources."""


class Unmanaged(_StandIn, name="unmanaged"):
    """A resource of a type that is not supported here: the reason becomes its failure; its relationships hold all the same."""

    def __init__(self, ref: Ref, reason: ResourceError, parameters: Mapping[str, Any], origin: Origin | None = None) -> None:
        super().__init__(ref, parameters, origin)
        self.fault = reason
