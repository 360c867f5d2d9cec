"""Fetch this machine's catalog from a master and apply it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent import cli

if TYPE_CHECKING:
    from agent.run.deferred import Resolver
    from agent.state.runlog import RunLog
    from shared.settings import AgentSettings


def resolver(settings: AgentSettings, environment: str, facts: Mapping[str, Any], log: RunLog) -> Resolver:
    """Imported late: few catalogs have deferred values."""
    from ..catalogs.deferring import resolver as made

    return made(settings, environment, facts, log)


main = replace(cli.COMMAND, is_face=False, call=lambda argv: cli.main(argv, deferring=resolver))
