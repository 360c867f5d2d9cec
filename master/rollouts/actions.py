"""An administrator's commands to a rollout, from the command line or over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from shared.errors import BadRequest, ConfigError, Conflict, NotFound
from shared.settings import MasterSettings
from shared.suggestions import did_you_mean

from .machine import COMPLETING, Rollout, RolloutCommand, advance, allowed_commands
from .storage import RolloutStorage, update_rollout

PROGRAMS: Final = "rollout.d"
"""The folder in confdir that has the programs of a site whose masters share their state."""

ACTIONS: Final = ("pause", "resume", "abort")
MAX_REASON: Final = 500


def program_folder(settings: MasterSettings) -> Path | None:
    """
    Return the folder which the programs that a rollout starts have to be in; None: they may be anywhere.

    Who can write to the masters' database must not choose among all programs of their hosts.
    """
    return None if settings.state == "files" else settings.confdir / PROGRAMS


def require_program(program: str, folder: Path | None) -> None:
    """Raise ConfigError for what is no program that a rollout may start. Blocks, briefly."""
    path = Path(program)
    if folder is not None and path.parent != folder:
        message = f"'{program}' is not in {folder}, where masters that share their state have the programs of rollouts"
        raise ConfigError(message, hint="Put the same program there on each master.")
    if not path.is_absolute() or not path.is_file():
        raise ConfigError(f"'{program}' is not the path of a program", hint="Give an absolute path.")


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
