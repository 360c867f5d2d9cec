"""`notify`: a message in the agent's log."""

from __future__ import annotations

from typing import Any

from ..ral import Param, Property, State, Type


class NotifyMessage(Property[Any]):
    """The message: it is never in sync, and never counts as a repair."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return False


class Notify(Type, name="notify", providers=False, apply_to="both"):
    """Sends a message to the log of the run; each run counts it as a change."""

    message = NotifyMessage(
        object, idempotent=False, default=lambda notify: notify.name, doc="The message; of an array only the first element."
    )
    withpath = Param(bool, default=False, doc="Whether the log shows the resource's path.")
    name = Param(str, namevar=True, doc="A name of your own; the message, if none is given.")
