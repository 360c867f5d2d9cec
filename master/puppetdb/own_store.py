"""The client of the master's own store: commands go there many at a time, in their order, and requests of agents do not wait for that."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from environments.files.export_keys import DEFERRED, REDACTED, is_redacted
from shared.data import plainjson
from shared.errors import BadData, NotFound, PuppetError

from .client import MAX_COMMAND_ANSWER, PuppetDbAnswer, PuppetDbClient, PuppetDbRequest
from .commands import PATH, PuppetDbCommand, utc_wire_time
from .configuration import PuppetDbConfiguration
from .sessions import Sessions

log = logging.getLogger("puppet.puppetdb")

BATCH_PATH = f"{PATH}/batch"
SEALED_PATH = "/sealed"  # outside of /pdb: no client of the master's port gets there, whatever its rules are
BATCH_COMMANDS = 200
BATCH_BYTES = 8 << 20  # of a batch's payloads, unless a single one is longer
GATHERING = 0.2  # seconds for further commands to come, unless somebody waits for the answer: a batch costs little more than one command
MAX_NAMES = 5  # in a line of the log
_MARKS = (REDACTED.encode(), DEFERRED.encode())  # in an answer with parameters that may be sealed
_HEADERS = {"Accept": "application/json", "Content-Type": "application/octet-stream"}

# The name stands for the Unix socket of the master's own store. A store that ends in the middle of a request is asked once more, when it
# has started again: what it has already changes nothing. Catalogs are more important than what is known of them: only queries fail when
# the store does not run.
OWN_STORE = PuppetDbConfiguration(server_urls=("http://store",) * 2, soft_write_failure=True)


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A command on its way; `make` blocks, and `uuid` gets None when the store does not take it."""

    make: Callable[[], PuppetDbCommand]
    uuid: asyncio.Future[str | None]


