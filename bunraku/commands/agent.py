"""`puppet agent`: the agent, with the functions that deferred values call."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent import cli

if TYPE_CHECKING:
    from agent.run.deferred import Resolver
    from agent.state.runlog import RunLog
    from shared.settings import AgentSettings


def main(argv: Sequence[str] | None = None) -> int:
    """Run `puppet agent …`; the exit code."""
    return cli.main(sys.argv[1:] if argv is None else argv, deferring=resolver)


def resolver(settings: AgentSettings, environment: str, facts: Mapping[str, Any], log: RunLog) -> Resolver:
    """Imported late: few catalogs have deferred values."""
    from ..catalogs.deferring import resolver as made

    return made(settings, environment, facts, log)
