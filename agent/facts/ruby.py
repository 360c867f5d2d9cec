"""Custom facts in Ruby: the facter program resolves them where it is installed; otherwise they are named in the log as skipped."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, PuppetError
from shared.indirector.termini import run_output

from .external import ExternalFactLimits

log = logging.getLogger("puppet.facts")

MAX_SOURCE = 1024 * 1024  # bytes of one file
_NAME = re.compile(r"""(?:Facter\.|^\s*)(?:add|define_fact)\s*\(?\s*(?::["']?|["'])([A-Za-z][\w.-]*)["']?""", re.MULTILINE)


def ruby_only(directories: Sequence[Path]) -> list[Path]:
    """Return the files in Ruby without a Python file of the same name beside them or in another directory. Blocks."""
    ruby = [path for folder in directories if folder.is_dir() for path in sorted(folder.glob("*.rb"))]
    python = {path.stem for folder in directories if folder.is_dir() for path in folder.glob("*.py")}
    return [path for path in ruby if path.stem not in python]


def names_in(source: str) -> list[str]:
    """Return the names of the facts that a file adds, in lower case; computed names are not recognised."""
    return [name.lower() for name in dict.fromkeys(_NAME.findall(source))]


async def ruby_facts(
    files: Sequence[Path], *, environ: Mapping[str, str], limits: ExternalFactLimits, program: str = "facter"
) -> dict[str, Any]:
    """
    Return the values of the facts in Ruby `files`, resolved by Facter itself: weights, confines and core facts included.

    One process resolves all; its error messages go to the log. Without the program ('' or not found) the files are named in a debug line.
    """
    if not files:
        return {}
    facter = shutil.which(program, path=environ.get("PATH")) if program else None
    if facter is None:
        names = ", ".join(sorted(path.name for path in files))
        log.debug("Skipped %d custom facts in Ruby that have no Python file beside them: %s", len(files), names)
        return {}
    fact_names = sorted({name for path in files for name in [path.stem.lower(), *names_in(_source(path))]})
    folders = [part for folder in dict.fromkeys(str(path.parent) for path in files) for part in ("--custom-dir", folder)]
    argv = [facter, "--json", "--no-external-facts", "--no-color", *folders, *fact_names]
    try:
        code, output, errors = await run_output(
            argv, timeout=limits.seconds, most=limits.output, environ={**environ, "LC_ALL": "C.UTF-8"}, what="resolve facts in Ruby"
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
    return {str(name): value for name, value in values.items() if value is not None}


def _source(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SOURCE).decode("utf-8", "replace")
    except OSError:
        return ""
