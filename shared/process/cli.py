"""A command as a program: its options as a dataclass, its errors on standard error, its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from ..errors import ConfigError, PuppetError
from ..settings import AgentSettings, MasterSettings, SettingOptions, Settings
from ..suggestions import did_you_mean

DEBUGGING: Mapping[str, str] = {"-v": "--verbose", "-d": "--debug"}  # the short forms of settings that every command has
_PREFIX = "Could not parse application options: "


def run_main(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: 1, after its error is printed, when it raises; 0 when somebody interrupts it."""
    try:
        return command()
    except PuppetError as err:
        print(f"Error: {err}", file=sys.stderr)
        if err.hint:
            print(err.hint, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Cancelling startup", file=sys.stderr)
        return 0


# --- declaring options


@dataclass(frozen=True, slots=True)
class _Option:
    """
    The spelling of an option's field: `--name` the field's name (with `_` or `-`), and those in `spellings`.

    Attributes:
        kind: `flag` takes no value, `text` one, `texts` one each time, `optional` the next word unless that is an option.
        doc: Its text in help, completion and manual pages; None: no text, not even that it exists.
        value: What they call its value.
        off: spellings that set a flag to False.
    """

    kind: str
    doc: str | None
    spellings: tuple[str, ...]
    value: str = ""
    off: tuple[str, ...] = ()


def flag(doc: str | None, *spellings: str, default: bool = False, off: Sequence[str] = (), negatable: bool = False) -> bool:
    """
    Declare an option without a value; `negatable`: `--no-name` sets it to False, and `doc` describes that form if it is not the default.
    """
    option = _Option("flag", doc, spellings, off=(*off, *(["--no-{}"] if negatable else [])))
    return field(default=default, metadata={"option": option})


def maybe_flag(doc: str | None, *spellings: str) -> bool | None:
    """Declare an option that is also written `--no-name`, and is None when neither is given."""
    return field(default=None, metadata={"option": _Option("flag", doc, spellings, off=("--no-{}",))})


def text(value: str, doc: str | None, *spellings: str, default: str = "") -> str:
    """Declare an option with a value; the last one counts."""
    return field(default=default, metadata={"option": _Option("text", doc, spellings, value)})


def maybe_text(value: str, doc: str | None, *spellings: str) -> str | None:
    """Declare an option with a value, which is None when the option is not given."""
    return field(default=None, metadata={"option": _Option("text", doc, spellings, value)})


def optional_text(value: str, doc: str | None, *spellings: str) -> str | None:
    """Declare an option whose value may be left out: it is '' then, and None when the option is not given."""
    return field(default=None, metadata={"option": _Option("optional", doc, spellings, f"[{value}]")})


def texts(value: str, doc: str | None, *spellings: str) -> tuple[str, ...]:
    """Declare an option that may be given several times."""
    return field(default=(), metadata={"option": _Option("texts", doc, spellings, value)})


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The command line of one command without settings; subclasses declare their options as fields."""

    arguments: tuple[str, ...] = ()
    help: bool = flag("print this help", "-h")
    flag_hint: str = ""
    """The spelling to suggest for `--flag false`, whose second word is an argument; '' for a command line without one."""
    command: str = field(default="", compare=False)
    argv: tuple[str, ...] = field(default=(), compare=False)
    """The name of the command, and its command line."""

    def check_options(self) -> None:
        """Raise ConfigError when the options contradict each other, unless help is requested."""


O = TypeVar("O", bound=CommandOptions)  # noqa: E741


@dataclass(frozen=True, slots=True)
class OptionDoc:
    """One option as help, completion and manual pages show it; `term` has its value, and of a flag the spellings that change it."""

    spellings: tuple[str, ...]
    takes_value: bool
    term: str
    doc: str


def option_docs(cls: type[CommandOptions]) -> list[OptionDoc]:
    """Return the documentation of a command's options, shared options last."""
    docs = []
    for base in cls.__mro__:
        for attribute in (each for each in fields(cls) if each.name in vars(base).get("__annotations__", ())):
            option: _Option | None = attribute.metadata.get("option")
            if option is None or option.doc is None:
                continue
            table = _field_spellings(attribute)
            spellings = [word for word, (_, _, constant) in table.items() if attribute.default is None or constant is not attribute.default]
            term = " ".join([", ".join(spellings or table), option.value]).rstrip()
            docs.append(OptionDoc(tuple(table), option.kind in ("text", "texts"), term, option.doc))
    return list({each.spellings: each for each in docs}.values())


# --- reading them


def parse_options(
    cls: type[O],
    command: str,
    argv: Sequence[str],
    *settings: type[Settings],
    aliases: Mapping[str, str] = DEBUGGING,
    arguments_only_after: int | None = None,
) -> tuple[O, dict[str, Any]]:
    """
    Return the options and arguments of a command line, and the settings in it. The command's own options win over settings.

    After `--` every word is an argument.

    Args:
        aliases: other spellings of settings.
        arguments_only_after: after so many arguments a word that begins with `-` and is not an option is an argument, too.
    Raises:
        ConfigError: an option that the command does not have, or whose value is missing or needless.
    """
    table = spellings_of(cls)
    flags = SettingOptions(*settings)
    values: dict[str, Any] = {}
    arguments: list[str] = []
    pending = list(argv)
    word = flag_hint = ""
    while pending:
        before, word = word, pending.pop(0)
        if word == "--":
            arguments += pending
            break
        name, equals, rest = word.partition("=")
        attribute, kind, constant = table.get(_plain(name), ("", "", None))
        if kind == "flag" and not equals:
            values[attribute] = constant
        elif kind == "optional":
            values[attribute] = rest if equals or not pending or pending[0].startswith("-") else pending.pop(0)
        elif kind in ("text", "texts"):
            if not equals and not pending:
                raise ConfigError(f"{_PREFIX}missing argument: {name}")
            value = rest if equals else pending.pop(0)
            values[attribute] = (*values.get(attribute, ()), value) if kind == "texts" else value
        elif flags.take(aliases.get(word, word), pending):
            continue
        elif word.startswith("-") and word != "-" and (arguments_only_after is None or len(arguments) < arguments_only_after):
            raise invalid_option(command, word, [spelling[2:] for spelling in table if spelling.startswith("--")])
        else:
            if word in ("true", "false") and flags.is_flag(before.removeprefix("--")):
                flag_hint = f"{before} takes no value: write {before} for true, --no-{before.removeprefix('--')} for false."
            arguments.append(word)
    return cls(arguments=tuple(arguments), flag_hint=flag_hint, command=command, argv=tuple(argv), **values), flags.values


def _plain(name: str) -> str:
    return name.replace("_", "-") if name.startswith("--") else name


def spellings_of(cls: type[CommandOptions]) -> dict[str, tuple[str, str, bool]]:
    """Return, by spelling, an option's field, its kind, and the value that a flag sets."""
    return {spelling: row for attribute in fields(cls) for spelling, row in _field_spellings(attribute).items()}


def _field_spellings(attribute: Field[Any]) -> dict[str, tuple[str, str, bool]]:
    option: _Option | None = attribute.metadata.get("option")
    if option is None:
        return {}
    name = attribute.name.rstrip("_")
    table = {_plain(spelling): (attribute.name, option.kind, True) for spelling in (f"--{name}", *option.spellings)}
    return table | {_plain(spelling.format(name)): (attribute.name, option.kind, False) for spelling in option.off}


def invalid_option(command: str, word: str, options: Iterable[str] = ()) -> ConfigError:
    """
    Return the error for an option that a command does not have.

    Args:
        options: names of the command's own options; one of them, or a setting, is suggested where it is close to `word`.
    """
    option = word.partition("=")[0]
    name, prefix = option.removeprefix("--"), "--"
    if name.startswith("no-"):
        name, prefix = name.removeprefix("no-"), "--no-"
    settings = {*AgentSettings.model_fields, *MasterSettings.model_fields}
    known = {*options, "version", *settings}
    guess = did_you_mean(name, known, form=f"{prefix}{{}}") if option.startswith("--") else ""
    if option.startswith("--") and name.replace("-", "_") in settings:
        guess = "That is a setting which this command does not use, or not in this form."
    return ConfigError(f"{_PREFIX}invalid option: {word}", hint=f"{guess} Try 'puppet {command} --help'.".lstrip())
