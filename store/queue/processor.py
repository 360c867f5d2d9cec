"""Carries out the commands of the queue, in their order, until each is stored or discarded."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from shared.queue.segments import QueuedCommand, SegmentDamaged
from shared.queue.spool import Spool

from ..commands.checked_catalogs import CheckedCatalogs
from ..commands.commands import (
    Command,
    CommandWriter,
    DatabaseUnavailable,
    PayloadRejected,
    ReceivedCommand,
    ReplaceCatalog,
    ReplaceFacts,
    Unfinished,
)
from ..commands.payloads import decode_payload, parse_packed, parse_payload
from ..commands.submission import Submission

log = logging.getLogger("puppet.store")


@dataclass(frozen=True, slots=True)
class ProcessorLimits:
    """
    The limits of carrying out commands.

    Attributes:
        batch_commands: The commands that are written in one transaction at most.
        batch_bytes: The bytes of their payloads, decoded, unless a single one is longer.
        payload_bytes: The bytes of one payload, decoded.
        attempts: How often a command is tried that fails while others are stored, or that fails like all others.
        shortest_delay: The seconds before the first attempt after a failure; each further delay is twice as long.
        longest_delay: The seconds before an attempt at most.
        waiters: The clients that may wait for their commands at a time.
        longest_wait: The seconds that a client may wait.
    """

    batch_commands: int = 100
    batch_bytes: int = 16 * 2**20
    payload_bytes: int = 128 * 2**20
    attempts: int = 10
    shortest_delay: float = 0.1
    longest_delay: float = 30.0
    waiters: int = 1000
    longest_wait: float = 600.0


_SUSPICIOUS = 3
"""After this many failed commands in a row, the fault may be the database's rather than theirs."""

_PROBES = 3
"""The number of commands that may find the database unavailable before the others wait for the next pass."""

_BATCHES_IN_MEMORY = 4
"""The bytes of payloads that wait in memory while nothing can be stored, in batches."""

