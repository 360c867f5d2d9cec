from __future__ import annotations

import io
import json
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.process.log import (
    LEVELS,
    MAX_MESSAGE,
    ORIGIN,
    ConsoleFormatter,
    ConsoleHandler,
    FileFormatter,
    JsonFormatter,
    RequestOrigin,
    SyslogHandler,
    escape_controls,
    handler_for,
    level_name,
    level_of,
    set_apart,
    set_up,
)
from shared.settings import AgentSettings, Conf, load
from tests.support.fakes import logging_kept


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def record(message: str, level: int = LEVELS["notice"], **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("puppet.x", level, "x.py", 1, message, (), None)
    made.__dict__.update(extra)
    return made


@pytest.fixture
def same_logging_afterwards() -> Iterator[None]:
    with logging_kept():
        yield


def test_a_test_leaves_no_level_to_the_next() -> None:
    below = logging.getLogger("puppet.tested")
    with logging_kept():
        set_up(level="err", destinations=())
        below.setLevel(logging.CRITICAL)
        below.propagate = False
        logging.getLogger("puppet.tested.made").setLevel(logging.CRITICAL)
    assert logging.getLogger("puppet").isEnabledFor(logging.INFO) == logging.getLogger().isEnabledFor(logging.INFO)
    assert (below.level, below.propagate) == (logging.NOTSET, True)
    assert logging.getLogger("puppet.tested.made").level == logging.NOTSET


@pytest.mark.parametrize("name", LEVELS)
def test_each_level_has_puppets_name(name: str) -> None:
    assert level_name(LEVELS[name]) == name


@pytest.mark.parametrize(("number", "name"), [(0, "debug"), (11, "debug"), (29, "notice"), (1000, "crit"), (logging.ERROR, "err")])
def test_a_number_between_two_levels_is_the_lower_one(number: int, name: str) -> None:
    assert level_name(number) == name


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", "Debug"),
        ("info", "Info"),
        ("notice", "Notice"),
        ("warning", "Warning"),
        ("err", "Error"),
        ("alert", "Alert"),
        ("emerg", "Emergency"),
        ("crit", "Critical"),
    ],
)
def test_the_console_shows_level_and_message(level: str, shown: str) -> None:
    assert ConsoleFormatter(colour=False).format(record("x", LEVELS[level])) == f"{shown}: x"


@pytest.mark.parametrize(
    ("source", "line"), [("/Stage[main]/X", "Notice: /Stage[main]/X: m"), ("Puppet", "Notice: m"), ("", "Notice: m"), (None, "Notice: m")]
)
def test_the_console_shows_a_source_that_is_not_puppet_itself(source: str | None, line: str) -> None:
    extra = {} if source is None else {"source": source}
    assert ConsoleFormatter(colour=False).format(record("m", **extra)) == line


def test_a_message_of_several_lines_stays_so_on_the_console_and_ends_once() -> None:
    assert ConsoleFormatter(colour=False).format(record("\n@@\n-a\n+b\n")) == "Notice: \n@@\n-a\n+b"


@pytest.mark.parametrize(
    ("text", "lines", "shown"),
    [
        ("plain ünïcode", False, "plain ünïcode"),
        ("a\x1b[31mred", True, r"a\x1b[31mred"),
        ("a\nb\tc", True, "a\nb\tc"),
        ("a\nb\tc", False, r"a\nb\tc"),
        ("a\rb\x00", True, r"a\rb\x00"),
        ("a\u202eb", True, r"a\u202eb"),
        ("\ud800", True, r"\ud800"),
    ],
)
def test_what_could_forge_a_line_or_steer_a_terminal_is_escaped(text: str, lines: bool, shown: str) -> None:
    assert escape_controls(text, lines=lines) == shown


def test_a_huge_message_is_cut() -> None:
    assert escape_controls("x" * (MAX_MESSAGE + 10)) == "x" * MAX_MESSAGE + "…"


@pytest.mark.parametrize(("level", "code"), [("err", "1;31"), ("warning", "1;33"), ("info", "0;32"), ("debug", "0;36")])
def test_a_terminal_gets_colour(level: str, code: str) -> None:
    terminal = Terminal()
    ConsoleHandler(out=terminal, err=terminal).emit(record("x", LEVELS[level]))
    assert terminal.getvalue().startswith(f"\x1b[{code}m")
    assert terminal.getvalue().endswith("x\x1b[0m\n")


