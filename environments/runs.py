"""
The version of an environment that each agent's run uses, so that no run gets parts of two.

A run consists of a client's requests from its plugin sync until the next run begins: plugins, the catalog, files. The version that the
environment is at the first of these requests is the version of all of them, as long as it is stored.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from shared.errors import NotFound

from .versions import version_behind

MAX_RUNS = 20_000
"""Runs that are known at the same time; the oldest are forgotten first, and continue with the version that is current."""


VersionForRun = Callable[[str, str], str]
"""Returns the version (its folder) that a new run of a client gets in an environment; '' when that is not a link. Blocks, briefly."""


class Runs(Protocol):
    """The versions of the runs under way; its methods block."""

    @property
    def version_for(self) -> VersionForRun:
        """The rule for new runs."""

    def for_listing(self, client: str, environment: str, what: str) -> str:
        """Return the version in which a client lists a mount of plugins; '' when the environment is not a link."""

    def for_catalog(self, client: str, environment: str, transaction: str = "") -> str:
        """
        Return the version for a client's catalog; '' when the environment is not a link.

        Args:
            transaction: The agent's own name of its run; '' when it has none. A catalog that it requests again, because it was not
                answered, belongs to the same run.
        """

    def for_file(self, client: str, environment: str) -> str:
        """Return the version for a client's file; '' when the environment is not a link."""

    def is_elsewhere(self, environment: str, version: str) -> bool:
        """Return whether other masters may have a version that this one lacks, and will have soon."""


def current_versions(root_of: Callable[[str], str]) -> VersionForRun:
    """Return the rule by which each new run gets the version that its environment's link leads to; see `Environments.root_of`."""

    def version_for(client: str, environment: str) -> str:
        try:
            return version_behind(root_of(environment))
        except NotFound:
            return ""

    return version_for


@dataclass(slots=True)
class _Run:
    version: str
    began: float
    listed: set[str] = field(default_factory=set)
    has_catalog: bool = False
    transaction: str = ""


@dataclass(eq=False, repr=False)
class RunVersions:
    """
    The versions of the runs under way. Its methods may be called by several threads at once; they block briefly to read the disk.

    Args:
        version_for: Decides on the version of each new run.
        lifetime: Seconds after which a run counts as ended, less than the time for which replaced versions are stored.
    """

    version_for: VersionForRun
    lifetime: float
    clock: Callable[[], float] = time.monotonic
    _runs: OrderedDict[tuple[str, str], _Run] = field(default_factory=OrderedDict, init=False)
    # Listings run in threads; two of them must not begin two runs of one client.
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def for_listing(self, client: str, environment: str, what: str) -> str:
        """
        Return the version in which a client lists a mount of plugins; '' when the environment is not a link.

        A run lists each mount once, before its catalog: a second listing, or one after a catalog, begins a new run.
        """
        with self._lock:
            run = self._under_way(client, environment)
            if run is None or run.has_catalog or what in run.listed:
                run = self._begin(client, environment)
            if run is None:
                return ""
            run.listed.add(what)
            return run.version

    def for_catalog(self, client: str, environment: str, transaction: str = "") -> str:
        """See Runs."""
        with self._lock:
            run = self._under_way(client, environment)
            if run is None or (run.has_catalog and (not transaction or run.transaction != transaction)):
                run = self._begin(client, environment)
            if run is None:
                return ""
            run.has_catalog, run.transaction = True, transaction
            return run.version

    def for_file(self, client: str, environment: str) -> str:
        """Return the version for a client's file: that of its run, else the current one; '' when the environment is not a link."""
        with self._lock:
            run = self._under_way(client, environment)
        return run.version if run is not None else self.version_for(client, environment)

    def is_elsewhere(self, environment: str, version: str) -> bool:
        """See Runs: other masters have versions of their own."""
        return False

    def _under_way(self, client: str, environment: str) -> _Run | None:
        run = self._runs.get((client, environment))
        # The version may have been removed by hand; then the current one is better than an error.
        if run is not None and (self.clock() - run.began > self.lifetime or not Path(run.version).is_dir()):
            del self._runs[client, environment]
            return None
        return run

    def _begin(self, client: str, environment: str) -> _Run | None:
        self._runs.pop((client, environment), None)
        version = self.version_for(client, environment)
        if not version:
            return None
        run = self._runs[client, environment] = _Run(version, self.clock())
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return run
