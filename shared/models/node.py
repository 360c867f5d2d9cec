"""A node: the master's decisions about a machine before it compiles the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect

Classes = list[str] | dict[str, dict[str, Any] | None]


class Node(Model):
    """A classified node; `classes`: names, or a map from name to the class's parameters; `parameters`: facts and top-scope variables."""

    environment: str | None = None
    classes: Classes = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form: 3.8 agents need `parameters` even when it is empty; `classes` is left out when empty."""
        data: dict[str, Any] = {"name": self.name, "environment": self.environment, "parameters": dict(self.parameters)}
        if self.classes:
            data["classes"] = self.classes
        return data

    def class_parameters(self) -> dict[str, dict[str, Any] | None]:
        """Return the classes in one shape: name to parameters, None for a plain `include`."""
        if isinstance(self.classes, dict):
            return dict(self.classes)
        return dict.fromkeys(self.classes)

    def merged(self, facts: Mapping[str, Any], environment: str) -> Node:
        """Return this node with `facts` below its own parameters, and with an environment in any case."""
        chosen = self.environment or environment
        return self.model_copy(update={"environment": chosen, "parameters": {**facts, **self.parameters}})


NODE = Indirection(
    name="node",
    model=Node,
    document_type="Node",
    document_metadata=False,
    ruby_class="Puppet::Node",
    options=frozenset({"transaction_uuid", "configured_environment", "fail_on_404"}),
    expires=True,
    doc="The environment, classes and parameters of a machine.",
)
