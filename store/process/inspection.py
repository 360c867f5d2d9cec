"""
`python -m store.process.inspection`: the checks of a store before a master starts it.

The settings come in JSON over standard input; the problems go to standard output, as a list in JSON. It runs as the account of the store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from shared.database.inspection import Problem
from shared.errors import BadName, ConfigError
from shared.names import valid_certname
from shared.settings import MasterSettings

from ..database.inspection import inspect_database
from .listeners import read_access
from .rooms import database_url

CONNECT_TIMEOUT = 5.0  # seconds


def main() -> int:
    """Print the problems; return 0."""
    settings = MasterSettings.model_validate(json.loads(sys.stdin.buffer.read()))
    problems = [*_allowlist_problems(settings), *inspect_database(database_url(settings), CONNECT_TIMEOUT)]
    json.dump([asdict(problem) for problem in problems], sys.stdout)
    return 0


def _allowlist_problems(settings: MasterSettings) -> Iterator[Problem]:
    try:
        names = read_access(settings).allowlist
    except ConfigError as err:
        yield Problem("error", err.message, err.hint)
        return
    if names is None:
        return
    for name in sorted(names):
        try:
            valid_certname(name)
        except BadName as err:
            yield Problem("warning", f"{settings.store_allowlist}: {name!r} is no certname: {err.message}", "Write one certname a line.")
    if not names:
        yield Problem(
            "warning", f"{settings.store_allowlist} is empty: all clients are refused at store_port", "Write one certname a line."
        )
    if not settings.store_port:
        yield Problem(
            "warning", "store_allowlist protects store_port only, which is 0", "Set store_port = 8081, or leave out store_allowlist."
        )


if __name__ == "__main__":
    sys.exit(main())
