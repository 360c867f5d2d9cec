"""A live resource of the host that answers; a master refuses to answer unless its rules allow it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect


class LiveResource(Model):
    """A resource as it is; `name` is `type/title`, `parameters` are its current values."""

    type: str
    title: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)

    def to_data(self, dialect: Dialect) -> Any:
        return {"type": self.type, "title": self.title, "tags": self.tags, "exported": False, "parameters": self.parameters}


RESOURCE = Indirection(name="resource", model=LiveResource, ruby_class="Puppet::Resource", doc="The live state of one resource.")
