"""A command as a program: what its errors look like on standard error, and its exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable

from ..errors import ConfigError, PuppetError
from ..suggestions import did_you_mean

_OPTION = re.compile(r"--(?:\[no-\])?([a-z][\w-]*)", re.ASCII)


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


def options_in(usage: str) -> set[str]:
    """Return the names of the long options that a usage text has, without their `--`."""
    return set(_OPTION.findall(usage))


def invalid_option(command: str, word: str, options: Iterable[str] = ()) -> ConfigError:
    """
    Return the error for an option that a command does not have.

    Args:
        options: names of the command's own options; one of them, or a setting, is suggested where it is close to `word`.
    """
    from ..settings import AgentSettings, MasterSettings  # only for this error: building the master's class costs an agent 20 ms

    option = word.partition("=")[0]
    name, prefix = option.removeprefix("--"), "--"
    if name.startswith("no-"):
        name, prefix = name.removeprefix("no-"), "--no-"
    known = {*options, "help", "version", *AgentSettings.model_fields, *MasterSettings.model_fields}
    guess = did_you_mean(name, known, form=f"{prefix}{{}}") if option.startswith("--") else ""
    return ConfigError(
        f"Could not parse application options: invalid option: {word}", hint=f"{guess} Try 'puppet {command} --help'.".lstrip()
    )
