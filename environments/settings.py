"""The part of the master's settings that environments and manifests see."""

from __future__ import annotations

from certs.files.cadir import CaFiles
from shared.data.durations import ttl
from shared.settings import AgentSettings, MasterSettings
from shared.settings.in_manifests import values_in_manifests

from .directories import EnvironmentSettings
from .ruby import find_ruby


def environment_settings(settings: MasterSettings) -> EnvironmentSettings:
    """Return the part of the settings that environments and manifests see."""
    return EnvironmentSettings.of(
        settings,
        environment_timeout=ttl(settings.environment_timeout),
        static_catalogs=settings.static_catalogs,
        read_roots=tuple(map(str, settings.compile_read_roots)),
        hidden=tuple(map(str, (settings.privatekeydir, CaFiles.at(settings.cadir).cakey, settings.cadir / "private"))),
        programs=settings.compile_programs,
        ruby=find_ruby(settings.ruby, restricted=bool(settings.compile_read_roots) or not settings.compile_programs),
        ruby_timeout=settings.ruby_timeout,
        ruby_answer=settings.ruby_answer,
        compiler=values_in_manifests(settings, AgentSettings) | {"hiera_config": str(settings.site_hiera_config)},
    )
