"""What a master knows of the rows about code, for how long it may rely on that, and where it has the versions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from environments.versions import find_version, place_of, versions_folder

from .rows import BEAT, TRUST, Current, Snapshot, Version

LONGEST_RUN = 600.0
"""Seconds after a switch of which runs may be under way that began before it, as far as masters without the database assume."""


@dataclass(eq=False, repr=False)
class CodeKnowledge:
    """
    The last snapshot of the rows, for other threads to read.

    While it is certain, no environment can have another version than the snapshot says. For an environment that no deployment is
    pending for, that is so until TRUST seconds after the master's last sign of life: others switch it when this master has answered,
    for which it has to have seen the pending deployment, or when they count it as dead, DEAD seconds after that sign.

    Args:
        environmentpath: The folders with the environments.
        clock: Returns monotonic seconds.
    """

    environmentpath: tuple[str, ...]
    clock: Callable[[], float] = time.monotonic
    snapshot: Snapshot | None = field(default=None, init=False)
    _pending: frozenset[str] = field(default=frozenset(), init=False)
    _certain_until: float = field(default=float("-inf"), init=False)
    _switched: Mapping[str, float] = field(default_factory=dict, init=False)  # when, by environment
    _learned: float = field(default=float("-inf"), init=False)
    _lost_until: float = field(default=float("-inf"), init=False)

    def learn(self, snapshot: Snapshot, asked_at: float) -> None:
        """Keep a snapshot that was read after a sign of life, which was given after `asked_at`."""
        # In this order, since others read it meanwhile: what is not certain any more has to be so first.
        self._pending |= {each.environment for each in snapshot.pending}
        self.snapshot = snapshot
        self._switched = {name: asked_at - age for name, age in snapshot.ages.items()}
        self._pending = frozenset(each.environment for each in snapshot.pending)
        self._learned, self._lost_until = asked_at, float("-inf")
        self._certain_until = asked_at + TRUST

    def current(self, environment: str) -> Current | None:
        """Return the current version of an environment, as far as is known; None when masters share none of it."""
        current = self.snapshot.current.get(environment) if self.snapshot is not None else None
        return current if current is not None and current.version is not None else None

    def is_shared(self, environment: str) -> bool:
        """Return whether masters share an environment, or are about to."""
        return self.current(environment) is not None or environment in self._pending

    def is_certain(self, environment: str) -> bool:
        """Return whether `current` is right beyond doubt."""
        return environment not in self._pending and self.clock() < self._certain_until

    def lose(self) -> None:
        """Note that the database is away; the next requests need not wait to hear it, until it was reached again or a moment has passed."""
        self._lost_until = self.clock() + BEAT

    @property
    def is_lost(self) -> bool:
        """Whether the database was away a moment ago."""
        return self.clock() < self._lost_until

    def may_have_two(self, environment: str) -> bool:
        """
        Return whether runs with another version than the current one may be under way.

        It is so during a rollout, after a switch, and while one may come: a pending one that this master has not heard the end of may have
        happened.
        """
        if self.snapshot is not None and environment in self.snapshot.rolling:
            return True
        since = self._learned if environment in self._pending else self._switched.get(environment, float("-inf"))
        return self.clock() - since < LONGEST_RUN

    def is_elsewhere(self, environment: str, version: str) -> bool:
        """Return whether masters should have a version, as far as is known, or may have got it since this one looked."""
        wanted = self.snapshot.wanted if self.snapshot is not None else ()
        is_wanted = any((each.environment, each.version) == (environment, version) for each in wanted)
        return is_wanted or (self.is_shared(environment) and self.clock() >= self._certain_until)

    def place(self, environment: str) -> Path:
        """Return where an environment is, or would be. Blocks, briefly."""
        return place_of(environment, self.environmentpath)

    def folder(self, environment: str, version: str) -> str:
        """Return the folder that a version has, or would have, here."""
        return os.path.realpath(versions_folder(self.place(environment)) / version)

    def has(self, version: Version) -> bool:
        """Return whether a version is stored here. Blocks, briefly."""
        return find_version(str(self.place(version.environment)), version.version) is not None

    def leads_to(self, environment: str) -> str:
        """Return the version that an environment's link leads to; '' for none, or another kind of path. Blocks, briefly."""
        place = self.place(environment)
        target = Path(os.path.realpath(place))
        return target.name if place.is_symlink() and target.parent == Path(os.path.realpath(versions_folder(place))) else ""
