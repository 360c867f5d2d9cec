"""The log of one compilation."""

from __future__ import annotations

from language.log import CompilationLog, LogEntry
from shared.errors import Location


def test_a_warning_comes_once_for_a_key_of_its_kind() -> None:
    entries: list[LogEntry] = []
    log = CompilationLog(entries.append)
    log.warn_once("deprecations", "old", "old() is deprecated")
    log.warn_once("deprecations", "old", "old() is deprecated")
    log.warn_once("undefined_variables", "old", "old is not set", file="hiera.yaml")
    assert [entry.text for entry in entries] == [
        "old() is deprecated\n   (file & line not available)",
        "old is not set\n   (file: hiera.yaml)",
    ]


def test_a_disabled_kind_of_warnings_is_left_out() -> None:
    entries: list[LogEntry] = []
    CompilationLog(entries.append, ["deprecations"]).warn_once("deprecations", "old", "old() is deprecated")
    assert entries == []


def test_an_entry_names_its_place_after_the_message() -> None:
    entries: list[LogEntry] = []
    CompilationLog(entries.append).add("notice", "hello", where=Location("/site.pp", 3), source="Scope(Class[main])")
    assert entries == [LogEntry("notice", "hello", Location("/site.pp", 3), "Scope(Class[main])")]
    assert entries[0].text == "hello (file: /site.pp, line: 3)"
