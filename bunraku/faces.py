"""The common part of all faces: actions, `--render-as`, the errors for wrong calls. Source: command line reference 1.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from shared.data import plainjson, plainyaml
from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, text
from shared.suggestions import did_you_mean

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FaceOptions(CommandOptions):
    """A face's command line without settings; its first argument is the action."""

    renderers: ClassVar[tuple[str, ...]] = ("console", "s", "json")

    json: bool = flag(None)
    render_as: str = text("FORMAT", None, default="console")

    def check_options(self) -> None:
        if self.render_as not in self.renderers:
            raise ConfigError(f"I don't know how to render '{self.render_as}'", hint=f"There are {', '.join(self.renderers)}.")

    @property
    def as_json(self) -> bool:
        return self.json or self.render_as == "json"

    @property
    def action(self) -> str:
        """The first argument; ConfigError when there is none."""
        if not self.arguments:
            raise ConfigError(f"'{self.command}' has no default action.  See `puppet help {self.command}`.")
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
                f"puppet {self.command} {self.action} takes {number} argument{plural}, but you gave {len(self.names)}",
                hint=self.flag_hint or f"Try 'puppet help {self.command} {self.action}' for usage",
            )
        return self.names

    def choose(self, actions: Mapping[str, T]) -> T:
        """Return the parts that belong to the action; raise ConfigError when the face has none of that name."""
        if self.action not in actions:
            raise self.unknown_action(actions)
        return actions[self.action]

    def unknown_action(self, actions: Iterable[str]) -> ConfigError:
        """Return the error for an action that the face does not have; `actions`: those that it has."""
        return unknown_action(self.command, self.action, actions)


@dataclass(frozen=True, slots=True)
class JsonFaceOptions(FaceOptions):
    """The command line of a face that prints JSON, too."""

    json: bool = flag("print JSON")
    render_as: str = text("FORMAT", "console (the default) or json", default="console")


@dataclass(frozen=True, slots=True)
class DataFaceOptions(JsonFaceOptions):
    """The command line of a face that prints YAML, too."""

    renderers: ClassVar[tuple[str, ...]] = ("console", "s", "json", "yaml")

    yaml: bool = flag("print YAML")
    render_as: str = text("FORMAT", "console (the default), json or yaml", default="console")

    @property
    def as_yaml(self) -> bool:
        return self.yaml or self.render_as == "yaml"


@dataclass(frozen=True, slots=True)
class IndirectionOptions(DataFaceOptions):
    """The command line of a face that has the actions of an indirection in addition to its own."""

    terminus: str = text("TERMINUS", "where the instances are, if not at the terminus that the settings name")
    extra: str = text("OBJECT", "options of the request, as an object in JSON or YAML")

    @property
    def is_for_indirection(self) -> bool:
        """Return whether the indirection carries out the action, and not the command."""
        if self.action == "find":
            return self.terminus == "rest" or bool(self.extra)
        return self.action in ("search", "save", "destroy", "info")


INDIRECTION_ACTIONS = {
    "search QUERY": "print all instances that a query finds",
    "save [FILE]": "store an instance, in JSON or YAML; without FILE from standard input",
    "destroy KEY": "remove an instance",
    "info": "print which terminus answers",
}
"""Those of `IndirectionOptions` that every such command has."""


def unknown_action(face: str, action: str, actions: Iterable[str]) -> ConfigError:
    """Return the error for an action that a face does not have; `actions`: those that it has."""
    return ConfigError(
        f"'{face}' has no '{action}' action.  See `puppet help {face}`.", hint=did_you_mean(action, actions, form=f"puppet {face} {{}}")
    )


def render(value: object, yaml: bool) -> str:
    """Return plain data for a person or a script to read: YAML or JSON, without the last newline."""
    return (plainyaml.dumps(value) if yaml else plainjson.dumps_pretty(value)).decode().rstrip("\n")
