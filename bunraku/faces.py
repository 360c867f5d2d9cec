"""What all faces have in common: actions, `--render-as`, the errors for wrong calls. Source: command line reference 1.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from shared.data import plainjson, plainyaml
from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, parse_options, text
from shared.settings import Settings
from shared.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class FaceOptions(CommandOptions):
    """A face's command line without settings; its first argument is the action."""

    face: ClassVar[str]
    renderers: ClassVar[tuple[str, ...]] = ("console", "s", "json")

    json: bool = flag()
    render_as: str = text(default="console")

    @property
    def as_json(self) -> bool:
        return self.json or self.render_as == "json"

    @property
    def action(self) -> str:
        """The first argument; ConfigError when there is none."""
        if not self.arguments:
            raise ConfigError(f"'{self.face}' has no default action.  See `puppet help {self.face}`.")
        return self.arguments[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments behind the action."""
        return self.arguments[1:]

    def exactly(self, number: int) -> tuple[str, ...]:
        """Return the arguments behind the action; ConfigError unless there are `number`."""
        if len(self.names) != number:
            plural = "" if number == 1 else "s"
            raise ConfigError(
                f"puppet {self.face} {self.action} takes {number} argument{plural}, but you gave {len(self.names)}",
                hint=self.flag_hint or f"Try 'puppet help {self.face} {self.action}' for usage",
            )
        return self.names

    def unknown_action(self, actions: Iterable[str]) -> ConfigError:
        """Return the error for an action that the face does not have; `actions`: those that it has."""
        return unknown_action(self.face, self.action, actions)


@dataclass(frozen=True, slots=True)
class DataFaceOptions(FaceOptions):
    """The command line of a face that prints YAML, too."""

    renderers: ClassVar[tuple[str, ...]] = ("console", "s", "json", "yaml")

    yaml: bool = flag()

    @property
    def as_yaml(self) -> bool:
        return self.yaml or self.render_as == "yaml"


@dataclass(frozen=True, slots=True)
class IndirectionOptions(DataFaceOptions):
    """The command line of a face that has the actions of an indirection besides its own."""

    terminus: str = text()
    extra: str = text()


F = TypeVar("F", bound=FaceOptions)


def parse_face(cls: type[F], argv: Sequence[str], *settings: type[Settings]) -> tuple[F, dict[str, Any]]:
    """
    Return the options of a face's command line, and the settings in it.

    Raises:
        ConfigError: an option that the face does not have, a value that is missing, a format that is not known.
    """
    options, flags = parse_options(cls, cls.face, argv, *settings)
    if options.render_as not in cls.renderers:
        raise ConfigError(f"I don't know how to render '{options.render_as}'", hint=f"There are {', '.join(cls.renderers)}.")
    return options, flags


def face_command(
    cls: type[F], usage: str, *settings: type[Settings], if_bare: bool = False
) -> Callable[[Callable[[F, dict[str, Any]], int]], Callable[[Sequence[str]], int]]:
    """
    Make a face's `main` of a function of its options and the settings on its command line.

    Args:
        usage: what `--help` prints; so does a call without arguments `if_bare`.
    """

    def with_command_line(run: Callable[[F, dict[str, Any]], int]) -> Callable[[Sequence[str]], int]:
        def main(argv: Sequence[str]) -> int:
            options, flags = parse_face(cls, argv, *settings)
            if options.help or (if_bare and not options.arguments):
                print(usage)
                return 0
            return run(options, flags)

        return main

    return with_command_line


def unknown_action(face: str, action: str, actions: Iterable[str]) -> ConfigError:
    """Return the error for an action that a face does not have; `actions`: those that it has."""
    return ConfigError(
        f"'{face}' has no '{action}' action.  See `puppet help {face}`.", hint=did_you_mean(action, actions, form=f"puppet {face} {{}}")
    )


def render(value: object, yaml: bool) -> str:
    """Return plain data for a person or a script to read: YAML or JSON, without the last line's end."""
    return (plainyaml.dumps(value) if yaml else plainjson.dumps_pretty(value)).decode().rstrip("\n")
