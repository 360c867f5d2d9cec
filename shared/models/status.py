"""The indirection of 3.x to 6 that checks whether a master is alive."""

from __future__ import annotations

from typing import Any

from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect


class Status(Model):
    name: str = ""  # which no answer has
    is_alive: bool = True
    version: str = ""

    def to_data(self, dialect: Dialect) -> Any:
        return {"is_alive": self.is_alive, "version": self.version or dialect.version}


STATUS = Indirection(name="status", model=Status, plural="statuses", ruby_class="Puppet::Status", doc="Whether the master is alive.")
