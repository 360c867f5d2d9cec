"""Facts: what a node said about itself at its last run."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from ..bounds import check_bounds
from ..dialects import Dialect
from ..indirector.core import Indirection, Model


class Facts(Model):
    """`timestamp` is ISO 8601 text with the node's offset."""

    values: dict[str, Any] = Field(default_factory=dict)
    timestamp: str | None = None

    @classmethod
    def from_data(cls, data: Any) -> Self:
        check_bounds(data, "Facts")
        return super().from_data(data)

    def to_data(self, dialect: Dialect) -> Any:
        """Keys that begin with `_` are internal and left out."""
        data: dict[str, Any] = {"name": self.name, "values": {k: v for k, v in self.values.items() if not k.startswith("_")}}
        if self.timestamp:
            data["timestamp"] = self.timestamp
        if self.expiration:
            data["expiration"] = self.expiration.isoformat()
        return data


FACTS = Indirection(
    name="facts",
    model=Facts,
    plural="facts_search",
    ruby_class="Puppet::Node::Facts",
    options=frozenset({"facts.*", "meta.*"}),
    limit="max_facts_body",
    expires=True,
    doc="What a node said about itself at its last run.",
)
