"""The types that modules of this machine have, for commands that have no catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.settings import AgentSettings

if TYPE_CHECKING:
    from agent.plugins.loading import Plugins, Uses
    from agent.state.runlog import RunLog


def names_of_types(folders: Sequence[Path]) -> frozenset[str]:
    """Return the names of the types that the folders have files of, in Python or Ruby."""
    return frozenset(path.stem for folder in folders for kind in ("py", "rb") for path in (folder / "puppet" / "type").glob(f"*.{kind}"))


async def facts_here(settings: AgentSettings) -> dict[str, Any]:
    """Return this machine's facts."""
    from agent.facts.builtin.host import Host
    from agent.facts.facter import gather
    from agent.run.factsources import fact_sources

    return await gather(Host(), fact_sources(settings))


def plugins_here(uses: Uses, folders: Sequence[Path], settings: AgentSettings, facts: Mapping[str, Any], log: RunLog) -> Plugins:
    """Return the types that a command line uses, built in and of the folders; the caller must close them. Blocks."""
    from agent.plugins.loading import plugins_of
    from agent.ruby.needs import RubyNeeds

    return plugins_of(uses, folders, log, replace(RubyNeeds.of(settings, facts), texts=True))
