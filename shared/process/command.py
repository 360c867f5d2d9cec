"""The declaration of a command, from which its help, the completion of shells and its manual page are made."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Generic

from ..settings import AgentSettings, MasterSettings, SettingOptions, Settings
from .cli import DEBUGGING, O, OptionDoc, option_docs, parse_options, spellings_of

WIDTH = 100
_WIDEST_TERM = 34


@dataclass(frozen=True, slots=True)
class CommandSpec(Generic[O]):
    """
    One command; it is called with its command line, and returns the exit code.

    Attributes:
        options: Its options, each with its doc.
        settings: Those of these classes are options, too.
        usage: The text after `puppet NAME` in each usage line; without any, each action has a usage line.
        actions: The words that it takes first, each with its arguments as in `sign NAME...`, and what it does.
        arguments: What the words of the usage lines are.
        text: What stands before the tables, `notes` what stands behind them: paragraphs, and indented lines, which keep their form.
        setting_docs: Settings that its help names, as in `--server HOST`.
        aliases: Other spellings of settings.
        parts: Actions with options of their own.
        summary: What it does, in a line; of a command that is built in, its module's docstring begins with it.
        is_face: Whether an interruption is an orderly end of it, as of Puppet's faces.
        call: What runs it, given its command line.
    """

    name: str
    options: type[O]
    settings: tuple[type[Settings], ...] = (AgentSettings, MasterSettings)
    _: KW_ONLY
    usage: Sequence[str] = ()
    actions: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    notes: str = ""
    setting_docs: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=lambda: DEBUGGING)
    arguments_only_after: int | None = None
    help_if_bare: bool = False
    parts: Sequence[CommandSpec[Any]] = ()
    summary: str = ""
    is_face: bool = True
    call: Callable[[Sequence[str]], int] | None = None

    def parse(self, argv: Sequence[str]) -> tuple[O, dict[str, Any]]:
        """Return the options of a command line, and the settings in it; ConfigError, as of `parse_options`."""
        return parse_options(
            self.options, self.name, argv, *self.settings, aliases=self.aliases, arguments_only_after=self.arguments_only_after
        )

    def main(self, run: Callable[[O, dict[str, Any]], int]) -> CommandSpec[O]:
        """Make the command of a function of its options and the settings on its command line."""

        def call(argv: Sequence[str]) -> int:
            options, flags = self.parse(argv)
            if options.help or (self.help_if_bare and not options.arguments):
                sys.stdout.write(f"{self.help()}\n")
                return 0
            options.check_options()
            return run(options, flags)

        return replace(self, call=call)

    def __call__(self, argv: Sequence[str]) -> int:
        """Run the command; return the exit code."""
        assert self.call is not None
        return self.call(argv)

    @property
    def usage_lines(self) -> list[str]:
        return [f"puppet {self.name} {words}".rstrip() for words in self.usage or self.actions]

    @property
    def action_docs(self) -> dict[str, str]:
        """The description of each action, by its name."""
        return {words.split()[0]: doc for words, doc in self.actions.items()}

    def tables(self) -> dict[str, dict[str, str]]:
        """Return the tables of its help by their headings: terms with their descriptions."""
        own = {each.term: each.doc for each in option_docs(self.options)}
        last = {term: own.pop(term) for term in list(own) if term.startswith("--help")}
        actions = dict(self.actions) if self.usage else self.action_docs
        common = {"--verbose, -v; --debug, -d": "say more"} if "-v" in self._own_aliases() else {}
        return {"Arguments": dict(self.arguments), "Actions": actions, "Options": {**own, **self.setting_docs, **common, **last}}

    def help(self) -> str:
        """Return the output of `--help`."""
        usage = "\n".join(_usage("      " if number else "Usage:", line) for number, line in enumerate(self.usage_lines))
        tables = [f"{heading}:\n{_table(rows)}" for heading, rows in self.tables().items() if rows]
        every = "Every setting of puppet.conf is an option too: 'puppet config print' lists them." if self.settings else ""
        prose = [[_filled(each) for each in paragraphs(text)] for text in (self.text, self.notes)]
        return "\n\n".join(part for part in (usage, *prose[0], *tables, every, *prose[1]) if part)

    def completed_options(self) -> list[OptionDoc]:
        """Return the options that a shell completes, but for settings under their own names."""
        docs = {each.spellings: each for spec in (self, *self.parts) for each in option_docs(spec.options)}
        named = SettingOptions(*self.settings)
        for short, long in self._own_aliases().items():
            docs[short,] = OptionDoc((short,), not named.is_flag(long.removeprefix("--")), short, f"short for {long}")
        return [*docs.values()]

    def _own_aliases(self) -> dict[str, str]:
        """Return the aliases that are none of the command's own options."""
        own = spellings_of(self.options)
        return {short: long for short, long in self.aliases.items() if self.settings and short not in own}


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each as one line; paragraphs with an indented line are returned unchanged."""
    return [each if "\n  " in f"\n{each}" else " ".join(each.split()) for each in inspect.cleandoc(text).split("\n\n")]


def _filled(paragraph: str) -> str:
    return paragraph if "\n  " in f"\n{paragraph}" else textwrap.fill(paragraph, WIDTH, break_on_hyphens=False)


def _usage(begin: str, line: str) -> str:
    """Return a line of usage; a long one goes on below the first word behind the command, and no bracket is broken."""
    whole = re.sub(r"\[[^]]*\]", lambda bracket: bracket[0].replace(" ", "\xa0"), line)
    return textwrap.fill(whole, WIDTH, initial_indent=f"{begin} ", subsequent_indent=" " * 11, break_on_hyphens=False).replace("\xa0", " ")


def _table(rows: Mapping[str, str]) -> str:
    """Return terms with their descriptions; a long term has a line of its own."""
    width = max((len(term) for term in rows if len(term) <= _WIDEST_TERM), default=8)
    lines: list[str] = []
    for term, doc in rows.items():
        wrapped = textwrap.wrap(doc, WIDTH - width - 4, break_on_hyphens=False) or [""]
        first, *others = ["", *wrapped] if len(term) > width else wrapped
        lines.append(f"  {term:<{width}}  {first}".rstrip())
        lines += [f"{'':{width + 4}}{line}" for line in others]
    return "\n".join(lines)
