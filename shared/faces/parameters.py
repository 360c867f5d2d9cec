"""Arguments and options of an action, read off its signature."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from ..docstrings import Docstring
from ..errors import ConfigError

T = TypeVar("T")
REQUIRED: Any = inspect.Parameter.empty
_KINDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}


@dataclass(frozen=True, slots=True)
class FaceParameter:
    """
    An argument (a word by its place) or an option (`--name`) of an action.

    Attributes:
        name: As in Python; a last `_` does not count on the command line.
        kind: The type of one value: str, int, float, bool or Path.
        choices: The values that it may have; empty: any.
        repeated: It takes any number of values, and is a tuple of them.
    """

    name: str
    is_option: bool
    kind: type
    choices: tuple[str, ...] = ()
    repeated: bool = False
    default: Any = REQUIRED
    doc: str = ""

    @property
    def word(self) -> str:
        """The name on the command line, of an option without its `--`."""
        return self.name.rstrip("_").replace("_", "-")

    @property
    def is_flag(self) -> bool:
        """True for an option without a value."""
        return self.is_option and self.kind is bool

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED and not self.repeated

    @property
    def spelling(self) -> str:
        """The parameter in a usage line, without brackets."""
        if self.is_flag:
            return f"--no-{self.word}" if self.default is True else f"--{self.word}"
        value = "|".join(self.choices) or self.word.upper()
        return f"--{self.word} {value}" if self.is_option else value

    @property
    def usage(self) -> str:
        """The parameter in a usage line."""
        shown = f"{self.spelling}..." if self.repeated and not self.is_option else self.spelling
        return shown if self.is_required else f"[{shown}]"

    def converted(self, given: Any) -> Any:
        """Return the value of a command-line argument: a bool of a flag, one word, or several when it is repeated; raise ConfigError."""
        if self.is_flag:
            return given
        return tuple(map(self._value, given)) if self.repeated else self._value(given)

    def _value(self, word: str) -> Any:
        if self.choices and word not in self.choices:
            raise ConfigError(f"{self._shown} cannot be '{word}'", hint=f"It is one of {', '.join(self.choices)}.")
        if self.kind is bool:
            if word not in ("true", "false"):
                raise ConfigError(f"{self._shown} must be true or false, not '{word}'")
            return word == "true"
        try:
            return self.kind(word)
        except ValueError:
            raise ConfigError(f"{self._shown} must be {_KINDS[self.kind]}, not '{word}'") from None

    @property
    def _shown(self) -> str:
        return f"--{self.word}" if self.is_option else self.word.upper()


def parameter_of(name: str, annotation: Any, default: Any, doc: str, *, is_option: bool, repeated: bool = False) -> FaceParameter:
    """
    Return the parameter that a name with its type declares; `repeated`: the type is that of one of several values.

    Raises:
        ConfigError: a command line cannot have an argument of the type.
    """
    types_of_one = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) in (Union, types.UnionType) and len(types_of_one) == 1:
        annotation, default = types_of_one[0], None if default is REQUIRED else default
    if get_origin(annotation) is tuple and get_args(annotation)[1:] == (Ellipsis,):
        annotation, repeated = get_args(annotation)[0], True
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    kind = str if annotation is REQUIRED or all(isinstance(choice, str) for choice in choices or (1,)) else annotation
    if kind not in _KINDS:
        raise ConfigError(f"The parameter {name} cannot be a {getattr(kind, '__name__', kind)}")
    if default is REQUIRED and (repeated or (is_option and kind is bool)):
        default = () if repeated else False
    return FaceParameter(name, is_option, kind, choices, repeated, default, doc)


def evaluated(evaluate: Callable[[Any], T], declared: Any) -> T:
    """Return the signature or the annotations of a method or class; ConfigError when a type in them cannot be found."""
    try:
        return evaluate(declared)
    except (NameError, SyntaxError, TypeError, AttributeError) as err:
        raise ConfigError(f"{declared.__name__} has a type that cannot be found: {err}") from err


def parameters_of(function: Callable[..., Any], doc: Docstring) -> tuple[FaceParameter, ...]:
    """
    Return the parameters of a method but for its first: by place they are arguments, by keyword only they are options.

    Raises:
        ConfigError: one has a type that a command line cannot have, or takes keywords of any name.
    """
    declared = list(evaluated(partial(inspect.signature, eval_str=True), function).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in declared):
        raise ConfigError(f"{function.__name__} takes keywords of any name, which a command line has not")
    return tuple(
        parameter_of(
            each.name,
            each.annotation,
            each.default,
            doc.parameters.get(each.name, ""),
            is_option=each.kind is each.KEYWORD_ONLY,
            repeated=each.kind is each.VAR_POSITIONAL,
        )
        for each in declared
    )
