"""The services with which the providers of one run are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.ral import Platform, Providers, Type

from ..state.runlog import RunLog

if TYPE_CHECKING:
    from .file.context import FileContext
    from .parsed.storage import FlatFiles


@dataclass(slots=True)
class ProviderRun:
    """
    One run, as the folder of each type gets it to make its providers.

    Attributes:
        make_files: Makes the context that all share which write files; None: files cannot be managed.
        providers: Returns the run's providers; None: nothing can be purged.
        types: The types that can be purged, by name.
        platform: The machine, where a provider's abilities depend on it.
    """

    log: RunLog
    make_files: Callable[[], FileContext] | None = None
    providers: Callable[[], Providers] | None = None
    types: Mapping[str, type[Type]] = field(default_factory=dict)
    platform: Platform = field(default_factory=Platform)
    _files: FileContext | None = None

    def files(self) -> FileContext | None:
        """Return the context that all of them share; None: files cannot be managed."""
        if self._files is None and self.make_files is not None:
            self._files = self.make_files()
        return self._files

    def flat(self, *public: str, mode: int = 0o600) -> FlatFiles:
        """Return the storage of files that are read and written whole; `public` are the paths that everybody may read."""
        from .parsed.storage import FlatFiles

        files = self.files()
        return FlatFiles(files.buckets if files else None, self.log.log, mode, frozenset(public))

    def show_diff(self) -> bool:
        files = self.files()
        return files is not None and files.show_diff
