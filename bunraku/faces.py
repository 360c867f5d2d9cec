"""What all faces have in common: actions, `--render-as`, the errors for wrong calls. Source: command line reference 1.2."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from shared.data import plainjson, plainyaml
from shared.errors import ConfigError
from shared.process import log as logs
from shared.process.cli import invalid_option, value_of
from shared.settings import AgentSettings, flags_of, load
from shared.suggestions import did_you_mean

RENDERERS = ("console", "s", "json")


@dataclass(frozen=True, slots=True)
class Call:
    """
    A face's command line, without settings: its words (the action first), options with their values, and flags.

    An option that was given several times has its last value in `options`, and all of them in `lists`.
    """

    face: str
    words: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    json: bool = False
    yaml: bool = False
    help: bool = False
    lists: dict[str, list[str]] = field(default_factory=dict)

    @property
    def action(self) -> str:
        """The first word; ConfigError when there is none."""
        if not self.words:
            raise ConfigError(f"'{self.face}' has no default action.  See `puppet help {self.face}`.")
        return self.words[0]

    def unknown_action(self, action: str, actions: Iterable[str]) -> ConfigError:
        """Return the error for an action that the face does not have; `actions`: those that it has."""
        return ConfigError(
            f"'{self.face}' has no '{action}' action.  See `puppet help {self.face}`.",
            hint=did_you_mean(action, actions, form=f"puppet {self.face} {{}}"),
        )

    def counted(self, action: str, number: int) -> tuple[str, ...]:
        """The action's arguments, of which there must be `number`."""
        given = self.words[1:]
        if len(given) != number:
            plural = "" if number == 1 else "s"
            raise ConfigError(
                f"puppet {self.face} {action} takes {number} argument{plural}, but you gave {len(given)}",
                hint=f"Try 'puppet help {self.face} {action}' for usage",
            )
        return given


def call_of(face: str, left: Sequence[str], *, options: Collection[str] = (), flags: Collection[str] = (), yaml: bool = False) -> Call:
    """
    What is left of a face's command line after the settings.

    Args:
        options: names of options that take a value; flags: of those that take none. `--json` and `--render-as` are always there.
        yaml: the face renders as YAML, too.
    Raises:
        ConfigError: another option, a value that is missing, a format that is not known.
    """
    words: list[str] = []
    lists: dict[str, list[str]] = {}
    seen: set[str] = set()
    pending = list(left)
    while pending:
        word = pending.pop(0)
        name, equals, _ = word.removeprefix("--").partition("=")
        if word == "--":
            words += pending
            break
        if word in ("--help", "-h"):
            seen.add("help")
        elif word.startswith("--") and (name in options or name == "render-as"):
            lists.setdefault(name, []).append(value_of(word, pending))
        elif word.startswith("--") and not equals and (name in flags or name == "json" or (yaml and name == "yaml")):
            seen.add(name)
        elif word.startswith("-") and len(word) > 1:
            raise invalid_option(face, word, (*options, *flags, "render-as", "json", *(["yaml"] if yaml else [])))
        else:
            words.append(word)
    given = {name: values[-1] for name, values in lists.items()}
    form = given.pop("render-as", "console")
    renderers = (*RENDERERS, "yaml") if yaml else RENDERERS
    if form not in renderers:
        raise ConfigError(f"I don't know how to render '{form}'", hint=f"There are {', '.join(renderers)}.")
    wished = {form, *seen}
    own = frozenset(seen - {"help", "json", "yaml"})
    return Call(face, tuple(words), given, own, "json" in wished, "yaml" in wished, "help" in seen, lists)


def rendered(value: object, yaml: bool) -> str:
    """Plain data for a person or a script to read: YAML or JSON, without the last line's end."""
    return (plainyaml.dumps(value) if yaml else plainjson.dumps_pretty(value)).decode().rstrip("\n")


def only_action(face: str, action: str, argv: Sequence[str], usage: str) -> tuple[Call, AgentSettings] | None:
    """
    The call of a face that has one action, and this machine's settings; logs go where they say. None: usage was asked for, and printed.

    Raises:
        ConfigError: another action, or what `call_of` and the settings do not take.
    """
    flags, left = flags_of(list(argv), AgentSettings, shorts={"-v": "--verbose", "-d": "--debug"})
    call = call_of(face, left)
    if call.help:
        print(usage)
        return None
    if call.action != action:
        raise call.unknown_action(call.action, [action])
    settings = load(AgentSettings, section="agent", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    return call, settings
