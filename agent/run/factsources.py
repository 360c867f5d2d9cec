"""The sources of this machine's facts, from the settings."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.ruby import RubySettings
from shared.settings import AgentSettings, home_directory
from shared.wire.dialects import MODERN

from ..facts.external import ExternalFactLimits
from ..facts.facter import FactSources
from ..facts.facterconf import CACHE_FOLDER, CONF_FILE
from ..facts.own import puppet_facts
from ..facts.ruby import RubyFactRequest, RubyFactRunner, facter_program, warn_of_lacking
from ..providers import default_provider_name, platform_here
from ..ruby.needs import read_setting, ruby_program

EXTERNAL_FACTS = ("/etc/puppetlabs/facter/facts.d", "/etc/facter/facts.d", "/opt/puppetlabs/facter/facts.d")
SERVICE_DEFAULT = "<SERVICE DEFAULT>"  # a value in OpenStack's modules, that leaves a setting of a service alone
_INSTALL = (
    "install it (Debian, Ubuntu, Fedora: the package ruby); neither Facter nor gems are needed. ruby_facts = false turns this message off"
)


def fact_sources(settings: AgentSettings) -> FactSources:
    """Return the sources of this agent's facts."""
    limits = ExternalFactLimits(settings.external_fact_timeout, settings.external_fact_output)
    return FactSources(
        external=[settings.pluginfactdest],
        system=[*map(Path, EXTERNAL_FACTS)] if os.geteuid() == 0 else [home_directory() / ".facter" / "facts.d"],
        custom=list(dict.fromkeys((settings.plugindest / "facter", *settings.factpath))),
        limits=limits,
        core_seconds=settings.fact_timeout,
        legacy=settings.include_legacy_facts,
        ruby=_runner(settings, limits),
        ruby_program=ruby_program(settings),
        conf=Path(CONF_FILE),
        cache=Path(CACHE_FOLDER) if os.geteuid() == 0 else None,
        added=puppet_facts(MODERN.version),
        fallbacks=lambda core: module_facts(settings, core),
    )


def module_facts(settings: AgentSettings, core: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that widespread modules have in Ruby and that this agent knows without, from those of the machine. Blocks."""
    facts = {
        "service_provider": default_provider("service", core),
        "package_provider": default_provider("package", core),
        "puppet_vardir": read_setting(settings, "vardir"),
        "puppet_environmentpath": read_setting(settings, "environmentpath"),
        "puppet_server": settings.server,
        "root_home": pwd.getpwuid(0).pw_dir,
        "os_service_default": SERVICE_DEFAULT,
    }
    return {name: value for name, value in facts.items() if value is not None}


def default_provider(type_name: str, facts: Mapping[str, Any]) -> str | None:
    """Return the name of the provider that a resource of this type has on the machine with these facts; None: none fits."""
    return default_provider_name(type_name, platform_here(facts))


def _runner(settings: AgentSettings, limits: ExternalFactLimits) -> RubyFactRunner | None:
    if settings.ruby_facts == "false":
        return None
    if settings.ruby_facts == "facter":
        return facter_program(limits)
    program = ruby_program(settings)
    if not program:
        return _warn_without_ruby
    seconds = min(settings.ruby_timeout, settings.external_fact_timeout)  # the former leaves an hour for changes of resources

    async def run(request: RubyFactRequest) -> dict[str, Any]:
        from ..ruby.facts import RubyFactSettings, own_ruby

        return await own_ruby(
            RubyFactSettings(
                RubySettings(program, seconds, settings.ruby_answer, settings.ruby_memory),
                settings.external_fact_output,
                lambda name, section: read_setting(settings, name, section),
                default_provider,
            )
        )(request)

    return run


async def _warn_without_ruby(request: RubyFactRequest) -> dict[str, Any]:
    return warn_of_lacking("ruby", _INSTALL, request)
