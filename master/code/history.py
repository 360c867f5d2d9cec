"""The versions that an environment has had, in their order, and the rules about going back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class DeployedVersion:
    """
    One version of an environment.

    Attributes:
        code_id: Its name, and the code id of its catalogs.
        record: What was written down when it was deployed; of a folder that was there before only when it was adopted.
        replaced: When it was last replaced, in seconds since the epoch; None when it never was.
        current: Whether the environment is this version now.
    """

    code_id: str
    record: dict[str, Any]
    replaced: float | None
    current: bool

    def to_data(self) -> dict[str, Any]:
        """Return the version as `--json` prints it."""
        return {
            "version": self.code_id,
            "current": self.current,
            **{name: self.record.get(name) for name in ("commit", "ref", "repository", "deployed_at")},
        }


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """The versions of an environment, the one that was deployed first at the beginning."""

    environment: str
    versions: Sequence[DeployedVersion]

    @property
    def current(self) -> DeployedVersion | None:
        """The current version; None when the environment is not deployed."""
        return next((version for version in self.versions if version.current), None)

    @property
    def record(self) -> dict[str, Any]:
        """The record of the current version; an empty one when there is none."""
        return self.current.record if self.current is not None else {}

    def check_rollback(self, commit: str) -> None:
        """Raise Conflict when the environment was rolled back, and a commit was deployed to it before that."""
        if self.current is None or self.versions[-1].current:
            return  # nothing was deployed, or what was deployed last is what counts
        if any(version.record.get("commit") == commit and not version.current for version in self.versions):
            raise Conflict(
                f"{self.environment} was rolled back to {self.current.code_id}, and {commit} was deployed before that",
                hint=f"A newer commit ends the rollback, and so does: puppet deploy {self.environment}.",
            )

    def before_current(self) -> str:
        """Return the version that was deployed before the current one; raise NotFound when none is stored."""
        place = next((place for place, version in enumerate(self.versions) if version.current), 0)
        if place == 0:
            raise NotFound(f"No version of {self.environment} before the current one is stored", hint="See puppet deploy --list.")
        return self.versions[place - 1].code_id

    def require(self, code_id: str) -> str:
        """Return the name of a stored version that begins with the given text; raise NotFound."""
        names = [version.code_id for version in self.versions]
        matching = [code_id] if code_id in names else [name for name in names if name.startswith(code_id)]
        if len(matching) != 1 or not code_id:
            what = "No version" if not matching else "More than one version"
            raise NotFound(f"{what} of {self.environment} that is stored begins with {code_id[:80]!r}", hint="See puppet deploy --list.")
        return matching[0]
