"""
Records of the master's own compilations: compiling processes send them after their answers, and the listening process writes them.

A record that is lost costs the next preview one compilation. So no process waits for one: a process whose record is not taken keeps
    it until
its next answer, and a failure to write is logged once.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from shared.errors import PuppetError

from .records import CatalogRecord, CatalogRecords

if TYPE_CHECKING:
    # A compiling process sends records, too, and must not import settings: they load pydantic.
    from shared.settings import MasterSettings

log = logging.getLogger("puppet.compiler")

MAX_KNOWN = 20_000
"""Nodes of which a compiling process knows the last record."""
MAX_WAITING = 50
"""Records that wait in a compiling process."""
MAX_BATCH = 200
PAUSE = 1.0
"""Seconds for which records are collected before they are written."""
_MAX_DATAGRAM = 2**18
_PART = 16
"""The oldest records are removed when a part of all, one of so many, has been written."""


class RecordSender:
    """
    Sends the inputs of a compiling process' catalogs, for each node only those that are not stored yet.

    Args:
        send: Sends one datagram; OSError when that is not possible now, or not at all (EMSGSIZE).
    """

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send
        self._known: OrderedDict[str, str] = OrderedDict()
        self._waiting: OrderedDict[str, CatalogRecord] = OrderedDict()

    def add(self, certname: str, record: CatalogRecord) -> None:
        """Send a record, unless it equals the last one of its node."""
        if self._known.get(certname) == record.identity:
            return
        self._waiting[certname] = record
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)

    def send(self) -> None:
        """Send all records that can be sent now."""
        while self._waiting:
            certname, record = next(iter(self._waiting.items()))
            try:
                self._send(certname.encode() + b"\0" + record.pack())
            except OSError as err:
                if err.errno != errno.EMSGSIZE:
                    return  # with the next answer: the listening process is busy, or ends
                # A record that is too large is not kept: previews compile its node.
            del self._waiting[certname]
            self._known[certname] = record.identity
            self._known.move_to_end(certname)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)


class CatalogRecorder:
    """
    Writes the records that compiling processes send, in batches and in a thread.

    Args:
        size: Bytes that all records may take.
    Attributes:
        outlet: What compiling processes inherit and send to.
    """

    def __init__(self, records: CatalogRecords, size: int) -> None:
        self.records = records
        self.size = size
        self._inlet, self.outlet = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inlet.setblocking(False)
        self.outlet.setblocking(False)
        self._batch: dict[str, bytes] = {}
        self._written = size  # bytes since the oldest were removed; the first time at the start
        self._problem = ""

    @classmethod
    def of(cls, settings: MasterSettings) -> CatalogRecorder | None:
        """Return the recorder that the settings ask for."""
        size = settings.preview_records_size
        return cls(CatalogRecords(settings.preview_records), size) if size else None

    async def keep_written(self) -> None:
        """Write received records, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._add(await loop.sock_recv(self._inlet, _MAX_DATAGRAM))
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    while len(self._batch) < MAX_BATCH:
                        self._add(await loop.sock_recv(self._inlet, _MAX_DATAGRAM))
            await asyncio.to_thread(self._write)

    async def close(self) -> None:
        """Write the received records, and accept no more."""
        with suppress(BlockingIOError):
            while True:
                self._add(self._inlet.recv(_MAX_DATAGRAM))
        self.outlet.close()
        self._inlet.close()
        await asyncio.to_thread(self._write)

    def _add(self, datagram: bytes) -> None:
        name, _, packed = datagram.partition(b"\0")
        self._batch[name.decode("utf-8", "replace")] = packed

    def _write(self) -> None:
        batch, self._batch = self._batch, {}
        problem = ""
        try:
            for certname, packed in batch.items():
                self.records.save(certname, packed)
                self._written += len(packed)
            if self._written >= self.size / _PART:
                self.records.limit(self.size)
                self._written = 0
        except PuppetError as err:
            problem = f"{err.message} ({err.hint})" if err.hint else err.message
        if problem and not self._problem:
            log.warning("%s", problem)
        self._problem = problem
