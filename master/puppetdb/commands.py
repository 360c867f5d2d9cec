"""The commands for a PuppetDB, which replace a node's facts or catalog, or add a report."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.wire.packed_catalogs import PackedCatalog

log = logging.getLogger("puppet.puppetdb")

PATH = "/pdb/cmd/v1"


def wire_time(when: datetime) -> str:
    """Return a time as the bodies of commands have it: ISO 8601 in local time, with milliseconds and its offset."""
    return when.astimezone().isoformat(timespec="milliseconds")


def utc_wire_time(when: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds and `Z`."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class PuppetDbCommand:
    """
    One command, ready to be sent.

    Attributes:
        name: With spaces: `replace facts`.
        payload: JSON in UTF-8; or a packed catalog, which `unpacked` makes JSON of.
        producer_timestamp: When the master made it.
    """

    name: str
    version: int
    certname: str
    payload: bytes | PackedCatalog
    producer_timestamp: datetime

    @classmethod
    def create(cls, name: str, version: int, certname: str, payload: bytes, when: datetime) -> PuppetDbCommand:
        """
        Return a command with a JSON text. Blocks for as long as it takes to read it: call it in a thread.

        Bytes that are not UTF-8 are replaced by U+FFFD, with a warning.
        """
        try:
            payload.decode("utf-8")
        except UnicodeDecodeError:
            payload = payload.decode("utf-8", "replace").encode()
            log.warning(
                "Error encoding a '%s' command for host '%s' ignoring invalid UTF-8 byte sequences in data to be sent to PuppetDB, "
                "see debug logging for more info",
                name,
                certname,
            )
        return cls(name, version, certname, payload, when)

    def unpacked(self) -> bytes:
        """Return the payload as JSON. Blocks."""
        return self.payload if isinstance(self.payload, bytes) else self.payload.text(sys.maxsize - 1)

    @property
    def wire_name(self) -> str:
        """The name with underscores, as in the URL and in the log."""
        return self.name.replace(" ", "_")

    def target(self, payload: bytes) -> str:
        """Return the path and the query of its request, whose body is `payload`. Blocks for as long as it takes to hash it."""
        head = json.dumps({"command": self.name, "version": self.version, "certname": self.certname}, separators=(",", ":")).encode()
        digest = hashlib.sha1(head[:-1] + b',"payload":', usedforsecurity=False)
        digest.update(payload)
        digest.update(b"}")
        return (
            f"{PATH}?checksum={digest.hexdigest()}&version={self.version}&certname={self.certname}&command={self.wire_name}"
            f"&producer-timestamp={utc_wire_time(self.producer_timestamp)}"
        )
