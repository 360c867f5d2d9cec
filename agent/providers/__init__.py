"""Providers: how resources are read and changed on this machine, one folder a type; `systems` and `lines` list those of most types."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared.ral import Platform, Provider, Providers, Type
from shared.ral.providers import ProviderFactories

from ..state.runlog import RunLog

if TYPE_CHECKING:
    from .file.context import FileContext


def builtin_providers(
    *,
    log: RunLog,
    files: Callable[[], FileContext] | None = None,
    providers: Callable[[], Providers] | None = None,
    types: Mapping[str, type[Type]] | None = None,
    platform: Platform | None = None,
) -> ProviderFactories:
    """
    Return for each type the function that creates its providers; nothing is imported before a catalog needs it.

    Args:
        files: the run's context for the type `file`; None: files cannot be managed.
        providers: returns the run's providers; None: nothing can be purged.
        types: the types that can be purged, by name.
        platform: the machine, where a provider's abilities depend on it; None: what PATH shows.
    """

    def notify() -> Sequence[Provider[Any]]:
        from .notify.log import LogMessage

        return [LogMessage(log)]

    def exec_() -> Sequence[Provider[Any]]:
        from .exec.posix import ExecContext, PosixExec, ShellExec

        context = ExecContext(log)
        return [PosixExec(context), ShellExec(context)]

    def file() -> Sequence[Provider[Any]]:
        from .file.posix import PosixFile

        return [PosixFile(files())] if files else []

    def tidy() -> Sequence[Provider[Any]]:
        from .tidy.posix import TidyFinder

        return [TidyFinder(time.time)]

    def resources() -> Sequence[Provider[Any]]:
        from .resources.purging import ResourcesPurge

        return [ResourcesPurge(providers, types or {})] if providers else []

    from .lines import line_providers
    from .systems import system_providers

    systems = system_providers(platform or Platform())
    return {**systems, "notify": notify, "exec": exec_, "file": file, "tidy": tidy, "resources": resources, **line_providers(log, files)}


def platform_here(facts: Mapping[str, Any]) -> Platform:
    """Return the platform by which providers are chosen: the machine's facts, and the features `posix` and, for root, `root`."""
    return Platform.here(facts)
