"""The rows of a CA in the masters' database, and the values that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from certs.files import bundles
from shared.state.tables import CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED

from .copies import CaRow
from .inventory import InventoryEntry
from .store import CaContents


def read_row(connection: Connection, known: CaRow | None = None) -> CaRow | None:
    """Return the CA's row, which is not read again when it is the known one; None when there is none."""
    if known is not None:
        stamp = connection.execute(select(CA.c.version, CA.c.crls_written)).one_or_none()
        # The version alone could be that of another change, after a back-up was restored.
        if stamp is not None and tuple(stamp) == (known.version, known.crls_written):
            return known
    columns = (CA.c.version, CA.c.certificates, CA.c.certificates_written, CA.c.crls, CA.c.crls_written, CA.c.key)
    row = connection.execute(select(*columns)).one_or_none()
    if row is None:
        return None
    return CaRow(row[0], row[1].encode(), row[2], row[3].encode(), row[4], bytes_of(row[5]))


def insert_all(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, if there are any."""
    if values := list(rows):
        connection.execute(insert(table), values)


def inventory_values(entry: InventoryEntry, signed_by: str) -> dict[str, Any]:
    """Return the columns of an entry."""
    return {
        "serial": hex_of(entry.serial),
        "not_before": entry.not_before,
        "not_after": entry.not_after,
        "subject": entry.subject,
        "name": entry.name,
        "signed_by": signed_by,
    }


def entry_of(row: Any) -> InventoryEntry:
    """Return the entry of a row."""
    return InventoryEntry(int(row.serial, 16), row.not_before, row.not_after, row.subject)


def hex_of(serial: int) -> str:
    """Return a serial as the tables have it."""
    return f"{serial:040x}"


def bytes_of(value: str | None) -> bytes | None:
    """Return a PEM of a column."""
    return value.encode() if value is not None else None


def insert_contents(connection: Connection, contents: CaContents, key: str | None, master: str) -> None:
    """Insert a whole CA; `key` is the encrypted PEM, None where the key is a file on each master."""
    insert_all(connection, CA_INVENTORY, (inventory_values(entry, by) for entry, by in contents.inventory))
    now = connection.execute(select(func.clock_timestamp())).scalar_one()
    signed = (
        {"name": name, "pem": pem.decode(), "serial": hex_of(bundles.certificate(pem).serial_number), "written": now}
        for name, pem in contents.signed.items()
    )
    insert_all(connection, CA_SIGNED, signed)
    requests = (
        {"name": name, "pem": pem.decode(), "written": now, "received_by": master, "is_decided": True}
        for name, pem in contents.requests.items()
    )
    insert_all(connection, CA_REQUESTS, requests)
    connection.execute(
        insert(CA).values(
            id=1,
            version=int(now.timestamp() * 1000),  # another one than that of any CA which was here before
            certificates=contents.certificates.decode(),
            certificates_written=now,
            crls=contents.crls.decode(),
            crls_written=now,
            key=key,
            next_serial=hex_of(contents.next_serial),
        )
    )
