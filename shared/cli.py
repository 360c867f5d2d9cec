"""A command as a program: what its errors look like on standard error, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .errors import ConfigError, PuppetError


def ended(command: Callable[[], int]) -> int:
    """The command's exit code; 1 when it cannot start, which is said; 0 when somebody interrupts it before it has."""
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


def value_of(word: str, left: list[str]) -> str:
    """The value of an option: behind its `=`, or the next word, which is taken out of `left`; ConfigError when there is none."""
    name, equals, value = word.partition("=")
    if not equals and not left:
        raise ConfigError(f"Could not parse application options: missing argument: {name}")
    return value if equals else left.pop(0)


def invalid_option(command: str, word: str) -> ConfigError:
    """That a command has no such option."""
    return ConfigError(f"Could not parse application options: invalid option: {word}", hint=f"Try 'puppet {command} --help'.")
