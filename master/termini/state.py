"""The termini on the database that masters share, as the setting `state` names it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.errors import ConfigError
from shared.filesystem.checksums import Algorithm
from shared.filesystem.textdiff import Differ
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.queue.spool import Spool
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from .bucket import report_to_log

if TYPE_CHECKING:
    from shared.state.database import StateDatabase

    from ..reports.database import DatabaseReports
    from ..reports.pending import PendingReports
    from .database import DatabaseTerminus
    from .database_bucket import DatabaseBucket

POSTGRESQL = "postgresql"
"""The name of these termini, for each indirection."""


@dataclass(slots=True)
class StateTermini:
    """
    Makes the termini on the database of the setting `state`, whose libraries are loaded when the first one is made.

    Args:
        state: That of a master. Without it each terminus opens connections when it needs them, as suits commands.
        spool: Where reports wait for the database; None: nowhere.

    Attributes:
        pending_reports: The processor that was made, if there is a spool.
        buckets: The buckets that were made.
    """

    settings: MasterSettings
    state: SharedState | None = None
    spool: Spool | None = None
    pending_reports: PendingReports | None = field(default=None, init=False)
    buckets: list[DatabaseBucket] = field(default_factory=list, init=False)

    def facts(self) -> DatabaseTerminus[Facts]:
        from shared.state.tables import facts

        from .database import DatabaseTerminus

        return DatabaseTerminus(FACTS, facts, self.database())

    def nodes(self, *, is_record: bool = False) -> DatabaseTerminus[Node]:
        from shared.state.tables import nodes

        from .database import DatabaseRecord, DatabaseTerminus

        return (DatabaseRecord if is_record else DatabaseTerminus)(NODE, nodes, self.database())

    def reports(self) -> DatabaseReports | PendingReports:
        from ..reports.database import DatabaseReports
        from ..reports.pending import PendingReports

        store = DatabaseReports(self.database())
        if self.spool is None:
            return store
        self.pending_reports = PendingReports(store, self.spool)
        return self.pending_reports

    def bucket(self, kind: Algorithm) -> DatabaseBucket:
        """Return the filebucket of one checksum type."""
        from .database_bucket import DatabaseBucket

        settings = self.settings
        bucket = DatabaseBucket(
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
        self.buckets.append(bucket)
        return bucket

    def database(self) -> StateDatabase:
        """Return the database; ConfigError when the setting names none."""
        state = self.state or SharedState.at(self.settings.state, keep_alive=False)
        if state is None:
            raise ConfigError(
                f"The terminus {POSTGRESQL} needs a database, and the setting state names none",
                hint="state = postgresql://USER@HOST/DATABASE",
            )
        return state.database
