"""inventory.txt: one line for each certificate ever issued. Source: protocol reference 5.3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from certs.certificates import time_text
from certs.csr import subject_text

_TIME = "%Y-%m-%dT%H:%M:%SUTC"


@dataclass(frozen=True, slots=True)
class Record:
    """One certificate; `subject` as `/CN=name`, times in UTC."""

    serial: int
    not_before: datetime
    not_after: datetime
    subject: str

    def __str__(self) -> str:
        return f"0x{self.serial:04x} {time_text(self.not_before)} {time_text(self.not_after)} {self.subject}\n"

    @classmethod
    def of(cls, certificate: x509.Certificate) -> Record:
        return cls(
            certificate.serial_number, certificate.not_valid_before_utc, certificate.not_valid_after_utc, subject_text(certificate.subject)
        )

    def is_of(self, name: str) -> bool:
        """Whether the certificate was issued to `name`; some writers leave out the slash."""
        return self.subject in (f"/CN={name}", f"CN={name}")


def records(text: str) -> Iterator[Record]:
    """The records of an inventory; lines that are torn or not of this form are passed over, comments too."""
    for line in text.splitlines():
        fields = line.split(" ", 3)
        if len(fields) != 4 or not fields[0].startswith("0x"):
            continue
        try:
            serial = int(fields[0], 16)
            start, end = (datetime.strptime(field, _TIME).replace(tzinfo=UTC) for field in fields[1:3])
        except ValueError:
            continue
        yield Record(serial, start, end, fields[3].strip())


def rebuilt(certificates: Iterable[x509.Certificate]) -> str:
    """An inventory of these certificates, by serial, each once."""
    return "".join(str(record) for record in sorted({Record.of(c) for c in certificates}, key=lambda r: (r.serial, r.subject)))
