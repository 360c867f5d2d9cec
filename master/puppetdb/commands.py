"""The commands that a PuppetDB takes: what a node's facts, catalog and report are replaced by."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

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
        payload: JSON in UTF-8.
        checksum: The SHA-1 of the whole command, in hexadecimal digits.
        producer_timestamp: When the master made it.
    """

    name: str
    version: int
    certname: str
    payload: bytes
    checksum: str
    producer_timestamp: datetime

    @classmethod
    def create(cls, name: str, version: int, certname: str, payload: bytes, when: datetime) -> PuppetDbCommand:
        """
        Return a command. Blocks for as long as it takes to hash `payload`: call it in a thread.

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
        head = json.dumps({"command": name, "version": version, "certname": certname}, separators=(",", ":")).encode()
        digest = hashlib.sha1(head[:-1] + b',"payload":', usedforsecurity=False)
        digest.update(payload)
        digest.update(b"}")
        return cls(name, version, certname, payload, digest.hexdigest(), when)

    @property
    def wire_name(self) -> str:
        """The name with underscores, as it stands in the URL and in the log."""
        return self.name.replace(" ", "_")

    @property
    def target(self) -> str:
        """The path and the query of its request."""
        return (
            f"{PATH}?checksum={self.checksum}&version={self.version}&certname={self.certname}&command={self.wire_name}"
            f"&producer-timestamp={utc_wire_time(self.producer_timestamp)}"
        )
