"""Custom facts in Ruby: the files with facts, and the resolver that runs them."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, PuppetError
from shared.programs import run_output

from .external import ExternalFactLimits

log = logging.getLogger("puppet.facts")

MAX_SOURCE = 1024 * 1024  # bytes of one file
_NAME = re.compile(r"""(?:Facter\.|^[ \t]*)(?:add|define_fact)\s*(?:\(\s*)?(?::["']?|["'])([A-Za-z][\w.-]*)["']?""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RubyFactRequest:
    """
    The facts in Ruby to resolve, and those that are already known.

    Attributes:
        files: files in Ruby, in the order in which they count.
        folders: the folders of custom facts; a fact's name leads to its file in one of them.
        environ: the environment of what runs them.
        core: facts of the machine; a fact in Ruby replaces one of them only if it has a weight.
        external, environment: facts of facts.d folders and of variables, which weigh 10,000 and 1,000,000.
        fallbacks: facts that count where no module has one of the name.
        unneeded: names of facts that are not found out for their own sake.
    """

    files: Sequence[Path]
    folders: Sequence[Path]
    environ: Mapping[str, str]
    core: Mapping[str, Any] = field(default_factory=dict)
    external: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: Mapping[str, Any] = field(default_factory=dict)
    unneeded: frozenset[str] = frozenset()


RubyFactRunner = Callable[[RubyFactRequest], Awaitable[dict[str, Any]]]
"""Returns the values of the facts that the files have, by name. A fact that fails is an error in the log."""


def ruby_only(directories: Sequence[Path]) -> list[Path]:
    """Return the files in Ruby that have no Python file of the same name in their directory or another one. Blocks."""
    ruby = [path for folder in directories if folder.is_dir() for path in sorted(folder.glob("*.rb"))]
    python = {path.stem for folder in directories if folder.is_dir() for path in folder.glob("*.py")}
    return [path for path in ruby if path.stem not in python]


def names_in(source: str) -> list[str]:
    """Return the names of the facts that a file adds, in lower case; computed names are not recognised."""
    return [name.lower() for name in dict.fromkeys(_NAME.findall(source))]


async def skip_ruby_facts(request: RubyFactRequest) -> dict[str, Any]:
    """Return no facts, because the settings turn off facts in Ruby; a debug line names their files."""
    names = ", ".join(sorted(path.name for path in request.files))
    log.debug("Skipped %d custom facts in Ruby that have no Python counterpart: %s", len(request.files), names)
    return {}


def warn_of_lacking(program: str, remedy: str, request: RubyFactRequest) -> dict[str, Any]:
    """Return no facts, as there is no `program` to run them; one warning names the files that have facts of their own. Blocks."""
    files = [path for path in request.files if not _has_only(path, request.fallbacks)]
    if files:
        names = ", ".join(sorted(map(str, files)))
        log.warning("Facts of modules are in Ruby and missing, as there is no %s to run them: %s; %s", program, names, remedy)
    return {}


def facter_program(limits: ExternalFactLimits, program: str = "facter") -> RubyFactRunner:
    """Return the function that runs facts in Ruby by Facter itself, in one process: weights, confines and core facts are its own."""

    async def run(request: RubyFactRequest) -> dict[str, Any]:
        facter = shutil.which(program, path=request.environ.get("PATH"))
        if facter is None:
            return warn_of_lacking("facter", "install it, or set ruby_facts = true, which needs only a ruby", request)
        return await _values_by_facter(facter, request, limits)

    return run


async def _values_by_facter(facter: str, request: RubyFactRequest, limits: ExternalFactLimits) -> dict[str, Any]:
    fact_names = sorted({name for path in request.files for name in [path.stem.lower(), *names_in(_source(path))]})
    folders = [part for folder in dict.fromkeys(str(path.parent) for path in request.files) for part in ("--custom-dir", folder)]
    argv = [facter, "--json", "--no-external-facts", "--no-color", *folders, *fact_names]
    try:
        code, output, errors = await run_output(
            argv, timeout=limits.seconds, most=limits.output, environ={**request.environ, "LC_ALL": "C.UTF-8"}, what="resolve facts in Ruby"
        )
    except PuppetError as err:
        log.error("%s", err)
        return {}
    for line in errors.splitlines():
        if " ERROR " in line and any(name in line for name in fact_names):
            log.error("%s", line)
    try:
        values = plainjson.loads(output)
    except BadData as err:
        log.error("Failed to resolve facts in Ruby: %s ended with %d and gave no JSON: %s", facter, code, err)
        return {}
    if not isinstance(values, dict):
        return {}
    stronger = request.external.keys() | request.environment.keys()  # this program does not know them
    return {str(name): value for name, value in values.items() if value is not None and name not in stronger}


def _has_only(path: Path, answered: Mapping[str, Any]) -> bool:
    names = names_in(_source(path))
    return bool(names) and all(name in answered for name in names)


def _source(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SOURCE).decode("utf-8", "replace")
    except OSError:
        return ""