_WHOLE_BATCHES = 3
"""The number of outages after which the commands of a batch are tried one by one."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """
    The result of a command for its client.

    Attributes:
        has_waited: True if the client waited for the command.
        is_processed: True if the command was carried out, or discarded, in that time.
        error: Why the command was discarded.
    """

    uuid: str
    has_waited: bool = False
    is_processed: bool = False
    error: str | None = None


@dataclass(slots=True)
class _Task:
    """
    A command in progress.

    Attributes:
        command: Its content; None when it has no effect or is invalid.
        size: The bytes of its payload, decoded.
        error: Why it is to be discarded.
        failed_pass: The number of the pass in which it was last tried alone and not stored; 0 where it was not.
        failures: How many of these failures are likely its own fault.
        is_unfinished: Whether a part of it has been written, or waits for another command of which this is so.
    """

    queued: QueuedCommand
    command: Command | None
    size: int
    error: str | None = None
    failed_pass: int = 0
    failures: int = 0
    is_unfinished: bool = False


@dataclass(frozen=True, slots=True)
class _Failure:
    """A command that was tried alone, the error, and whether another one was stored shortly before."""

    task: _Task
    error: Exception
    is_after_success: bool


@dataclass(slots=True)
class CommandProcessor:
    """
    Takes the commands of the queue and has them written, many in one transaction.

    While the database is away all commands wait. A command that cannot be stored although others can is discarded, and so is one that says
    nothing that can be stored. Commands of a node are stored in the order of their receipt.

    Attributes:
        counts: Of commands: `seen`, `processed`, `fatal` (invalid, or impossible to store), `retried`, `discarded` (moved to that
            folder), `ignored` (the queue had a newer one).
    """

    spool: Spool
    writer: CommandWriter
    limits: ProcessorLimits = field(default_factory=ProcessorLimits)
    counts: Counter[str] = field(default_factory=Counter, init=False)
    _tasks: list[_Task] = field(default_factory=list, init=False)  # taken, not yet stored or discarded; in the order of receipt
    _unread: list[QueuedCommand] = field(default_factory=list, init=False)  # taken, their payloads not yet read
    _waiters: dict[str, asyncio.Future[str | None]] = field(default_factory=dict, init=False)
    _checked_catalogs: CheckedCatalogs = field(default_factory=CheckedCatalogs, init=False)
    _passes: int = field(default=0, init=False)
    _outages: int = field(default=0, init=False)  # attempts since the database was last there
    _suspicions: int = field(default=0, init=False)  # commands that were discarded since one was stored

    async def submit(self, submission: Submission) -> Receipt:
        """
        Put a command into the queue, and wait until it is carried out, for at most the time that its sender wants.

        If it raises an error of `Spool.add`, the command is not accepted.
        """
        uuid = str(uuid4())
        seconds = submission.seconds_to_wait
        # Beyond the limit nobody waits; the sender learns that the command is only accepted.
        if seconds is None or len(self._waiters) >= self.limits.waiters:
            await self.spool.add(submission, uuid)
            return Receipt(uuid, has_waited=seconds is not None)
        # Before the command is added: it may be done before the next line runs.
        outcome = self._waiters[uuid] = asyncio.get_running_loop().create_future()
        try:
            await self.spool.add(submission, uuid)
            async with asyncio.timeout(min(seconds, self.limits.longest_wait)):
                return Receipt(uuid, has_waited=True, is_processed=True, error=await outcome)
        except TimeoutError:
            return Receipt(uuid, has_waited=True)
        finally:
            del self._waiters[uuid]

    async def run(self) -> None:
        """Carry out commands for ever. What is under way when this is cancelled is carried out after the next start."""
        delay = 0.0
        while True:
            if not self._tasks and not self._unread:
                await self.spool.wait()
            # With enough failed ones at hand, reading more would only fill the memory.
            has_read = len(self._tasks) > self.limits.batch_commands or await self._read_more()
            before = len(self._tasks)
            await self._attempt()
            if len(self._tasks) < before:
                delay = 0.0
            if any(task.is_unfinished for task in self._tasks):
                delay = 0.0
            elif self._tasks or not has_read:
                # A database that comes back is found within half a minute, and not asked all the time.
                delay = min(max(delay * 2, self.limits.shortest_delay), self.limits.longest_delay)
                await asyncio.sleep(delay)

    async def _read_more(self) -> bool:
        """Read the payloads of the next commands; return whether the disk lets them be read."""
        if not self._unread:
            self._unread = self.spool.take(self.limits.batch_commands)
            self.counts["seen"] += len(self._unread)
        # Those that fail alone do not keep out others, which show whether the database is there.
        fresh_size = sum(task.size for task in self._tasks if not task.failed_pass)
        large = max((task.size for task in self._tasks if task.is_unfinished), default=0)  # it keeps out nobody
        size = sum(task.size for task in self._tasks) - large
        room = min(self.limits.batch_bytes - fresh_size, _BATCHES_IN_MEMORY * self.limits.batch_bytes - size)
        if not self._unread or room <= 0:
            return True
        try:
            tasks = await asyncio.to_thread(self._parse, self._unread, room)
        except OSError as err:
            log.error("The queue cannot be read just now: %s", err)
            return False
        self._unread = self._unread[len(tasks) :]
        self._tasks += tasks
        return True

    def _parse(self, commands: Sequence[QueuedCommand], room: int) -> list[_Task]:
        """Read and parse payloads until they have `room` bytes, at least one."""
        tasks: list[_Task] = []
        with self.spool.reading() as payload:
            for queued in commands:
                if room <= 0 and tasks:
                    break
                command, error, size = None, None, 0
                try:
                    command, size = self._command(queued, payload(queued))
                except (PayloadRejected, SegmentDamaged) as err:
                    error = str(err)
                tasks.append(_Task(queued, command, size, error))
                room -= size
        return tasks

    def _command(self, queued: QueuedCommand, sent: bytes) -> tuple[Command | None, int]:
        """Return the content of a payload, and its bytes as JSON; raise PayloadRejected."""
        if queued.coding == "packed":
            catalog = parse_packed(queued.version, sent, self.limits.payload_bytes, self._checked_catalogs)
            return catalog, catalog.size
        payload = decode_payload(sent, queued.coding, self.limits.payload_bytes)
        return parse_payload(queued.command, queued.version, payload, queued.received, self._checked_catalogs), len(payload)

    async def _attempt(self) -> None:
        """Carry out the commands that were read, as many of them as can be just now."""
        await self._finish([task for task in self._tasks if task.error is None and task.command is None])
        await self._discard([task for task in self._tasks if task.error is not None])
        tasks = [task for task in self._tasks if task.error is None]
        if not tasks:
            return
        if len(tasks) > 1 and self._outages < _WHOLE_BATCHES and not any(task.failed_pass for task in tasks):
            # Of several facts of one node in a batch only the newest would remain in any case.
            current = _without_superseded(tasks)
            error = await self._write(current)
            if error is None:
                self.counts["ignored"] += len(tasks) - len(current)
                await self._finish(tasks)
                return
            if isinstance(error, DatabaseUnavailable):
                self._note_outage(error, tasks)
                return
        await self._write_singly(tasks)

    async def _write(self, tasks: Sequence[_Task]) -> Exception | None:
        """Write commands; return the error that prevented it."""
        commands = [ReceivedCommand(task.command, task.queued.received) for task in tasks if task.command is not None]
        try:
            await self.writer.write(commands)
        except Exception as err:  # noqa: BLE001  # by the writer's contract any error is a fault of one of the commands
            return err
        if self._outages:
            log.info("Commands can be stored again; %d are pending", self.spool.depth)
        self._outages = self._suspicions = 0
        return None

    def _note_outage(self, error: Exception, tasks: Sequence[_Task]) -> None:
        if not self._outages:
            log.warning("Commands cannot be stored at the moment, %d are pending: %s: %s", self.spool.depth, type(error).__name__, error)
        self._outages += 1
        self.counts["retried"] += len(tasks)

    async def _write_singly(self, tasks: Sequence[_Task]) -> None:
        """
        Write each command in a transaction of its own.

        A command that fails while others are stored is faulty. When all of them fail, the database may be the cause, and they wait. The
        later commands of a node wait for an earlier one. The nodes whose command failed last, or is unfinished, come last.
        """
        self._passes += 1
        tasks_by_certname: dict[str, list[_Task]] = {}
        for task in tasks:
            tasks_by_certname.setdefault(task.command.certname if task.command else task.queued.certname, []).append(task)
        failed: list[_Failure] = []
        has_stored, probes = False, _PROBES
        # Nodes that have not failed lately first: they show whether the database works at all.
        for tasks_of_node in sorted(tasks_by_certname.values(), key=lambda tasks_of_node: tasks_of_node[0].failed_pass):
            for task in tasks_of_node:
                error = await self._write([task])
                task.is_unfinished = isinstance(error, Unfinished)
                if task.is_unfinished:
                    task.failed_pass = self._passes
                    break
                if error is not None:
                    failed.append(_Failure(task, error, has_stored))
                    probes -= isinstance(error, DatabaseUnavailable)
                    break
                has_stored = True
                await self._finish([task])
            if not has_stored and not probes:
                break
        for failure in failed:
            await self._judge(failure, has_stored=has_stored)

    async def _judge(self, failure: _Failure, *, has_stored: bool) -> None:
        """Discard a command that failed alone, if the fault is its own; `has_stored` is whether others were stored in this pass."""
        task, error = failure.task, failure.error
        if isinstance(error, PayloadRejected):
            task.error = str(error)
            await self._discard([task])
            return
        if has_stored and not failure.is_after_success and not isinstance(error, DatabaseUnavailable):
            # The database may have come back only after this attempt.
            again = await self._write([task])
            if again is None:
                await self._finish([task])
                return
            error = again
        is_unavailable = isinstance(error, DatabaseUnavailable)
        task.failed_pass = self._passes
        # While nothing at all can be stored, no command is to blame.
        task.failures += not is_unavailable or has_stored
        if task.failures < self.limits.attempts and (is_unavailable or not (has_stored or self._suspicions < _SUSPICIOUS)):
            if has_stored:
                log.warning("The command %s was not stored, although others were: %s", _description(task), error)
                self.counts["retried"] += 1
            else:
                self._note_outage(error, [task])
            return
        self._suspicions += not has_stored
        task.error = f"{type(error).__name__}: {error}"
        log.error("A command cannot be stored: %s", _description(task), exc_info=error)
        await self._discard([task])

    async def _finish(self, tasks: Sequence[_Task]) -> None:
        """Remove finished commands from the queue, and answer their waiting senders."""
        if not tasks:
            return
        await self.spool.remove(task.queued for task in tasks)
        self.counts["processed"] += len(tasks)
        for task in tasks:
            self._tell(task)
        self._drop(tasks)

    async def _discard(self, tasks: Sequence[_Task]) -> None:
        """Move commands out of the queue that cannot be carried out; they stay when the disk does not take them."""
        for task in tasks:
            self._tell(task)
            try:
                await self.spool.discard(task.queued, task.error or "")
            except OSError as err:
                log.error("The faulty command %s cannot be moved to the folder of discarded commands: %s", _description(task), err)
                continue
            log.warning("Discarded the command %s: %s", _description(task), task.error)
            self.counts["fatal"] += 1
            self.counts["discarded"] += 1
            self._drop([task])

    def _tell(self, task: _Task) -> None:
        waiter = self._waiters.get(task.queued.uuid)
        if waiter is not None and not waiter.done():
            waiter.set_result(task.error)

    def _drop(self, tasks: Sequence[_Task]) -> None:
        uuids = {task.queued.uuid for task in tasks}
        self._tasks = [task for task in self._tasks if task.queued.uuid not in uuids]


def _description(task: _Task) -> str:
    return f"{task.queued.uuid} ({task.queued.command} version {task.queued.version} for {task.queued.certname})"


def _without_superseded(tasks: Sequence[_Task]) -> list[_Task]:
    """Leave out facts and catalogs after which others of the same node come that replace them."""
    newest: dict[tuple[type[Command], str], int] = {}
    current = []
    for task in reversed(tasks):
        command = task.command
        if isinstance(command, ReplaceFacts | ReplaceCatalog):
            key = (type(command), command.certname)
            if command.producer_timestamp <= newest.get(key, command.producer_timestamp - 1):
                continue
            newest[key] = command.producer_timestamp
        current.append(task)
    return current[::-1]
