"""Custom facts in Python: modules' `lib/facter/*.py`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ConfigError

from .builtin.host import Host
from .declarations import Declaration
from .known import Known
from .threads import run_in_thread

log = logging.getLogger("puppet.facts")


def load_file(path: Path) -> list[Declaration]:
    """Return the facts that a file declares, in order. The file runs in a fresh module; raise ConfigError with the fault and its place."""
    from shared import pluginfiles

    name = f"puppet_facts_{path.stem}"
    module = pluginfiles.load(path, name, f"the custom facts of {path.name}")
    del sys.modules[name]  # only dataclasses and typing needed it, which look up a class's module
    return [value for value in vars(module).values() if isinstance(value, Declaration)]


def load_all(directories: Sequence[Path]) -> list[Declaration]:
    """Return all facts that the Python files in `directories` declare; the first file of a name wins. Blocks."""
    declarations: list[Declaration] = []
    seen: set[str] = set()
    for directory in directories:
        for path in sorted(directory.glob("*.py")) if directory.is_dir() else ():
            if path.name.startswith("_") or path.stem in seen:
                continue
            seen.add(path.stem)
            try:
                declarations += load_file(path)
            except ConfigError as err:  # the run goes on without it
                log.error("%s", err)
    return declarations


async def custom_facts(
    declarations: Sequence[Declaration], host: Host, known: Mapping[str, Any], weights: Mapping[str, int]
) -> dict[str, Any]:
    """
    Return the values of custom facts on top of `known`.

    For each name the heaviest resolution that suits and gives a value wins, in order of declaration on a tie; a fact that exists
    already (`weights`: core 0, external 10000) is replaced only by a heavier one. Each runs in a thread with its own time-out.
    Source: facts reference 6.
    """
    values: dict[str, Any] = {}
    ordered = sorted(declarations, key=lambda declaration: -declaration.heaviness)
    for name in dict.fromkeys(declared.name for declared in declarations):
        for declaration in ordered:
            view = Known({**known, **values})
            if declaration.name != name or declaration.heaviness <= weights.get(name, -1) or not declaration.suits(view):
                continue
            value = await _value(declaration, host, view)
            if value is not None:
                values[name] = value
                break
    return values


async def _value(declaration: Declaration, host: Host, known: Known) -> Any:
    try:
        value = await run_in_thread(lambda: declaration.resolve(host, known), seconds=declaration.timeout, name=f"fact {declaration.name}")
    except TimeoutError:
        log.error("Timed out after %g seconds while resolving fact='%s'", declaration.timeout, declaration.name)
        return None
    except Exception as err:  # noqa: BLE001  # a module author's code may fail in any way; the run goes on
        log.error("Error while resolving custom fact fact='%s': %s: %s", declaration.name, type(err).__name__, err)
        return None
    problem = invalid(value)
    if problem:
        log.error("Fact resolution fact='%s' resolved to an invalid value: %s", declaration.name, problem)
        return None
    return value


def invalid(value: Any) -> str:
    """Return why `value` cannot be a fact's value, or '': text, numbers, booleans, None, and lists and maps of these are valid."""
    if value is None or isinstance(value, str | bool | int | float):
        return ""
    if isinstance(value, list):
        return next((problem for item in value if (problem := invalid(item))), "")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"a key of a map is of the kind {type(key).__name__}, not text"
            if problem := invalid(item):
                return problem
        return ""
    return f"a value of the kind {type(value).__name__}"
