"""A master's whole state, moved to the masters' database or back to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from ca.configured import ca_place, ca_store
from ca.storage.moving import move_ca
from shared.errors import Conflict
from shared.filesystem.bucket import Bucket
from shared.filesystem.checksums import Algorithm, algorithm
from shared.indirector.routes import read_routes
from shared.indirector.termini import Json, Yaml
from shared.models.facts import FACTS
from shared.models.node import NODE
from shared.process.daemon import PidFile
from shared.queue.segments import SUFFIX
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from ..rollouts.rows import RolloutRows
from ..rollouts.storage import RolloutFiles
from ..termini.state import POSTGRESQL, StateTermini
from .collections import BucketContents, Instances, ReportFiles, ReportRows
from .move import Collection, MovedKind, MoveProgress, move_collection

_FILE_TERMINI = {"yaml": Yaml, "json": Json}


class StateMove:
    """
    The move of a master's state between its files and a database.

    Args:
        settings: The master's. Their own `state` does not matter.
        address: The database, as in the setting `state`.
        to_files: True: from the database to files.
    Raises:
        ConfigError: A library is missing.
    """

    def __init__(self, settings: MasterSettings, address: str, *, to_files: bool) -> None:
        self.files = settings.model_copy(update={"state": "files"})
        self.shared = settings.model_copy(update={"state": address})
        self.to_files = to_files
        state = SharedState.at(address, keep_alive=False)
        assert state is not None
        self.state = state
        self.termini = StateTermini(self.shared, state)

    async def run(self, progress: MoveProgress) -> list[MovedKind]:
        """
        Move everything but the CA; return what was moved.

        Raises:
            Conflict: See `require_silence`; or the target differs at the end.
            StateAway: The database is away. The same call goes on later.
        """
        self.require_silence()
        return [await move_collection(*self._ordered(pair), progress) for pair in self._collections()]

    def move_ca(self, say: Callable[[str], None]) -> None:
        """Move the CA, if this master has one; the source cannot be used afterwards. Blocks. Raises as `ca.storage.moving.move_ca`."""
        if not self.files.ca or ca_place(self.shared) == "files":
            return
        folder, database = ca_store(self.files), ca_store(self.shared, self.state)
        with closing(folder), closing(database):
            source, target = self._ordered((folder, database))
            if not source.is_retired() and not source.prepare() and not target.prepare():
                return  # the first start of a master makes one
            move_ca(source, target, say)

    def require_silence(self) -> None:
        """Raise Conflict when a master of this host runs, when something waits here for the database, or in a rollout. Blocks."""
        if (pid := PidFile(self.files.pidfile).running()) is not None:
            raise Conflict(f"A master runs on this host, as process {pid}", hint="Stop it, move the state, change the setting, start it.")
        queue = self.files.state_queue
        if any(queue.glob(f"reports/*{SUFFIX}")) or any(queue.glob("bucket/**/contents")):
            raise Conflict(
                f"Reports or files in {queue} wait for the database",
                hint="Start the master with it, until its log says that they are stored.",
            )
        rollouts = RolloutRows(self.state.database, self.files.certname) if self.to_files else RolloutFiles(self.files.environmentpath)
        for environment in rollouts.environments():
            stored = rollouts.load(environment)
            if stored is not None and stored.rollout.is_active:
                message = f"A rollout of {environment} is {stored.rollout.status}, which no other place would know of"
                raise Conflict(message, hint=f"Let it end, or abort it: puppet rollout abort {environment}.")

    def _ordered(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return source and target of a pair: files, database."""
        return (pair[1], pair[0]) if self.to_files else pair

    def _collections(self) -> Iterator[tuple[Collection[Any], Collection[Any]]]:
        """Yield files and database of each kind that is not kept elsewhere."""
        settings, routes = self.files, read_routes(self.files.route_file, "master")

        def is_in_state(name: str) -> bool:
            route = routes.get(name)
            return route is None or route.terminus in (None, POSTGRESQL, "processor")

        facts = settings.facts_terminus or "yaml"
        if is_in_state(FACTS.name) and facts in _FILE_TERMINI:
            folder = (settings.yamldir if facts == "yaml" else settings.server_datadir) / "facts"
            files = _FILE_TERMINI[facts](FACTS, folder)
            yield Instances("facts", files, str(folder)), Instances("facts", self.termini.facts(), _DATABASE)
        if is_in_state(NODE.name):
            folder = settings.yamldir / "node"
            yield Instances("nodes", Yaml(NODE, folder), str(folder)), Instances("nodes", self.termini.nodes(), _DATABASE)
        if is_in_state("report"):
            yield ReportFiles(settings.reportdir), ReportRows(self.state.database)
        if is_in_state("file_bucket_file"):
            for kind in _algorithms(settings):
                bucket = Bucket(settings.bucketdir, algorithm=kind, quota=settings.bucket_quota, max_file=settings.max_bucket_body)
                yield BucketContents(bucket, str(settings.bucketdir)), BucketContents(self.termini.bucket(kind), _DATABASE)


_DATABASE = "the database"


def _algorithms(settings: MasterSettings) -> Sequence[Algorithm]:
    digest = algorithm(settings.digest_algorithm)
    return (digest, "md5") if digest != "md5" else ("md5",)
