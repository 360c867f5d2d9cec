"""The state that a master shares with others: the database and the notices, opened from the setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from .database import StateDatabase
    from .notices import Notices


@dataclass(frozen=True, slots=True)
class SharedState:
    """The database of several masters, and the notices of its changes."""

    database: StateDatabase
    notices: Notices

    @classmethod
    def at(cls, place: str, *, keep_alive: bool = True) -> SharedState | None:
        """
        Return the state at `postgresql://…`; None for `files`. Nothing is connected yet. ConfigError: a library is not installed.

        Args:
            keep_alive: False: connections end with their transactions, as suits commands.
        """
        if place == "files":
            return None
        try:
            # SQLAlchemy takes 10 MB, which a master with files does without.
            from .database import StateDatabase
            from .notices import Notices
        except ImportError as err:
            raise ConfigError(
                f"The setting state needs a library that is missing: {err}", hint="pip install 'bunraku[postgresql]'"
            ) from err
        return cls(StateDatabase.open(place, keep_alive=keep_alive), Notices(place))
