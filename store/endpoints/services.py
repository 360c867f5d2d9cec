"""What the endpoints need of those who carry out commands, clean up and count."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from ..commands.submission import Submission
from ..jsontext import Json
from ..retention.retention import Step


class CommandReceipt(Protocol):
    """What became of a command that was submitted. It is on disk, and will be carried out whatever happens to this process."""

    @property
    def uuid(self) -> str: ...

    @property
    def has_waited(self) -> bool:
        """Whether its sender waited for its end."""
        ...

    @property
    def is_processed(self) -> bool:
        """Whether it was carried out or discarded meanwhile."""
        ...

    @property
    def error(self) -> str | None:
        """Why it was discarded."""
        ...


class CommandIntake(Protocol):
    """Who takes commands."""

    async def submit(self, submission: Submission) -> CommandReceipt:
        """Put a command into the queue; wait for its end as long as the submission says; raise Unavailable or OutOfSpace."""
        ...


class SealedLookup(Protocol):
    """Who has the sealed parameters of resources."""

    async def find(self, hashes: Sequence[str]) -> Mapping[str, Json]:
        """Return those of the resources with these hashes; nothing for a resource without any; raise DatabaseUnavailable."""
        ...


class Administration(Protocol):
    """Who does what administrators ask for."""

    async def clean(self, steps: Sequence[Step], purge_limit: int | None) -> None:
        """Remove what has ended, of at most so many nodes; raise CleaningInProgress."""
        ...

    async def delete(self, certname: str) -> None:
        """Remove a node with all that is stored of it; nothing happens for a node that is not known."""
        ...

    async def summary(self) -> Mapping[str, Json]:
        """Return the numbers of rows of the tables, for whoever looks into a problem."""
        ...

    def export(self) -> AsyncIterator[bytes]:
        """Yield an archive of everything that is stored, as PuppetDB's `export` writes it."""
        ...

    async def load(self, archive: AsyncIterator[bytes]) -> None:
        """Submit the commands of such an archive; raise BadData for what is none."""
        ...
