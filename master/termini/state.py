"""The termini on the database that masters share, as the setting `state` names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import ConfigError
from shared.filesystem.checksums import Algorithm
from shared.filesystem.textdiff import Differ
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from .bucket import report_to_log

if TYPE_CHECKING:
    from shared.state.database import StateDatabase

    from ..reports.database import DatabaseReports
    from .database import DatabaseTerminus
    from .database_bucket import DatabaseBucket

POSTGRESQL = "postgresql"
"""The name of these termini, for each indirection."""


@dataclass(frozen=True, slots=True)
class StateTermini:
    """
    Makes the termini on the database of the setting `state`, whose libraries are loaded when the first one is made.

    Args:
        state: That of a master. Without it each terminus opens connections when it needs them, as suits commands.
    """

    settings: MasterSettings
    state: SharedState | None = None

    def facts(self) -> DatabaseTerminus[Facts]:
        from shared.state.tables import facts

        from .database import DatabaseTerminus

        return DatabaseTerminus(FACTS, facts, self.database())

    def nodes(self, *, is_record: bool = False) -> DatabaseTerminus[Node]:
        from shared.state.tables import nodes

        from .database import DatabaseRecord, DatabaseTerminus

        return (DatabaseRecord if is_record else DatabaseTerminus)(NODE, nodes, self.database())

    def reports(self) -> DatabaseReports:
        from ..reports.database import DatabaseReports

        return DatabaseReports(self.database())

    def bucket(self, kind: Algorithm) -> DatabaseBucket:
        """Return the filebucket of one checksum type."""
        from .database_bucket import DatabaseBucket

        settings = self.settings
        return DatabaseBucket(
            settings.state_queue / "bucket" / kind,
            algorithm=kind,
            quota=settings.bucket_quota,
            max_file=settings.max_bucket_body,
            report=report_to_log,
            differ=Differ.of(settings),
            database=self.database(),
            pending_entries=settings.state_queue_entries,
            pending_bytes=settings.state_queue_bytes,
        )

    def database(self) -> StateDatabase:
        """Return the database; ConfigError when the setting names none."""
        state = self.state or SharedState.at(self.settings.state, keep_alive=False)
        if state is None:
            raise ConfigError(
                f"The terminus {POSTGRESQL} needs a database, and the setting state names none",
                hint="state = postgresql://USER@HOST/DATABASE",
            )
        return state.database