@pytest.mark.parametrize("colour", ["false", "no", "off"])
def test_a_terminal_gets_no_colour_when_it_is_switched_off(colour: str) -> None:
    terminal = Terminal()
    ConsoleHandler(colour=colour, out=terminal, err=terminal).emit(record("x", LEVELS["err"]))
    assert terminal.getvalue() == "Error: x\n"


def test_what_is_no_terminal_gets_no_colour() -> None:
    stream = io.StringIO()
    ConsoleHandler(colour="ansi", out=stream, err=stream).emit(record("x", LEVELS["err"]))
    assert stream.getvalue() == "Error: x\n"


@pytest.mark.parametrize("level", LEVELS)
def test_warnings_and_worse_go_to_standard_error(level: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    ConsoleHandler(out=out, err=err).emit(record("x", LEVELS[level]))
    bad = level not in ("debug", "info", "notice")
    assert bool(err.getvalue()) is bad
    assert bool(out.getvalue()) is not bad


def test_nobody_reading_is_no_error() -> None:
    ConsoleHandler(out=Gone(), err=Gone()).emit(record("x"))


def test_a_file_has_time_source_level_and_message_in_one_line() -> None:
    line = FileFormatter().format(record("a\nforged (notice): b", source="//web1/Puppet"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} //web1/Puppet \(notice\): a\\nforged \(notice\): b", line)
    assert FileFormatter().format(record("x")).endswith(" Puppet (notice): x")


def test_json_has_the_whole_line() -> None:
    found = json.loads(JsonFormatter().format(record("a\nb", source="/X", tags=["notice", "x"], manifest="/s.pp", manifest_line=3)))
    assert found.pop("time")
    assert found == {"level": "notice", "message": "a\nb", "source": "/X", "tags": ["notice", "x"], "file": "/s.pp", "line": 3}
    bare = json.loads(JsonFormatter().format(record("x", LEVELS["err"])))
    assert (bare["source"], bare["tags"], bare["file"], bare["line"]) == ("Puppet", ["err"], None, None)


def test_an_exception_brings_its_traceback() -> None:
    try:
        raise ValueError("inner")
    except ValueError:
        line = ConsoleFormatter(colour=False).format(record("outer", LEVELS["err"], exc_info=sys.exc_info()))
    assert line.startswith("Error: outer\nTraceback")
    assert line.endswith("ValueError: inner")


@pytest.mark.parametrize(("name", "kind"), [("x.log", FileFormatter), ("x.json", JsonFormatter), ("deep/er/x.jsonl", JsonFormatter)])
def test_a_path_is_a_file_by_its_suffix_and_its_folder_is_made(name: str, kind: type, tmp_path: Path) -> None:
    handler = handler_for(str(tmp_path / name), colour="ansi", ident="puppet", facility="daemon")
    try:
        assert type(handler.formatter) is kind
        assert (tmp_path / name).exists()
    finally:
        handler.close()


@pytest.mark.parametrize("destination", ["", "relative.log", "eventlog"])
def test_another_destination_is_refused(destination: str) -> None:
    with pytest.raises(ConfigError, match="Unknown destination type") as caught:
        handler_for(destination, colour="ansi", ident="puppet", facility="daemon")
    assert caught.value.hint


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"Could not set logdest to .*/file/x\.log"):
        handler_for(f"{tmp_path}/file/x.log", colour="ansi", ident="puppet", facility="daemon")


@pytest.mark.usefixtures("same_logging_afterwards")
def test_setting_up_twice_replaces_what_was_there(tmp_path: Path) -> None:
    one, two = tmp_path / "1.log", tmp_path / "2.log"
    set_up(destinations=[str(one)])
    set_up(level="info", destinations=[str(two)])
    logging.getLogger("puppet.x").info("hello")
    logging.getLogger("puppet.x").debug("not wanted")
    logging.getLogger("other.library").info("not ours")
    logging.getLogger("other.library").warning("worth it")
    assert one.read_text() == ""
    assert [line.split("): ")[1] for line in two.read_text().splitlines()] == ["hello", "worth it"]


@pytest.mark.usefixtures("same_logging_afterwards")
def test_a_wrong_destination_leaves_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    set_up(destinations=[str(path)])
    with pytest.raises(ConfigError):
        set_up(destinations=["nowhere"])
    logging.getLogger("puppet").error("still here")
    assert "still here" in path.read_text()


@pytest.mark.parametrize(
    ("debug", "verbose", "setting", "level"),
    [
        (False, False, "notice", "notice"),
        (False, True, "notice", "info"),
        (True, True, "err", "debug"),
        (False, True, "debug", "debug"),
        (False, False, "err", "err"),
    ],
)
def test_options_only_ever_show_more(debug: bool, verbose: bool, setting: str, level: str) -> None:
    settings = load(AgentSettings, section="agent", flags={"debug": debug, "verbose": verbose, "log_level": setting}, conf=Conf())
    assert level_of(settings) == level
    quiet = settings.model_copy(update={"verbose": False})
    assert level_of(quiet, verbose=verbose) == level


def test_what_belongs_to_a_request_says_so_in_files() -> None:
    token = ORIGIN.set(RequestOrigin("4fa1", "10.0.0.1"))
    try:
        assert FileFormatter().format(record("m")).endswith(" Puppet (notice): m [4fa1]")
        assert json.loads(JsonFormatter().format(record("m", fields={"status": 200})))["request"] == "4fa1"
    finally:
        ORIGIN.reset(token)
    assert FileFormatter().format(record("m")).endswith(" Puppet (notice): m")
    plain = json.loads(JsonFormatter().format(record("m", fields={"status": 200, "message": "another"})))
    assert (plain["status"], plain["message"], "request" in plain) == (200, "m", False)


def test_what_is_set_apart_goes_to_its_own_place_and_nowhere_else(tmp_path: Path, same_logging_afterwards: None) -> None:
    logger = logging.getLogger("puppet.tested")
    set_up(level="notice", destinations=[str(tmp_path / "all.log")])
    try:
        set_apart("puppet.tested", str(tmp_path / "own.log"), ident="x", facility="daemon")
        logger.info("mine")
        assert "mine" in (tmp_path / "own.log").read_text()
        set_apart("puppet.tested", "off", ident="x", facility="daemon")
        logger.error("nobody's")
        assert (tmp_path / "own.log").read_text().count("\n") == 1
        assert (tmp_path / "all.log").read_text() == ""
    finally:
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def test_syslog_gets_a_record_a_line_with_process_and_source(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(10)
        handler = SyslogHandler("puppet-agent", "daemon", address=str(tmp_path / "log"))
        try:
            handler.emit(record("100% done", LEVELS["err"]))
            handler.emit(record("one\ntwo", source="/Stage[main]/Main/Notify[x]"))
            got = [server.recv(1000).rstrip(b"\0").decode() for _ in range(3)]
        finally:
            handler.close()
    who = f"puppet-agent[{os.getpid()}]:"
    daemon = 3 << 3
    assert got == [
        f"<{daemon | 3}>{who} 100% done",
        f"<{daemon | 5}>{who} (/Stage[main]/Main/Notify[x]) one",
        f"<{daemon | 5}>{who} (/Stage[main]/Main/Notify[x]) two",
    ]


def test_a_facility_that_syslog_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid syslog facility nosuch"):
        handler_for("syslog", colour="false", ident="puppet", facility="nosuch")


def test_TTY_01_no_line_of_a_message_passes_for_another_on_the_console() -> None:
    forged = logging.LogRecord("puppet", 25, "", 0, "%s", ("one\n+two\nError: forged\r\x1b[2J\u202e",), None)
    forged.source = "/File[/a\nError: forged\x1b[2J]"
    shown = ConsoleFormatter(colour=False).format(forged)
    assert shown == "Notice: /File[/a\\nError: forged\\x1b[2J]: one\n+two\n  Error: forged\\r\\x1b[2J\\u202e"


def test_TTY_02_a_source_forges_no_line_of_a_file() -> None:
    forged = logging.LogRecord("puppet", 25, "", 0, "%s", ("one\ntwo",), None)
    forged.source = "/File[/a\nforged]"
    assert FileFormatter().format(forged).count("\n") == 0
