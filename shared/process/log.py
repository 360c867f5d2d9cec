"""
Logging: Puppet's levels on top of `logging`, and its destinations with their formats.

A record may carry `source` (`extra={"source": "/Stage[main]/…"}`). Source: command line reference 1.1.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from ..errors import ConfigError
from ..filesystem.files import open_for_appending
from .journal import SOCKET, JournalHandler

DEBUG, INFO, NOTICE, WARNING, ERR, ALERT, EMERG, CRIT = 10, 20, 25, 30, 40, 45, 48, 50

LEVELS: Mapping[str, int] = {
    "debug": DEBUG,
    "info": INFO,
    "notice": NOTICE,
    "warning": WARNING,
    "err": ERR,
    "alert": ALERT,
    "emerg": EMERG,
    "crit": CRIT,
}
_SHOWN = {
    DEBUG: "Debug",
    INFO: "Info",
    NOTICE: "Notice",
    WARNING: "Warning",
    ERR: "Error",
    ALERT: "Alert",
    EMERG: "Emergency",
    CRIT: "Critical",
}
_COLOURS = {DEBUG: "0;36", INFO: "0;32", NOTICE: "", WARNING: "1;33", ERR: "1;31", ALERT: "1;31", EMERG: "1;31", CRIT: "1;31"}
_SYSLOG = {DEBUG: "debug", INFO: "info", NOTICE: "notice", WARNING: "warning", ERR: "err", ALERT: "alert", EMERG: "emerg", CRIT: "crit"}
_PRIORITIES = logging.handlers.SysLogHandler.priority_names
MAX_MESSAGE = 64 * 1024  # characters of one message


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The request that is being answered: a number of its own, and the address that it came from."""

    request: str
    address: str


ORIGIN: ContextVar[RequestOrigin | None] = ContextVar("origin", default=None)
"""Set while a request is being answered; the logs carry its number, so that all that belongs to it can be found."""


def level_name(number: int) -> str:
    """Return Puppet's name of a level: `err`, `notice`, …"""
    return next((name for name, value in reversed(list(LEVELS.items())) if number >= value), "debug")


def escape_controls(text: str, *, lines: bool = False) -> str:
    """Return `text` without control characters, so that it cannot forge a line or steer a terminal; `lines`: newlines and tabs stay."""
    cut = text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
    keep = "\n\t" if lines else ""
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in cut)


_LIKE_A_LINE = re.compile(rf"\n(?=(?:{'|'.join(_SHOWN.values())}): )")


def for_console(text: str) -> str:
    """
    Return `text` as a console may have it: lines stay lines, so that a diff can be copied, but steer nothing and pass for no other message.

    A line that begins as messages do, `Error: `, is indented: only the program itself begins one at the margin.
    """
    return _LIKE_A_LINE.sub("\n  ", escape_controls(text, lines=True))


class _Formatter(logging.Formatter):
    """Escapes untrusted text in a message."""

    def __init__(self, *, lines: bool) -> None:
        super().__init__()
        self.lines = lines

    def text(self, record: logging.LogRecord) -> str:
        text = escape_controls(record.getMessage(), lines=self.lines)
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return f"{text}\n{record.exc_text}" if record.exc_text else text


class ConsoleFormatter(_Formatter):
    """`Level: source: message`, in colour if wanted."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__(lines=True)
        self.colour = colour

    def format(self, record: logging.LogRecord) -> str:
        label = _SHOWN[LEVELS[level_name(record.levelno)]]
        source = escape_controls(getattr(record, "source", ""))
        text = for_console(self.text(record)).removesuffix("\n")  # a diff ends its last line itself
        line = f"{label}: {source}: {text}" if source and source != "Puppet" else f"{label}: {text}"
        code = _COLOURS[LEVELS[level_name(record.levelno)]]
        return f"\x1b[{code}m{line}\x1b[0m" if self.colour and code else line


class FileFormatter(_Formatter):
    """`time source (level): message`, and in brackets the request that it belongs to."""

    def __init__(self) -> None:
        super().__init__(lines=False)

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
        origin = ORIGIN.get()
        belongs = f" [{origin.request}]" if origin is not None else ""
        source = escape_controls(getattr(record, "source", "")) or "Puppet"
        return f"{when} {source} ({level_name(record.levelno)}): {self.text(record)}{belongs}"


class JsonFormatter(_Formatter):
    """One object: level, message, source, tags, time, file, line; request, where it belongs to one; the record's own `fields`."""

    def __init__(self) -> None:
        super().__init__(lines=True)

    def format(self, record: logging.LogRecord) -> str:
        level = level_name(record.levelno)
        origin = ORIGIN.get()
        request = {"request": origin.request} if origin is not None else {}
        return json.dumps(
            {
                **getattr(record, "fields", {}),
                **request,
                "level": level,
                "message": self.text(record),
                "source": getattr(record, "source", "") or "Puppet",
                "tags": getattr(record, "tags", [level]),
                "time": datetime.fromtimestamp(record.created).astimezone().isoformat(),
                "file": getattr(record, "manifest", None),
                "line": getattr(record, "manifest_line", None),
            },
            ensure_ascii=False,
        )


def journal_fields(record: logging.LogRecord) -> dict[str, str]:
    """Return a record's fields by the journal's names."""
    fields = {
        "MESSAGE": _Formatter(lines=True).text(record),
        "PRIORITY": str(_PRIORITIES[_SYSLOG[LEVELS[level_name(record.levelno)]]]),
        "PUPPET_SOURCE": getattr(record, "source", "") or "Puppet",
        "LOGGER": record.name,
    }
    fields |= {f"PUPPET_{name.upper()}": str(value) for name, value in getattr(record, "fields", {}).items()}
    origin = ORIGIN.get()
    return fields | ({"PUPPET_REQUEST": origin.request} if origin is not None else {})