class OwnStoreClient(PuppetDbClient):
    """
    Queries the master's own store, and sends commands to it.

    Args:
        waiting: The most pending commands; beyond that `deliver` waits.
    """

    def __init__(self, sessions: Sessions, *, producer: str, max_answer: int, waiting: int) -> None:
        super().__init__(OWN_STORE, sessions, producer=producer, max_answer=max_answer)
        self._room = asyncio.Semaphore(waiting)
        self._parcels: deque[_Parcel] = deque()
        self._courier: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    async def close(self) -> None:
        """Send pending commands to the store, or log its refusal, and close the connections."""
        self._hurry.set()
        if self._courier is not None:
            await self._courier
        await super().close()

    async def with_sealed(self, resources: bytes) -> bytes:
        """Return an answer with resources in which those with sealed parameters also have these, as `sealed`."""
        if not any(mark in resources for mark in _MARKS):
            return resources
        rows = await asyncio.to_thread(plainjson.loads_trusted, resources)
        hashes = plainjson.dumps([row["resource"] for row in rows if is_redacted(row["parameters"])])
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        answer, _ = await self._fail_over(
            PuppetDbRequest("POST", SEALED_PATH, headers, hashes, self.max_answer), self.configuration.server_urls
        )
        if not answer.is_success:
            raise PuppetError(answer.problem)
        sealed = (await asyncio.to_thread(plainjson.loads_trusted, answer.body))["sealed"]
        return await asyncio.to_thread(plainjson.dumps, [row | {"sealed": sealed.get(row["resource"], {})} for row in rows])

    def _warn_of_timeout(self, server: str, route: str) -> None:
        log.warning("The master's own store did not answer within %g seconds", self.configuration.server_url_timeout)

    def _warn_of_connection(self, server: str, route: str, reason: str) -> None:
        log.warning("The master's own store cannot be reached: %s", reason)

    def _warn_of_answer(self, answer: PuppetDbAnswer, route: str) -> None:
        log.warning("The master's own store refuses a request: %s", answer.problem)

    def _failure(self, exchange: PuppetDbRequest, is_found: bool) -> PuppetError:
        if not is_found:
            return NotFound(f"The master's own store has no '{exchange.target}'")
        return PuppetError("The master's own store could not answer", hint="See the master's log.")

    async def deliver(self, make: Callable[[], PuppetDbCommand]) -> None:
        """Queue a command for the store, after all earlier ones; return when the queue has space for it."""
        await self._accept(make)

    async def submit(self, command: PuppetDbCommand) -> str | None:
        """Return a command's UUID once it is safe in the store's queue; None, when the store does not take it, which is logged."""
        uuid = await self._accept(lambda: command)
        self._hurry.set()
        return await uuid

    async def _accept(self, make: Callable[[], PuppetDbCommand]) -> asyncio.Future[str | None]:
        await self._room.acquire()
        parcel = _Parcel(make, asyncio.get_running_loop().create_future())
        self._parcels.append(parcel)
        if self._courier is None:
            self._courier = asyncio.create_task(self._take_all(), name="commands to the store")
        return parcel.uuid

    async def _take_all(self) -> None:
        """Take parcels to the store until none is left; those that come meanwhile go together the next time."""
        try:
            while self._parcels:
                await self._gather()
                parcels = [self._parcels.popleft() for _ in range(min(BATCH_COMMANDS, len(self._parcels)))]
                try:
                    await self._take(parcels)
                except Exception:
                    log.exception("Commands could not be sent to the store")  # the next ones are tried all the same
                finally:
                    for parcel in parcels:
                        self._room.release()
                        if not parcel.uuid.done():
                            parcel.uuid.set_result(None)
        finally:
            self._courier = None

    async def _gather(self) -> None:
        """Return when further commands have had time to come, or there are enough of them, or somebody waits for one."""
        if len(self._parcels) < BATCH_COMMANDS:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), GATHERING)
        self._hurry.clear()

    async def _take(self, parcels: Sequence[_Parcel]) -> None:
        made = await asyncio.to_thread(_made, parcels)
        while made:
            size = 0
            count = 0
            for _, command in made:
                size += len(_packed_payload(command))
                if count and size > BATCH_BYTES:
                    break
                count += 1
            batch, made = made[:count], made[count:]
            try:
                uuids = await self._send([command for _, command in batch])
            except PuppetError as err:
                log.error("The store did not take %s: %s", _described([command for _, command in batch]), err.message)
                continue
            for (parcel, command), uuid in zip(batch, uuids, strict=True):
                log.debug("'%s' command for %s submitted to the store with UUID %s", command.wire_name, command.certname, uuid)
                if not parcel.uuid.done():
                    parcel.uuid.set_result(uuid)

    async def _send(self, commands: Sequence[PuppetDbCommand]) -> list[str]:
        """Return the UUIDs of commands that the store has put into its queue; PuppetError when it has not."""
        exchange = PuppetDbRequest("POST", BATCH_PATH, _HEADERS, packed_batch(commands), MAX_COMMAND_ANSWER)
        answer, _ = await self._fail_over(exchange, self.configuration.server_urls)
        if not answer.is_success:
            raise PuppetError(answer.problem)
        try:
            uuids = [str(uuid) for uuid in plainjson.loads(answer.body)["uuids"]]
        except (BadData, KeyError, TypeError) as err:
            raise PuppetError("The store took commands, but gave them no UUIDs") from err
        if len(uuids) != len(commands):
            raise PuppetError(f"The store took {len(commands)} commands, but gave {len(uuids)} UUIDs")
        return uuids


def _described(commands: Sequence[PuppetDbCommand]) -> str:
    """Return which commands these are, of many the first ones."""
    names = [f"{command.wire_name} for {command.certname}" for command in commands[:MAX_NAMES]]
    return ", ".join(names) + (f" and {len(commands) - MAX_NAMES} more" if len(commands) > MAX_NAMES else "")


def packed_batch(commands: Sequence[PuppetDbCommand]) -> bytes:
    """
    Return commands as the store reads them: of each a line in JSON, and the payload.

    The line ends with the payload's length, and with `packed` behind it where the payload is a packed catalog.
    """
    parts: list[bytes] = []
    for command in commands:
        payload = _packed_payload(command)
        head = [command.name, command.version, command.certname, utc_wire_time(command.producer_timestamp), len(payload)]
        if payload is not command.payload:
            head.append("packed")
        parts += [plainjson.dumps(head), b"\n", payload]
    return b"".join(parts)


def _packed_payload(command: PuppetDbCommand) -> bytes:
    return command.payload if isinstance(command.payload, bytes) else command.payload.pack()


def _made(parcels: Sequence[_Parcel]) -> list[tuple[_Parcel, PuppetDbCommand]]:
    """Return the commands of parcels; one that cannot be made is logged and left out. Blocks."""
    made = []
    for parcel in parcels:
        try:
            made.append((parcel, parcel.make()))
        except Exception:
            log.exception("A command for the store cannot be made")  # the others go there all the same
    return made
