"""The parts of a store behind its endpoints, put together from the settings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from shared.database.postgresql import DatabaseLimits
from shared.errors import ConfigError
from shared.filesystem.files import make_directory
from shared.process.supervision import Supervisor
from shared.queue.spool import Spool, SpoolLimits
from shared.settings import MasterSettings

from ..commands.commands import DatabaseUnavailable, ReceivedCommand
from ..database.engine import Database
from ..endpoints.admin import AdminEndpoint
from ..endpoints.administration import StoreAdministration
from ..endpoints.application import StoreApplication, StoreEndpoints
from ..endpoints.commands import CommandEndpoint
from ..endpoints.jolokia import MetricsEndpoint
from ..endpoints.metrics import StoreMetrics
from ..endpoints.queries.endpoint import QueryEndpoint
from ..endpoints.sealed import SealedEndpoint
from ..queries.questions import QueryLimits
from ..queries.sealed import SealedParameters
from ..queries.service import QueryService
from ..queue.processor import CommandProcessor, ProcessorLimits
from ..retention.retention import STEPS, Retention, RetentionSettings
from ..writing.writer import DatabaseWriter
from .population import count_population
from .tasks import CLEAN_UP

log = logging.getLogger("puppet.store")

_LONGEST_PAUSE = 30.0  # seconds between two attempts to open the database
_DAY = 86400.0  # seconds
_UP_FOR = 2.0  # seconds for which the database is not asked again whether it is there


def database_url(settings: MasterSettings) -> str:
    """Return the address of the database."""
    return f"sqlite:///{settings.store_dir / 'store.sqlite'}" if settings.store == "sqlite" else settings.store


class _NoDatabase:
    """Carries out commands as long as the database has not been opened: not at all."""

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        raise DatabaseUnavailable("the database has not been opened yet")


@dataclass(slots=True)
class Rooms:
    """
    The parts of one store.

    Attributes:
        supervisor: Supervises the task that removes expired data.
        attempted: Set once the database is open, or could not be opened for the first time.
    """

    settings: MasterSettings
    supervisor: Supervisor
    attempted: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _queries: QueryService | None = field(default=None, init=False)
    _processor: CommandProcessor | None = field(default=None, init=False)

    async def keep_open(self, application: StoreApplication, metrics: StoreMetrics) -> None:
        """
        Run until cancelled: open the database, give the application its endpoints, and carry out commands.

        Commands are taken at once; they wait for the database.

        Raises:
            ConfigError: The settings name no database that can be opened here.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(make_directory, settings.store_dir, mode=0o700, inherit=True)
            spool = await stack.enter_async_context(Spool(settings.store_dir / "queue", _spool_limits(settings)))
            processor = CommandProcessor(spool, _NoDatabase(), ProcessorLimits(payload_bytes=settings.store_max_command))
            application.commands = CommandEndpoint(processor, settings.store_max_command)
            stack.callback(setattr, application, "commands", None)
            database = await self._open_database()
            stack.push_async_callback(database.close)
            processor.writer = DatabaseWriter(database)
            limits = QueryLimits(timeout=settings.store_query_timeout, rows=settings.store_query_rows)
            queries = QueryService(database, limits, node_purge_ttl=settings.store_node_purge_ttl)
            retention = Retention(database, _retention_settings(settings))
            administration = StoreAdministration(database, queries, processor, retention)
            self._queries, self._processor = queries, processor
            application.endpoints = StoreEndpoints(
                QueryEndpoint(queries, settings.store_max_query),
                AdminEndpoint(administration, settings.max_request_body, settings.store_max_archive),
                MetricsEndpoint(metrics),
                SealedEndpoint(SealedParameters(database), settings.store_max_query),
                lambda: spool.depth,
                DatabaseCheck(database).is_up,
            )
            try:
                self.attempted.set()
                self.supervisor.start(CLEAN_UP, retention.run)
                log.info("The database is open; %d commands are pending", spool.depth)
                await processor.run()
            finally:
                application.endpoints = self._queries = self._processor = None
                await self.supervisor.stop(CLEAN_UP)

    async def _open_database(self) -> Database:
        """Return the database with its tables in their newest form, once it can be reached."""
        settings, pause, complaint = self.settings, 0.5, ""
        limits = DatabaseLimits(readers=settings.store_readers, writers=settings.store_writers)
        while True:
            try:
                database = await asyncio.to_thread(Database.open, database_url(settings), limits)
                try:
                    await database.migrate()
                except BaseException:
                    await database.close()
                    raise
                return database
            except ValueError as err:
                raise ConfigError(f"Could not open the store's database: {err}", hint="The setting is store.") from err
            except DatabaseUnavailable as err:
                self.attempted.set()
                if str(err) != complaint:
                    complaint = str(err)
                    log.error("The store's database cannot be opened yet: %s", err)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def population(self) -> Mapping[str, float]:
        """Return the numbers of nodes and resources; empty until the database is open."""
        return await count_population(self._queries) if self._queries is not None else {}

    def command_counts(self) -> Mapping[str, int]:
        """Return the numbers of commands by result, and under `depth` the number of pending ones."""
        if self._processor is None:
            return {}
        return {**self._processor.counts, "depth": self._processor.spool.depth}


def _spool_limits(settings: MasterSettings) -> SpoolLimits:
    return SpoolLimits(commands=settings.store_queue_commands, bytes=settings.store_queue_bytes)


def _retention_settings(settings: MasterSettings) -> RetentionSettings:
    interval = float(settings.store_gc_interval)
    separate_events = settings.store_event_ttl != settings.store_report_ttl
    return RetentionSettings(
        node_ttl=settings.store_node_ttl,
        node_purge_ttl=settings.store_node_purge_ttl,
        node_purge_limit=settings.store_node_purge_batch,
        report_ttl=settings.store_report_ttl,
        resource_events_ttl=settings.store_event_ttl if separate_events else None,
        intervals={**dict.fromkeys(STEPS, interval), "other": interval and max(interval, _DAY)},
    )


@dataclass(slots=True)
class DatabaseCheck:
    """Check whether a database can be reached, at most every two seconds, for all callers."""

    database: Database
    _is_up: bool = True
    _asked_at: float = float("-inf")
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def is_up(self) -> bool:
        """Return whether the database answers."""
        async with self._asking:
            if time.monotonic() - self._asked_at > _UP_FOR:
                try:
                    async with asyncio.timeout(10), self.database.reading(5) as connection:
                        await connection.exec_driver_sql("SELECT 1")
                    self._is_up = True
                except (DatabaseUnavailable, TimeoutError):
                    self._is_up = False
                self._asked_at = time.monotonic()
            return self._is_up
