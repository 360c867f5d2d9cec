"""The sources of this machine's facts, from the settings."""

from __future__ import annotations

import os
from pathlib import Path

from shared.settings import AgentSettings

from .external import ExternalFactLimits
from .facter import FactSources
from .facterconf import CACHE_FOLDER, CONF_FILE

EXTERNAL_FACTS = ("/etc/puppetlabs/facter/facts.d", "/etc/facter/facts.d", "/opt/puppetlabs/facter/facts.d")


def fact_sources(settings: AgentSettings) -> FactSources:
    """Return the sources of this agent's facts."""
    return FactSources(
        external=[settings.pluginfactdest],
        system=[*map(Path, EXTERNAL_FACTS)] if os.geteuid() == 0 else [Path.home() / ".facter" / "facts.d"],
        custom=[*settings.factpath, settings.plugindest / "facter"],
        limits=ExternalFactLimits(settings.external_fact_timeout, settings.external_fact_output),
        core_seconds=settings.fact_timeout,
        legacy=settings.include_legacy_facts,
        ruby=settings.ruby_facts,
        conf=Path(CONF_FILE),
        cache=Path(CACHE_FOLDER) if os.geteuid() == 0 else None,
    )
