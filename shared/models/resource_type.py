"""The definition of a class, define or node block: the 3.x and 4.x indirection `resource_type`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect


class ResourceType(Model):
    """A definition; `parameters` maps each name to the source text of its default, None without one."""

    kind: Literal["class", "defined_type", "node"]
    parameters: dict[str, str | None] = Field(default_factory=dict)
    doc: str = ""
    file: str | None = None
    line: int | None = None
    parent: str | None = None

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form without absent fields; only 3.x gets empty parameters."""
        data: dict[str, Any] = {"name": self.name, "kind": self.kind} | ({"parameters": {}} if dialect.wraps else {})
        return data | {k: v for k in ("parameters", "doc", "file", "line", "parent") if (v := getattr(self, k))}


RESOURCE_TYPE = Indirection(
    name="resource_type", model=ResourceType, options=frozenset({"kind"}), doc="Classes, defines and nodes of an environment."
)
