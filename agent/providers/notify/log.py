"""The provider of `notify`: writes the message to the run's log."""

from __future__ import annotations

from typing import Any

from shared.ral import ABSENT, Provider, State
from shared.ral.attributes import text_of
from shared.types.notify import Notify

from ...state.runlog import RunLog


class LogMessage(Provider[Notify], type=Notify, name=""):
    """Writes one log line for each resource, at its loglevel."""

    def __init__(self, log: RunLog) -> None:
        self.log = log

    async def retrieve(self, resource: Notify) -> State | None:
        return {"message": ABSENT}

    async def set_message(self, resource: Notify, desired: Any, state: State | None) -> None:
        text = "Sensitive [value redacted]" if resource.is_sensitive("message") else text_of(desired)
        if resource.withpath:
            resource.log(resource.loglevel or "notice", text, "message")
        else:
            self.log.log(resource.loglevel or "notice", text)
