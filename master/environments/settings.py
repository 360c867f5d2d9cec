"""The part of the master's settings that environments and manifests see."""

from __future__ import annotations

from shared.data.durations import ttl
from shared.settings import MasterSettings

from ..ca.storage.store import CaFiles
from ..ruby import find_ruby
from .directories import EnvironmentSettings


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
        compiler={
            "strict": settings.strict,
            "strict_variables": settings.strict_variables,
            "strict_hostname_checking": settings.strict_hostname_checking,
            "disable_warnings": list(settings.disable_warnings),
            "hiera_config": str(settings.site_hiera_config),
            "data_binding_terminus": settings.data_binding_terminus,
            "storeconfigs": settings.storeconfigs,
            "storeconfigs_backend": settings.storeconfigs_backend,
            "native_templates": settings.native_templates,
            "certname": settings.certname,
            "confdir": str(settings.confdir),
            "vardir": str(settings.vardir),
            "codedir": str(settings.codedir),
            "ssldir": str(settings.ssldir),
            "libdir": str(settings.libdir),
        },
    )
