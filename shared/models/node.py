"""A node: the master's decisions about a machine before it compiles the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import Field, PrivateAttr

from ..data import plainjson
from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect
from ..wire.packed import LayeredValues, PackedValues
from .facts import Facts, Remembered

Classes = list[str] | dict[str, dict[str, Any] | None]


class FactLayers(NamedTuple):
    """A node's own parameters, and the facts below them in the JSON of Facts.exact_values."""

    own: Mapping[str, Any]
    facts: bytes


class Node(Model):
    """A classified node; `classes`: names, or a map from name to the class's parameters; `parameters`: facts and top-scope variables."""

    environment: str | None = None
    classes: Classes = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)
    _layers: Remembered = PrivateAttr(default_factory=Remembered)  # layers

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form: 3.8 agents need `parameters` even when it is empty; `classes` is left out when empty."""
        data: dict[str, Any] = {"name": self.name, "environment": self.environment, "parameters": dict(self.parameters)}
        if self.classes:
            data["classes"] = self.classes
        return data

    def digest(self) -> bytes | None:
        environment = [] if self.environment is None else [self.environment]
        layers = self.layers
        if layers is not None:
            return plainjson.digest([self.name, environment, layers.own, self.classes, "facts"], layers.facts)
        return plainjson.digest([self.name, environment, self.parameters, self.classes])

    @property
    def layers(self) -> FactLayers | None:
        """The sources of the parameters, if they are known."""
        layers: FactLayers | None = self._layers.made if self._layers.of is self.parameters else None
        return layers

    def with_facts(self, facts: Facts, environment: str) -> Node:
        """Return this node with `facts`, none of which is reserved, overridden by its own parameters, and with an environment."""
        node = self.merged(facts.values, environment)
        exact = facts.exact_values()
        if exact is not None:
            node._layers = Remembered(node.parameters, FactLayers(self.parameters, exact))
        return node

    def class_parameters(self) -> dict[str, dict[str, Any] | None]:
        """Return the classes in one shape: name to parameters, None for a plain `include`."""
        if isinstance(self.classes, dict):
            return dict(self.classes)
        return dict.fromkeys(self.classes)

    def merged(self, facts: Mapping[str, Any], environment: str) -> Node:
        """Return this node with `facts` below its own parameters, and with an environment in any case."""
        chosen = self.environment or environment
        parameters: Mapping[str, Any]
        parameters = LayeredValues(self.parameters, facts) if isinstance(facts, PackedValues) else {**facts, **self.parameters}
        return self.model_copy(update={"environment": chosen, "parameters": parameters})


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
