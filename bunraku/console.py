"""Messages of a command in addition to its result: on standard error, so that the result can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable

from language.log import LogEntry
from shared.errors import PuppetError
from shared.process.log import LEVELS, for_console


def printer(least: str) -> Callable[[LogEntry], None]:
    """Prints the log of a compilation, from the level `least` on."""

    def log(entry: LogEntry) -> None:
        if LEVELS[entry.level] >= LEVELS[least]:
            source = entry.source if entry.source not in ("", "Puppet") else ""
            say(entry.level, f"{source}: {entry.text}" if source else entry.text)

    return log


def say(level: str, text: str) -> None:
    """`Warning: …`"""
    label = {"err": "Error", "emerg": "Emergency", "crit": "Critical"}.get(level, level.capitalize())
    print(f"{label}: {for_console(text)}", file=sys.stderr)


def complain(error: PuppetError) -> None:
    """Log an error and its remedy."""
    say("err", str(error))
    if error.hint:
        print(f"       {error.hint}", file=sys.stderr)
