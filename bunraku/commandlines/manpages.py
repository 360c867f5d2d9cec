"""Manual pages in man(7): one of each command, one of the program, one of puppet.conf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shared import __version__
from shared.process.command import CommandSpec, paragraphs
from shared.settings import AgentSettings, MasterSettings, Settings, setting_text
from shared.settings.base import is_flag

PROGRAM = "bunraku-puppet"
"""The name that pages are installed under: those of Puppet itself may be on the same machine."""


def pages(lines: Sequence[CommandSpec[Any]], date: str) -> dict[str, str]:
    """Return the text of all pages by their file's name; `date` is that of the release, as 2026-01-31."""
    texts = {f"{PROGRAM}-{line.name}.1": "\n".join(_command(line, date)) for line in lines}
    texts[f"{PROGRAM}.1"] = "\n".join(_program(lines, date))
    texts[f"{PROGRAM}.conf.5"] = "\n".join(_settings(date))
    return {name: f"{text}\n" for name, text in texts.items()}


def _command(spec: CommandSpec[Any], date: str) -> Iterator[str]:
    yield from _head(f"{PROGRAM}-{spec.name}", 1, date, spec.summary)
    yield from _sections(spec, "SYNOPSIS")
    for part in spec.parts:
        yield from _sections(part, "MORE ACTIONS")
    if spec.settings:
        yield ".PP"
        yield (
            escaped("Every setting of puppet.conf is an option, too: --NAME VALUE, or --NAME and --no-NAME. ")
            + rf"See \fB{escaped(PROGRAM)}.conf\fR(5)."
        )
    yield from _see_also([(PROGRAM, 1), (f"{PROGRAM}.conf", 5)])


def _sections(spec: CommandSpec[Any], heading: str) -> Iterator[str]:
    yield f".SH {heading}"
    for usage in spec.usage_lines:
        yield from (".PP", _synopsis(usage))
    if spec.text:
        yield from (".SH DESCRIPTION", *_body(spec.text))
    for title, rows in spec.tables().items():
        if rows:
            yield f".SH {title.upper()}"
        for term, doc in rows.items():
            yield from _term(term, doc)
    if spec.notes:
        yield from (".SH NOTES", *_body(spec.notes))


def _program(lines: Sequence[CommandSpec[Any]], date: str) -> Iterator[str]:
    yield from _head(PROGRAM, 1, date, "Puppet's agent and master in Python")
    yield from (".SH SYNOPSIS", r"\fBpuppet\fR \fIsubcommand\fR [\fIoptions\fR] [\fIarguments\fR]")
    yield from (".SH DESCRIPTION", escaped("Each subcommand has a page of its own."))
    for line in lines:
        yield from _term(line.name, line.summary)
    yield from (".PP", escaped("Modules may have further subcommands; 'puppet help' lists them."))
    yield ".SH OPTIONS"
    yield from _term("--help, -h", "Print how the program, or a subcommand behind which it stands, is called.")
    yield from _term("--version, -V", "Print the version of Puppet that the program behaves as, and its own.")
    yield from _see_also([*((f"{PROGRAM}-{line.name}", 1) for line in lines), (f"{PROGRAM}.conf", 5)])


def _settings(date: str) -> Iterator[str]:
    yield from _head(f"{PROGRAM}.conf", 5, date, "settings of Puppet's agent and master in Python")
    yield ".SH DESCRIPTION"
    text = """The file puppet.conf is in the directory that --confdir names: /etc/puppet for root, ~/.puppet for everybody else. It has
        sections (main, agent, master or server, user) with a setting a line, as in 'runinterval = 30m'. A section of the program at hand
        counts before main, an option of the command line before the file. $name is the value of another setting."""
    yield escaped(" ".join(text.split()))
    for title, cls in (("SETTINGS OF AGENTS AND COMMANDS", AgentSettings), ("SETTINGS OF A MASTER", MasterSettings)):
        yield f".SH {title}"
        yield from _setting_terms(cls)
    yield from _see_also([(PROGRAM, 1)])


def _setting_terms(cls: type[Settings]) -> Iterator[str]:
    for name, field in sorted(cls.model_fields.items()):
        default = setting_text(field.default)
        option = f"--{name}, --no-{name}" if is_flag(field) else f"--{name} VALUE"
        yield from _term(f"{name} ({option})", f"{field.description} Default: {default or 'none'}.")


# --- man(7)


def _head(name: str, section: int, date: str, summary: str) -> Iterator[str]:
    yield f'.TH "{escaped(name.upper())}" {section} "{date}" "Bunraku {__version__}" "Puppet"'
    yield ".nh"  # options are searched for, and copied
    yield ".ad l"
    yield from (".SH NAME", rf"{escaped(name)} \- {escaped(summary)}")


def _see_also(names: Iterable[tuple[str, int]]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield ", ".join(rf"\fB{escaped(name)}\fR({section})" for name, section in names)


def _synopsis(usage: str) -> str:
    words = usage.split(" ")
    return rf"\fB{escaped(' '.join(words[:2]))}\fR {escaped(' '.join(words[2:]))}".rstrip()


def _body(text: str) -> Iterator[str]:
    for paragraph in paragraphs(text):
        lines = map(escaped, paragraph.splitlines())
        yield from (".PP", ".nf", *lines, ".fi") if "\n" in paragraph else (".PP", *lines)


def _term(term: str, words: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{escaped(term)}\fR", escaped(words) or r"\&")


_ESCAPES: Mapping[int, str] = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq", "…": "...", "“": '"', "”": '"'}
)


def escaped(text: str) -> str:
    """Return a text as roff: nothing of it is a request, quotes and hyphens can be copied."""
    plain = text.translate(_ESCAPES)
    return rf"\&{plain}" if plain.startswith(".") else plain
