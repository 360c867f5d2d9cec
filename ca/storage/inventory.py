"""inventory.txt: one line for each certificate ever issued. Source: protocol reference 5.3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from certs.certificates import time_text
from certs.csr import subject_text


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """One issued certificate; `subject` as `/CN=name`, times in UTC."""

    serial: int
    not_before: datetime
    not_after: datetime
    subject: str

    def __str__(self) -> str:
        return f"0x{self.serial:04x} {time_text(self.not_before)} {time_text(self.not_after)} {self.subject}\n"

    @classmethod
    def of(cls, certificate: x509.Certificate) -> InventoryEntry:
        return cls(
            certificate.serial_number, certificate.not_valid_before_utc, certificate.not_valid_after_utc, subject_text(certificate.subject)
        )

    @property
    def name(self) -> str:
        """The name that the certificate was issued to: the subject without `/CN=` (some writers omit the slash)."""
        return self.subject.removeprefix("/").removeprefix("CN=")


class Inventory:
    """The entries of an inventory, indexed by name and by serial."""

    def __init__(self, records: Iterable[InventoryEntry] = ()) -> None:
        self.records: list[InventoryEntry] = []
        self.serials: set[int] = set()
        self._by_name: dict[str, list[InventoryEntry]] = {}
        for record in records:
            self.add(record)

    def add(self, record: InventoryEntry) -> None:
        self.records.append(record)
        self.serials.add(record.serial)
        self._by_name.setdefault(record.name, []).append(record)

    def of(self, name: str) -> list[InventoryEntry]:
        """Return all entries of `name`, the oldest first."""
        return self._by_name.get(name, [])


def inventory_entries(text: str) -> Iterator[InventoryEntry]:
    """Yield the entries of an inventory; incomplete lines, comments and lines of another form are skipped."""
    for line in text.splitlines():
        fields = line.split(" ", 3)
        if len(fields) != 4 or not fields[0].startswith("0x"):
            continue
        try:
            serial = int(fields[0], 16)
            start, end = (_moment(field) for field in fields[1:3])
        except ValueError:
            continue
        yield InventoryEntry(serial, start, end, fields[3].strip())


def _moment(text: str) -> datetime:
    if len(text) != 22 or not text.endswith("UTC"):
        raise ValueError(text)
    return datetime.fromisoformat(text[:-3]).replace(tzinfo=UTC)
