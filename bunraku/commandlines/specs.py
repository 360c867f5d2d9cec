"""All commands that are built in, as they declare themselves."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from shared.process.command import CommandSpec

from ..puppet import COMMANDS


def load_specs() -> list[CommandSpec[Any]]:
    """Return what each command is, sorted by name."""
    return [replace(import_module(f"bunraku.commands.{name}").main, summary=summary) for name, summary in sorted(COMMANDS.items())]
