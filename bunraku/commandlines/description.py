"""What each command takes: its help, its actions, its options, the settings that are options of it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field

from shared.process.cli import OBSERVER, OptionSpellings, OptionTable
from shared.settings import Settings

from ..puppet import COMMANDS, main

_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_ACTION = re.compile(r"[a-z][a-z_]*", re.ASCII)
_TERM = re.compile(r"( *)(\S+(?: \S+)*?) {2,}(\S.*)")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """
    One command.

    Attributes:
        usage: The lines of its help that show how it is called, from the word `puppet` on.
        text: The rest of its help.
        actions: The words that it takes first, with what the help says about each.
        options: Its own options; `descriptions` has what the help says of options and other words, by spelling.
        settings: Those of these classes are options, too.
    """

    name: str
    summary: str
    usage: Sequence[str]
    text: str
    actions: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[OptionSpellings] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    settings: Sequence[type[Settings]] = ()


def describe(name: str, summary: str) -> CommandLine:
    """Return what a command takes, out of its own help and of the tables that its help is parsed by."""
    tables: list[OptionTable] = []
    printed = io.StringIO()
    token = OBSERVER.set(tables.append)
    try:
        with redirect_stdout(printed):
            main([name, "--help"])
    finally:
        OBSERVER.reset(token)
    help_text = printed.getvalue()
    usage, text = _usage(help_text)
    shown = _descriptions(text)
    actions = {action: shown.get(action, "") for action in _actions(usage, shown)}
    options = {each.spellings: each for table in tables for each in table.options}
    settings = dict.fromkeys(cls for table in tables for cls in table.settings)
    known = {spelling for spellings in options for spelling in spellings}
    known |= {f"--{_plain(name)}" for cls in settings for name in cls.model_fields}
    for word in _written_options(usage, text):
        if _plain(word) not in known:
            takes_value = re.search(rf"(?<![\w-]){re.escape(word)}[ =](?:<?[A-Z]|[a-z]+\|)", help_text) is not None
            options[word,] = OptionSpellings((word,), "text" if takes_value else "flag")
            known.add(_plain(word))
    return CommandLine(
        name, summary, usage, text, actions, [*options.values()], {word: doc for word, doc in shown.items() if word[0] == "-"}, [*settings]
    )


def describe_all() -> list[CommandLine]:
    """Return all commands that are built in."""
    return [describe(name, summary) for name, (summary, _) in sorted(COMMANDS.items())]


def _usage(help_text: str) -> tuple[list[str], str]:
    """Return the lines `puppet …` that a help begins with, and what follows them."""
    lines = help_text.splitlines()
    count = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    usage: list[str] = []
    for line in lines[:count]:
        text = line.removeprefix("Usage:").strip()
        if text.startswith("puppet ") or not usage:
            usage.append(text)
        else:
            usage[-1] += f" {text}"
    return usage, "\n".join(lines[count:]).strip("\n")


def _plain(word: str) -> str:
    return word.replace("_", "-")


def _actions(usage: Sequence[str], shown: Mapping[str, str]) -> Iterator[str]:
    """Yield the words that a command takes first: those of the usage lines, and those that the help lists where these say ACTION."""
    for line in usage:
        words = line.split()[2:]
        if words[:1] == ["ACTION"]:
            yield from (word for word in shown if _ACTION.fullmatch(word))
        expected = True
        for word in words:
            bare = word.strip("[]")
            if word == "|":
                expected = True
            elif expected and _ACTION.fullmatch(bare):
                yield bare
                expected = False
            elif expected:
                break


def _descriptions(text: str) -> dict[str, str]:
    """Return what a help says about actions and options, by every word that stands before a description."""
    descriptions: dict[str, str] = {}
    for term, words in definitions(text):
        names = _OPTION.findall(term) if term.startswith("-") else term.split(", ") if ", " in term else term.split()[:1]
        for name in names:
            descriptions.setdefault(name, words)
    return descriptions


def definitions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each term of a help with its description; all other text of the help with an empty term, a line or an empty line each."""
    term, words, margin = "", "", 0
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        match = _TERM.fullmatch(line)
        if term and line.strip() and indent > margin + 3:
            words = f"{words} {line.strip()}".strip()
            continue
        if term:
            yield term, words
            term = ""
        is_term = match is not None and (match[1] or _ACTION.fullmatch(match[2].split()[0]))
        if match is not None and is_term:
            term, words, margin = match[2], match[3], len(match[1])
        elif indent in range(1, 5) and (line.lstrip().startswith("-") or re.fullmatch(r" +\w+(, \w+)+", line)):
            term, words, margin = line.strip(), "", indent
        else:
            yield "", line
    if term:
        yield term, words


def _written_options(usage: Sequence[str], text: str) -> Iterator[str]:
    """Yield the options that usage lines, and the lines of a help that describe an option, name."""
    for line in usage:
        yield from (word for word in _OPTION.findall(line) if word not in ("--SETTING", "-"))
    for line in text.splitlines():
        match = re.match(r" +(-.*?)(?: {2,}|$)", line)
        if match is not None:
            yield from _OPTION.findall(match[1])
