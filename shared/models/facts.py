"""Facts: the values that a node sent at its last run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, PrivateAttr

from ..data import plainjson
from ..indirector.core import Indirection, Model
from ..wire.bounds import check_bounds, is_within_bounds
from ..wire.dialects import Dialect

RESERVED_FACTS = frozenset({"trusted", "facts", "server_facts", "environment", "settings"})
"""Names that only the master sets at top scope: a node cannot forge them by facts."""


class Facts(Model):
    """The facts of one node; `timestamp` is ISO 8601 text with the node's offset."""

    values: dict[str, Any] = Field(default_factory=dict)
    timestamp: str | None = None
    _trusted: Mapping[str, Any] | None = PrivateAttr(None)  # no field: nobody who sends facts can say what is trusted

    @classmethod
    def from_data(cls, data: Any) -> Self:
        values = data.get("values") if isinstance(data, dict) else None
        text = plainjson.dumps_quickly(values) if isinstance(values, dict) else None
        if text is None or not is_within_bounds(text):
            check_bounds(data, "Facts")
        return super().from_data(data)

    @property
    def trusted(self) -> Mapping[str, Any] | None:
        """`$trusted` of the node that sent them; None when the master did not set it."""
        return self._trusted

    def with_trusted(self, trusted: Mapping[str, Any]) -> Self:
        """Return the same facts with the trusted data of their node, for caches that store them as well; no wire form has them."""
        copy = self.model_copy()
        copy._trusted = trusted
        return copy

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form without the keys that begin with `_`, which are internal."""
        data: dict[str, Any] = {"name": self.name, "values": {k: v for k, v in self.values.items() if not k.startswith("_")}}
        if self.timestamp:
            data["timestamp"] = self.timestamp
        if self.expiration:
            data["expiration"] = self.expiration.isoformat()
        return data

    def digest(self) -> bytes | None:
        expiration = self.expiration.isoformat() if self.expiration else ""
        return plainjson.digest([self.name, expiration, self.timestamp or "", self.values])


class NodeName(Model):
    """A node's name, which is all that a search for facts answers."""

    def to_data(self, dialect: Dialect) -> Any:
        return self.name


def permitted_facts(facts: Facts | None) -> Mapping[str, Any]:
    """Return the values of facts without those named in RESERVED_FACTS, which would forge what only the master says."""
    return {name: value for name, value in (facts.values if facts else {}).items() if name not in RESERVED_FACTS}


FACTS = Indirection(
    name="facts",
    model=Facts,
    plural="facts_search",
    ruby_class="Puppet::Node::Facts",
    options=frozenset({"facts.*", "meta.*"}),
    limit="max_facts_body",
    expires=True,
    doc="The facts that a node sent at its last run.",
)
