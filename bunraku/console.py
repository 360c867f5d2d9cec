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
            say(entry.level, entry.text, entry.source)

    return log


def say(level: str, text: str, source: str = "") -> None:
    """Print a message in the form of `log_line`."""
    print(for_console(log_line(level, text, source)), file=sys.stderr)


def log_line(level: str, text: str, source: str = "") -> str:
    """Return a message as agents print it: `Error: /Stage[main]/…: …`, without a source of no interest."""
    label = {"err": "Error", "emerg": "Emergency", "crit": "Critical"}.get(level, level.capitalize())
    return f"{label}: {text}" if source in ("", "Puppet") else f"{label}: {source}: {text}"


def complain(error: PuppetError) -> None:
    """Log an error and its remedy."""
    say("err", str(error))
    if error.hint:
        print(f"       {error.hint}", file=sys.stderr)
