"""An administrator's commands to a rollout, from the command line or over HTTP."""

from __future__ import annotations

from typing import Final

from shared.errors import BadRequest, Conflict, NotFound
from shared.suggestions import did_you_mean

from .machine import COMPLETING, Rollout, RolloutCommand, advance, allowed_commands
from .storage import RolloutStorage, update_rollout

ACTIONS: Final = ("pause", "resume", "abort")
MAX_REASON: Final = 500


def command_rollout(storage: RolloutStorage, environment: str, action: str, reason: str) -> Rollout:
    """
    Store a rollout after an administrator's command, and return it. Blocks.

    Raises:
        BadRequest: There is no such command. NotFound: There is no rollout. Conflict: The state of the rollout forbids the command.
    """
    if action not in ACTIONS:
        raise BadRequest(f"There is no action '{action[:40]}'", hint=did_you_mean(action, ACTIONS) or f"There are {', '.join(ACTIONS)}.")

    def change(rollout: Rollout, now: float) -> Rollout:
        # While all waves are done the link may be switched at any moment, after which an abort would say something wrong.
        if action not in allowed_commands(rollout) or rollout.status == COMPLETING:
            raise Conflict(f"The rollout of {environment} is {rollout.status}: {action} is not possible")
        return advance(rollout, [RolloutCommand(action, reason[:MAX_REASON])], now)

    _, rollout = update_rollout(storage, environment, change)
    if rollout is None:
        raise NotFound(f"There is no rollout of {environment}", hint=f"Start one: puppet rollout start {environment} --ref REF.")
    return rollout
