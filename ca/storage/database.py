"""The CA in the database that masters share. Each master has copies of its certificate and CRLs, which TLS reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, extract, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from certs import certificates, keys
from certs.files import bundles
from certs.files.cadir import CaFiles
from shared.clock import utc_now
from shared.errors import ConfigError
from shared.failpoints import failpoint
from shared.names import valid_certname
from shared.state.database import StateAway, StateDatabase
from shared.state.notices import notify
from shared.state.tables import CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED

from .copies import CaRow, check_certificates, content_of, read_copies, write_copies
from .inventory import Inventory, InventoryEntry
from .rows import bytes_of, entry_of, hex_of, insert_all, insert_contents, inventory_values, read_row
from .store import PRIVATE_MODE, TOPIC, CaContents, CaStore, NameFiles

log = logging.getLogger("puppet.ca")

LOCK = 0x62756E72616B6361
"""The number of the advisory lock under which a CA writes."""

HOLD = 8
"""Seconds for which a master may do nothing while it holds the lock: one that hangs must not stop the others."""

HOLD_TO_MOVE = 3600
"""The same, while a CA moves, which others have to wait for anyway."""

LEFT_UNDECIDED = 300
"""Seconds after which a master that has not decided about a request must have ended: far longer than autosign takes."""


@dataclass
class _Transaction:
    connection: Connection
    row: CaRow | None
    is_changed: bool = False
    when_stored: list[Callable[[], None]] = field(default_factory=list)


class DatabaseStore(CaStore):
    """
    The CA in the masters' database.

    `writing` is one transaction under a lock of the database, at whose beginning the CRLs are read again. Outside of it the certificate
    and the CRLs are those that `refresh` has seen last, so that they can be served while the database is away.

    Args:
        master: The certname of this master, which the inventory has beside each certificate that it signs.
        password: Encrypts the CA's key, which is then in the database; None: it is a file on each master.
    """

    is_shared = True
    heals_crls = True

    def __init__(self, files: CaFiles, database: StateDatabase, master: str, password: bytes | None = None) -> None:
        super().__init__(files)
        self.master = master
        self.problem = ""
        self.hold = HOLD
        self._password = password
        self._database = database
        self._row: CaRow | None = None
        self._writers = threading.RLock()
        self._publishing = threading.Lock()
        self._local = threading.local()

    def close(self) -> None:
        self._database.disconnect()

    # --- the row and its copies on this machine

    def refresh(self) -> bool:
        """Read the CA's certificate and CRLs if they have changed; return whether they have. StateAway."""
        with self._publishing:  # also while it is read, so that no older row replaces a newer one
            known = self._row
            try:
                row = self._database.transact(lambda connection: read_row(connection, known))
            except StateAway as err:
                self.problem = str(err)
                raise
            if row is not None:
                check_certificates(self.files, row)
            self.problem, self.last_seen = "", utc_now()
            self._row = row or known
            if self._row is not None:
                write_copies(self, self._row, with_key=self._password is not None)
        return self._row is not known

    def _publish(self, row: CaRow) -> None:
        """Let a row that is committed be in force here."""
        with self._publishing:
            self._row = row
            write_copies(self, row, with_key=self._password is not None)

    def _current(self) -> CaRow:
        transaction = self._transaction
        row = transaction.row if transaction is not None else self._row
        if row is None:
            raise ConfigError("There is no CA in the masters' database", hint="A master with ca = true makes one on its first start.")
        return row

    @property
    def _transaction(self) -> _Transaction | None:
        return getattr(self._local, "transaction", None)

    # --- files of this machine

    def create_directories(self) -> None:
        self._make_folder(self.files.cadir, 0o750)

    def litter(self) -> list[Path]:
        return []  # a transaction leaves nothing behind

    # --- a CA as a whole

    @property
    def place(self) -> str:
        return "the masters' database"

    @property
    def is_away(self) -> bool:
        return bool(self.problem)

    def exists(self) -> bool:
        return self._row is not None

    def prepare(self) -> bool:
        """
        Read the CA; return whether there is one.

        While the database is away, this machine's copies are in force. StateAway: there are none.
        """
        try:
            self.refresh()
        except StateAway as err:
            self._row = read_copies(self.files)
            if self._row is None:
                raise
            log.error("%s. The CA's certificate and CRL of %s are in force", err, self._row.crls_written.isoformat(" ", "seconds"))
        return self._row is not None

    def check_free(self) -> None:
        """Raise ConfigError when there is a CA in files here, which a new one in the database would replace."""
        if self.files.cacert.exists():
            raise ConfigError(
                f"There is a CA in {self.files.cadir}, but none in {self.place}",
                hint="'puppet state move' brings it there. If this is the wrong database, correct the setting state.",
            )

    def check_whole(self) -> None:
        """Raise ConfigError when this master lacks the CA's key, or has another one; put the key into the database if it shall be there."""
        row = self._row
        if row is None:
            return
        files = self.files
        if row.key is not None and not self._password:
            raise ConfigError(
                "The CA's key is in the masters' database, encrypted",
                hint="Set ca_key_passphrase, as on the other masters (docs/scale.md).",
            )
        if not files.cakey.exists():
            authority = certificates.name_of(bundles.certificates(row.certificates)[0])
            raise ConfigError(
                f"This master lacks the key {files.cakey} of the CA '{authority}', which is in the masters' database",
                hint=f"Copy {files.cakey} from another master, with owner and mode 0640. Or set ca_key_passphrase on all masters, with the "
                "same passphrase: the first that has the key puts it, encrypted, into the database (docs/scale.md).",
            )
        key = keys.load(files.cakey, self._password)
        if not any(keys.belongs(key, each.public_key()) for each in bundles.certificates(row.certificates)):
            raise ConfigError(
                f"The key {files.cakey} is not that of the CA in the masters' database",
                hint=f"Copy {files.cakey} from another master.",
            )
        if self._password and row.key is None and row.version >= 0:
            with self.writing():
                self._change(key=keys.private_pem(key, self._password).decode())
            log.info("The CA's key is in the masters' database now, encrypted with the passphrase of ca_key_passphrase")

    def install(self, contents: CaContents) -> None:
        self.create_directories()
        key: bytes | None = contents.key
        if self._password:
            key = keys.private_pem(keys.private_key(contents.key, self._password), self._password)
        with self._writing(must_exist=False, hold=HOLD_TO_MOVE) as transaction:
            if transaction.row is not None:
                raise ConfigError("There is a CA in the masters' database already; nothing was made")
            # Before the commit, so that no CA is without its key.
            self.write(self.files.cakey, key or contents.key, mode=PRIVATE_MODE)
            failpoint("ca.bootstrap-staged-cakey")
            insert_contents(transaction.connection, contents, key.decode() if self._password and key else None, self.master)
            notify(transaction.connection, TOPIC)
            transaction.row, transaction.is_changed = read_row(transaction.connection), True
            failpoint("ca.bootstrap-staged")
        failpoint("ca.bootstrap-done")

    def contents(self) -> CaContents:
        with self.writing():
            row = self._current()
            key = keys.load(self.files.cakey, self._password)
            pems = list(self.all_names())
            return CaContents(
                row.key or self.files.cakey.read_bytes(),
                keys.public_pem(key.public_key()),
                row.certificates,
                row.crls,
                self.next_serial(),
                tuple((entry_of(each), each.signed_by) for each in self._inventory_rows()),
                {each.name: each.request for each in pems if each.request is not None},
                {each.name: each.certificate for each in pems if each.certificate is not None},
            )

    def retire(self, successor: str) -> None:
        """Remove the CA from the database; masters that run answer from what they have read, and change nothing."""
        with self.writing():
            connection = self._connection
            for table in (CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED):
                connection.execute(delete(table))
            notify(connection, TOPIC)
        log.info("The CA in the masters' database has moved to %s", successor)

    # --- changes

    @contextmanager
    def writing(self) -> Iterator[None]:
        """
        Keep all other masters from writing; may be nested. At the end all is committed, or nothing was written.

        Raises:
            StateAway: the database is away, or another master holds the lock too long.
        """
        if self._transaction is not None:
            yield
            return
        with self._writing(must_exist=True):
            yield

    @contextmanager
    def moving(self) -> Iterator[None]:
        with self._writing(must_exist=True, hold=HOLD_TO_MOVE):
            yield

    @contextmanager
    def _writing(self, *, must_exist: bool, hold: int = 0) -> Iterator[_Transaction]:
        with self._writers:
            with self._database.begin() as connection:
                settings = {"idle_in_transaction_session_timeout": f"{hold or self.hold}s", "synchronous_commit": "on"}
                local = (func.set_config(name, value, True) for name, value in settings.items())
                connection.execute(select(*local, func.pg_advisory_xact_lock(LOCK)))
                row = read_row(connection, self._row)
                if row is not None and row is not self._row:
                    check_certificates(self.files, row)
                    self._publish(row)
                if row is None and must_exist:
                    raise ConfigError("The CA is not in the masters' database any more", hint="Did it move? Then restart this master.")
                transaction = self._local.transaction = _Transaction(connection, row)
                try:
                    yield transaction
                finally:
                    self._local.transaction = None
            failpoint("ca.committed")
            if transaction.is_changed and transaction.row is not None:
                try:
                    self.refresh()  # another master may have changed more by now
                except StateAway:
                    self._publish(transaction.row)
            for work in transaction.when_stored:
                work()

    def when_stored(self, work: Callable[[], None]) -> None:
        if self._transaction is not None:
            self._transaction.when_stored.append(work)
        else:
            work()

    @property
    def _connection(self) -> Connection:
        transaction = self._transaction
        assert transaction is not None, "the caller holds the lock"
        return transaction.connection

    def _read(self, work: Callable[[Connection], Any]) -> Any:
        transaction = self._transaction
        return self._database.transact(work) if transaction is None else work(transaction.connection)

    def _change(self, **values: Any) -> None:
        """Write columns of the CA's row under a new version, and tell all masters of it."""
        transaction = self._transaction
        assert transaction is not None, "the caller holds the lock"
        transaction.connection.execute(update(CA).values(version=CA.c.version + 1, **values))
        notify(transaction.connection, TOPIC)
        transaction.row, transaction.is_changed = read_row(transaction.connection), True

    # --- CRLs

    @property
    def crls_are_settled(self) -> bool:
        transaction = self._transaction
        return transaction is None or not transaction.is_changed

    @property
    def crls_place(self) -> str:
        return f"in {self.place}"

    def crls_stamp(self) -> object:
        return self._current().crls

    def crls(self) -> bytes:
        return self._current().crls

    def newest_crls(self) -> Iterator[bytes]:
        """Yield this machine's copy, which outlives the database."""
        copy = content_of(self.files.cacrl)
        if copy is not None:
            yield copy

    def copy_crls(self, pem: bytes) -> None:
        """Do nothing: the copy that TLS reads was written with the CRLs."""

    def save_crls(self, pem: bytes) -> None:
        self._change(crls=pem.decode(), crls_written=func.clock_timestamp())
        failpoint("ca.crl-written")

    def certificates_written(self) -> float:
        return self._current().certificates_written.timestamp()

    def crls_written(self) -> float:
        return self._current().crls_written.timestamp()

    # --- serial and inventory

    @property
    def serial_place(self) -> str:
        return "the column next_serial of state_ca"

    def next_serial(self) -> int:
        written = self._read(lambda connection: connection.scalar(select(CA.c.next_serial)))
        try:
            number = int(written or "", 16)
        except ValueError:
            number = 0
        if number < 1:
            raise ConfigError(f"There is no number in hex in {self.serial_place}", hint="Write there one more than the highest serial.")
        return number

    def save_next_serial(self, number: int) -> None:
        self._connection.execute(update(CA).values(next_serial=hex_of(number)))
        failpoint("ca.serial-stored")

    def serial_stamp(self) -> object:
        return ""  # nothing else writes it

    def signed_serials(self) -> Iterable[int]:
        return [int(serial, 16) for serial in self._read(lambda connection: connection.scalars(select(CA_SIGNED.c.serial)).all())]

    @property
    def inventory_place(self) -> str:
        return f"the inventory in {self.place}"

    def record(self, record: InventoryEntry) -> None:
        self._connection.execute(insert(CA_INVENTORY).values(**inventory_values(record, self.master)))
        failpoint("ca.inventory-written")

    def inventory(self) -> Inventory:
        return Inventory(map(entry_of, self._inventory_rows()))

    def _inventory_rows(self) -> Sequence[Row[Any]]:
        query = select(CA_INVENTORY).order_by(CA_INVENTORY.c.serial)
        rows: Sequence[Row[Any]] = self._read(lambda connection: connection.execute(query).all())
        return rows

    def entries_of(self, name: str) -> list[InventoryEntry]:
        query = select(CA_INVENTORY).where(CA_INVENTORY.c.name == name).order_by(CA_INVENTORY.c.serial)
        return [entry_of(row) for row in self._read(lambda connection: connection.execute(query).all())]

    def has_issued_serial(self, serial: int) -> bool:
        query = select(CA_INVENTORY.c.serial).where(CA_INVENTORY.c.serial == hex_of(serial))
        return self._read(lambda connection: connection.scalar(query)) is not None

    def replace_inventory(self, entries: list[InventoryEntry]) -> None:
        """Add the entries that are missing; those that are there keep the master that signed."""
        present = set(self._connection.scalars(select(CA_INVENTORY.c.serial)))
        missing = (inventory_values(entry, "") for entry in entries if hex_of(entry.serial) not in present)
        insert_all(self._connection, CA_INVENTORY, missing)

    # --- requests and certificates

    def request_place(self, name: str) -> str:
        return f"{valid_certname(name)} in {self.place}"

    def signed_place(self, name: str) -> str:
        return f"{valid_certname(name)} in {self.place}"

    def request(self, name: str) -> bytes | None:
        return self._pem(CA_REQUESTS, name)

    def signed(self, name: str) -> bytes | None:
        return self._pem(CA_SIGNED, name)

    def _pem(self, table: Table, name: str) -> bytes | None:
        query = select(table.c.pem).where(table.c.name == valid_certname(name))
        return bytes_of(self._read(lambda connection: connection.scalar(query)))

    def save_request(self, name: str, pem: bytes) -> None:
        self._save(CA_REQUESTS, name, pem=pem.decode(), received_by=self.master, is_decided=False)
        failpoint("ca.request-written")

    def save_signed(self, name: str, pem: bytes) -> None:
        self._save(CA_SIGNED, name, pem=pem.decode(), serial=hex_of(bundles.certificate(pem).serial_number))
        failpoint("ca.certificate-written")

    def _save(self, table: Table, name: str, **values: Any) -> None:
        values["written"] = func.clock_timestamp()
        statement = upsert(table).values(name=valid_certname(name), **values)
        with self.writing():
            self._connection.execute(statement.on_conflict_do_update(index_elements=[table.c.name], set_=values))

    def remove_request(self, name: str) -> bool:
        removed = self._remove(CA_REQUESTS, name)
        failpoint("ca.request-removed")
        return removed

    def remove_signed(self, name: str) -> bool:
        removed = self._remove(CA_SIGNED, name)
        failpoint("ca.certificate-removed")
        return removed

    def _remove(self, table: Table, name: str) -> bool:
        with self.writing():
            return self._connection.execute(delete(table).where(table.c.name == valid_certname(name))).rowcount > 0

    def request_names(self) -> list[str]:
        return self._names(CA_REQUESTS)

    def signed_names(self) -> list[str]:
        return self._names(CA_SIGNED)

    def _names(self, table: Table) -> list[str]:
        return sorted(self._read(lambda connection: connection.scalars(select(table.c.name)).all()))

    def all_names(self, *, only_requests: bool = False) -> Iterator[NameFiles]:
        requests, signed = CA_REQUESTS, CA_SIGNED
        query = (
            select(requests.c.name, requests.c.pem, text("NULL"))
            if only_requests
            else select(func.coalesce(requests.c.name, signed.c.name), requests.c.pem, signed.c.pem).select_from(
                requests.join(signed, requests.c.name == signed.c.name, full=True)
            )
        )
        for name, request, certificate in sorted(self._read(lambda connection: connection.execute(query).all()), key=lambda row: row[0]):
            yield NameFiles(name, bytes_of(request), bytes_of(certificate))

    def pending_size(self) -> tuple[int, int]:
        query = select(func.count(), func.coalesce(func.sum(func.length(CA_REQUESTS.c.pem)), 0))
        count, size = self._read(lambda connection: connection.execute(query).one())
        return count, size

    def is_older_than_certificate(self, name: str) -> bool:
        def written(table: Table) -> Any:
            return select(table.c.written).where(table.c.name == name).scalar_subquery()

        return bool(self._read(lambda connection: connection.scalar(select(written(CA_REQUESTS) <= written(CA_SIGNED)))))

    # --- requests of which autosign has not decided yet

    def undecided(self, since: float | None) -> list[str]:
        """Return those of this master, if it was killed, and those of any master that have been undecided for long."""
        age = extract("epoch", func.clock_timestamp() - CA_REQUESTS.c.written)
        is_left = age > LEFT_UNDECIDED
        if since is not None:
            is_left |= CA_REQUESTS.c.received_by == self.master
        query = select(CA_REQUESTS.c.name).where(~CA_REQUESTS.c.is_decided, is_left)
        return sorted(self._read(lambda connection: connection.scalars(query).all()))

    def mark_decided(self, name: str) -> None:
        query = update(CA_REQUESTS).where(CA_REQUESTS.c.name == valid_certname(name)).values(is_decided=True)
        with self._database.begin() as connection:
            connection.execute(query)
