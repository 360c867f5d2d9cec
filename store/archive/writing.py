"""Writes archives: asks the query API for everything, node by node, and packs the answers."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from ..jsontext import Json, dump_json
from .layout import FOLDERS, FOLDERS_BY_NAME, METADATA, file_name
from .payloads import Payload, Row, catalog_payload, deactivation_payload, expiration_payload, facts_payload, inputs_payload, report_payload
from .tar import END, entry_bytes

_REPORTS = 20  # that are in memory at the same time
_LEVEL = 6  # of gzip


@dataclass(frozen=True, slots=True)
class ArchiveQuestion:
    """
    A question to the query API: `entity` as a query tree calls it, the tree, and the fields by which the rows are sorted.

    `parameters` are further ones of the request's, as `include_facts_expiration`.
    """

    entity: str
    query: Json
    order_by: tuple[str, ...] = ()
    parameters: Mapping[str, Json] = field(default_factory=dict)


RowSource: TypeAlias = Callable[[ArchiveQuestion], AsyncIterator[Row]]
"""A function that answers such queries, row by row."""


class ArchiveWriter:
    """Packs one archive; every method returns the bytes that come next. They compress, so call them in threads."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
        self.commands = 0

    def begin(self) -> bytes:
        """Return the beginning, which lists the versions of the commands."""
        versions: dict[str, Json] = {folder.command.replace(" ", "_"): folder.version for folder in FOLDERS}
        return self._pack(METADATA, {"timestamp": self._now.isoformat(), "command_versions": versions})

    def add(self, folder: str, payload: Payload) -> bytes:
        """Return the payload of a command, packed."""
        self.commands += 1
        return self._pack(file_name(FOLDERS_BY_NAME[folder], str(payload["certname"]), str(payload["producer_timestamp"])), payload)

    def end(self) -> bytes:
        """Return the end."""
        return self._compressor.compress(END) + self._compressor.flush()

    def _pack(self, name: str, content: Mapping[str, Json]) -> bytes:
        return self._compressor.compress(entry_bytes(name, dump_json(content), int(self._now.timestamp())))


async def archive_chunks(rows: RowSource, writer: ArchiveWriter) -> AsyncIterator[bytes]:
    """
    Yield an archive of all data that `rows` returns: of all nodes, including inactive ones.

    One node's documents are in memory at a time, and no more than twenty of its reports. A node that is stored or removed in between
    may be missing; the others are complete.
    """
    yield writer.begin()
    nodes = [node async for node in rows(_nodes())]
    for node in nodes:
        expiration = expiration_payload(node)
        if expiration is not None:
            yield await asyncio.to_thread(writer.add, "configure_expiration", expiration)
    for node in nodes:
        async for folder, payload in _payloads_of(rows, str(node["certname"])):
            yield await asyncio.to_thread(writer.add, folder, payload)
    for node in nodes:
        deactivation = deactivation_payload(node)
        if deactivation is not None:
            yield await asyncio.to_thread(writer.add, "deactivate_node", deactivation)
    yield writer.end()


def _nodes() -> ArchiveQuestion:
    return ArchiveQuestion("nodes", ["=", "node_state", "any"], ("certname",), {"include_facts_expiration": True})


async def _payloads_of(rows: RowSource, certname: str) -> AsyncIterator[tuple[str, Payload]]:
    """Yield a node's stored data, without its state: pairs of a folder and a payload."""
    # A query that names a state is about nodes in any state, at every endpoint.
    of_node: Json = ["and", ["=", "certname", certname], ["=", "node_state", "any"]]
    async for factset in rows(ArchiveQuestion("factsets", of_node)):
        packages = [package async for package in rows(ArchiveQuestion("package_inventory", of_node, ("package_name", "version")))]
        yield "facts", facts_payload(factset, packages)
    async for catalog in rows(ArchiveQuestion("catalogs", of_node)):
        yield "catalogs", catalog_payload(catalog)
    async for inputs in rows(ArchiveQuestion("catalog_inputs", of_node)):
        yield "catalog_inputs", inputs_payload(inputs)
    # Without a word about the type only those of agents are shown.
    reports: Json = ["and", ["=", "certname", certname], ["null?", "type", False]]
    hashes = [row["hash"] async for row in rows(ArchiveQuestion("reports", ["extract", ["hash"], reports], ("producer_timestamp", "hash")))]
    for first in range(0, len(hashes), _REPORTS):
        some: Json = ["and", ["in", "hash", ["array", hashes[first : first + _REPORTS]]], reports]
        async for report in rows(ArchiveQuestion("reports", some, ("producer_timestamp",))):
            yield "reports", report_payload(report)
