"""Providers: how resources are read and changed on this machine. The folder that is called as a type makes those of that type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from shared.ral import Platform, Provider, Providers
from shared.ral.providers import ProviderFactories
from shared.types import builtin_types

from ..state.runlog import RunLog
from .provider_run import ProviderRun

__all__ = ["ProviderRun", "builtin_providers", "default_provider_name", "platform_here"]


def builtin_providers(run: ProviderRun) -> ProviderFactories:
    """Return for each type the function that makes its providers; nothing of a type is imported before a catalog needs it."""
    folders = {path.name for path in Path(__file__).parent.iterdir()}
    return {name: partial(_providers_of, name, run) for name in builtin_types() if name in folders}


def _providers_of(type_name: str, run: ProviderRun) -> Sequence[Provider[Any]]:
    made: Sequence[Provider[Any]] = import_module(f".{type_name}", __name__).providers(run)
    return made


def platform_here(facts: Mapping[str, Any]) -> Platform:
    """Return the platform by which providers are chosen: the machine's facts, and the features `posix` and, for root, `root`."""
    return Platform.here(facts)


def default_provider_name(type_name: str, platform: Platform) -> str | None:
    """Return the name of the provider that a resource of one of these types has on a platform; None: none fits."""
    usual, _ = Providers(_usual_providers(platform), platform).default(type_name)
    if usual is not None and usual.is_default(platform):
        return usual.name
    provider, _ = Providers(builtin_providers(ProviderRun(RunLog(), platform=platform)), platform).default(type_name)
    return provider.name if provider is not None else None


def _usual_providers(platform: Platform) -> Mapping[str, Callable[[], Sequence[Provider[Any]]]]:
    """Return the providers that are preferred to all others where they are meant for the platform, so that no others need be loaded."""
    if str(platform.fact("os.family")).lower() != "debian":
        return {}

    def package() -> Sequence[Provider[Any]]:
        from .package.apt import Apt

        return [Apt()]

    def service() -> Sequence[Provider[Any]]:
        from .service.systemd import Systemd

        return [Systemd()]

    return {"package": package, "service": service}
