"""All commands that are built in, as they declare themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.process.command import CommandSpec

from ..puppet import command_names, command_of, summary_of


def load_specs() -> list[CommandSpec[Any]]:
    """Return what each command is, sorted by name."""
    return [replace(command_of(name), summary=summary_of(name)) for name in command_names()]