class ConsoleHandler(logging.Handler):
    """Warnings and worse to standard error, the rest to standard output."""

    def __init__(self, *, colour: str = "ansi", out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        super().__init__()
        self._out, self._err = out, err
        self.wanted = colour not in ("false", "no", "off")
        self._terminals: dict[IO[str], bool] = {}  # which streams are one; the system is not asked for each line

    def emit(self, record: logging.LogRecord) -> None:
        stream = (self._err or sys.stderr) if record.levelno >= WARNING else (self._out or sys.stdout)
        try:
            if stream not in self._terminals:
                self._terminals[stream] = stream.isatty()
            text = ConsoleFormatter(colour=self.wanted and self._terminals[stream]).format(record)
            stream.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")
            stream.flush()
        except (BrokenPipeError, ValueError):
            return  # nobody reads any more


class SyslogHandler(logging.handlers.SysLogHandler):
    """`puppet-agent[PID]: (source) message`, a record of its own for each line of a message."""

    def __init__(self, name: str, facility: str, *, address: str = "/dev/log") -> None:
        super().__init__(address, facility)
        self._named = name
        self._formatter = _Formatter(lines=True)

    def emit(self, record: logging.LogRecord) -> None:
        source = getattr(record, "source", "") or "Puppet"
        self.ident = f"{self._named}[{os.getpid()}]: " + ("" if source == "Puppet" else f"({escape_controls(source)}) ")
        for line in self._formatter.text(record).splitlines():
            super().emit(logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, "%s", (line,), None))

    def mapPriority(self, levelName: str) -> str:  # logging's own names
        return _SYSLOG[LEVELS[level_name(logging.getLevelName(levelName))]]


def handler_for(destination: str, *, colour: str, ident: str, facility: str) -> logging.Handler:
    """Return one destination: `console`, `syslog`, `journal`, or an absolute path (`*.json` and `*.jsonl` as objects)."""
    if destination == "console":
        return ConsoleHandler(colour=colour)
    if destination == "syslog":
        if facility.lower() not in SyslogHandler.facility_names:
            raise ConfigError(f"Invalid syslog facility {facility}", hint=f"There are {', '.join(sorted(SyslogHandler.facility_names))}.")
        if not Path("/dev/log").exists():
            return ConsoleHandler(colour=colour)  # no syslog on this machine: better seen than lost
        return SyslogHandler(ident, facility.lower())
    if destination == "journal":
        return JournalHandler(ident, journal_fields) if SOCKET.exists() else ConsoleHandler(colour=colour)
    if destination.startswith("/"):
        path = Path(destination)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            if not path.exists():
                os.close(open_for_appending(path, mode=0o644))
            file = logging.handlers.WatchedFileHandler(path, encoding="utf-8", errors="replace")
        except OSError as err:
            raise ConfigError(f"Could not set logdest to {destination}: {err.strerror}") from err
        file.setFormatter(JsonFormatter() if path.suffix in (".json", ".jsonl") else FileFormatter())
        return file
    raise ConfigError(f"Unknown destination type {destination}", hint="Write console, syslog, journal, or an absolute path.")


def set_up(
    *,
    level: str = "notice",
    destinations: Sequence[str] = ("console",),
    colour: str = "ansi",
    ident: str = "puppet",
    facility: str = "daemon",
) -> None:
    """Send this process' logs to the configured destinations; replaces an earlier call."""
    for number, name in ((NOTICE, "NOTICE"), (ALERT, "ALERT"), (EMERG, "EMERG")):
        logging.addLevelName(number, name)
    handlers = [handler_for(destination, colour=colour, ident=ident, facility=facility) for destination in destinations]
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(WARNING)
    logging.getLogger("puppet").setLevel(LEVELS[level])


def set_apart(name: str, destination: str, *, ident: str, facility: str) -> None:
    """Send all that is logged under `name` to a destination of its own, and nowhere else; `off`: nowhere at all."""
    logger = logging.getLogger(name)
    handler = logging.NullHandler() if destination == "off" else handler_for(destination, colour="false", ident=ident, facility=facility)
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(INFO if destination != "off" else CRIT)


class LogSettings(Protocol):
    """The settings of logs, as CommonSettings has them."""

    @property
    def color(self) -> str: ...
    @property
    def debug(self) -> bool: ...
    @property
    def log_level(self) -> str: ...
    @property
    def logdest(self) -> str: ...
    @property
    def syslogfacility(self) -> str: ...
    @property
    def verbose(self) -> bool: ...


def set_up_by(settings: LogSettings, *, foreground: bool, ident: str) -> None:
    """Send the logs of a daemon to the destinations in its settings: by default to the console in the foreground, else to syslog."""
    set_up(
        level=level_of(settings),
        destinations=(settings.logdest or ("console" if foreground else "syslog")).split(","),
        colour=settings.color,
        ident=ident,
        facility=settings.syslogfacility,
    )


def level_of(settings: LogSettings, *, verbose: bool = False) -> str:
    """Return the level that options and setting ask for; `verbose`: info or more in any case."""
    if settings.debug:
        return "debug"
    return "info" if (verbose or settings.verbose) and LEVELS[settings.log_level] > INFO else settings.log_level
