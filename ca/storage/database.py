"""The CA in the database that masters share. Each master has copies of its certificate and CRLs, which TLS reads."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, extract, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from certs import certificates, crl, keys, signatures
from certs.files import bundles
from certs.files.cadir import CaFiles
from shared.clock import utc_now
from shared.errors import BadData, ConfigError, TooLarge
from shared.failpoints import failpoint
from shared.names import valid_certname
from shared.state.database import StateAway, StateDatabase
from shared.state.notices import notify
from shared.state.tables import CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED

from .inventory import Inventory, InventoryEntry
from .store import PRIVATE_MODE, CaContents, CaStore, NameFiles

log = logging.getLogger("puppet.ca")

TOPIC = "crl"
"""The topic of notices about another CRL or certificate of the CA."""

LOCK = 0x62756E72616B6361
"""The number of the advisory lock under which a CA writes."""

HOLD = 8
"""Seconds for which a master may do nothing while it holds the lock: one that hangs must not stop the others."""

LEFT_UNDECIDED = 300
"""Seconds after which a master that has not decided about a request must have ended: far longer than autosign takes."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The CA's row, but for the serial. `version` is -1 for copies on this machine that were read while the database was away."""

    version: int
    certificates: bytes
    certificates_written: datetime
    crls: bytes
    crls_written: datetime
    key: bytes | None


@dataclass
class _Transaction:
    connection: Connection
    row: _Row | None
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
        self.last_seen: datetime | None = None
        self.problem = ""
        self._password = password
        self._database = database
        self._row: _Row | None = None
        self._writers = threading.RLock()
        self._publishing = threading.Lock()
        self._local = threading.local()

    # --- the row and its copies on this machine

    def refresh(self) -> bool:
        """Read the CA's certificate and CRLs if they have changed; return whether they have. StateAway."""
        with self._publishing:  # also while it is read, so that no older row replaces a newer one
            known = self._row.version if self._row is not None else -1
            try:
                row = self._database.transact(lambda connection: _read_row(connection, known))
            except StateAway as err:
                self.problem = str(err)
                raise
            self.problem, self.last_seen = "", utc_now()
            self._row = row or self._row
            if self._row is not None:
                self._write_copies(self._row)
        return row is not None

    def _publish(self, row: _Row) -> None:
        """Let a row that is committed be in force here."""
        with self._publishing:
            self._row = row
            self._write_copies(row)

    def _write_copies(self, row: _Row) -> None:
        """Write the files that TLS reads, unless they are the same; a failure is logged, and `refresh` tries again."""
        files = self.files
        try:
            self.create_directories()
            if row.key is not None and self._password:
                self._write_copy(files.cakey, row.key, mode=PRIVATE_MODE)
            self._write_copy(files.cacert, row.certificates, row.certificates_written)
            if not self._has_newer_crls(row):
                self._write_copy(files.cacrl, row.crls, row.crls_written)
        except OSError as err:
            log.error("Could not write this master's copy of the CA's certificate and CRL, which TLS reads: %s", err)

    def _write_copy(self, path: Path, content: bytes, written: datetime | None = None, **options: Any) -> None:
        if _content(path) == content:
            return
        self.write(path, content, **options)
        if written is not None:
            os.utime(path, (written.timestamp(),) * 2)

    def _has_newer_crls(self, row: _Row) -> bool:
        """Return whether this machine's copy is newer, because the database was restored from a back-up."""
        copy = _content(self.files.cacrl)
        if copy in (None, row.crls):
            return False
        try:
            authorities = bundles.certificates(row.certificates)
            lists = bundles.revocation_lists(copy or b"")
            genuine = [each for each in lists if any(signatures.crl_is_genuine(each, authority) for authority in authorities)]
            return crl.newer_known(bundles.revocation_lists(row.crls), genuine) is not None
        except (BadData, TooLarge):
            return False

    def _current(self) -> _Row:
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

    def exists(self) -> bool:
        return self._row is not None

    def prepare(self) -> bool:
        """
        Read the CA; return whether there is one.

        While the database is away, this machine's copies are in force. StateAway: there are none.
        ConfigError: there is a CA in files here, but none in the database.
        """
        try:
            self.refresh()
        except StateAway as err:
            self._row = self._copies_as_row()
            if self._row is None:
                raise
            log.error("%s. The CA's certificate and CRL of %s are in force", err, self._row.crls_written.isoformat(" ", "seconds"))
        if self._row is None and self.files.cacert.exists():
            raise ConfigError(
                f"There is a CA in {self.files.cadir}, but none in the masters' database",
                hint="'puppet state move' brings it there. If this is the wrong database, correct the setting state.",
            )
        return self._row is not None

    def _copies_as_row(self) -> _Row | None:
        authorities, lists = _content(self.files.cacert), _content(self.files.cacrl)
        if authorities is None or lists is None:
            return None
        written = (datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in (self.files.cacert, self.files.cacrl))
        return _Row(-1, authorities, next(written), lists, next(written), None)

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
        with self._writing(must_exist=False) as transaction:
            if transaction.row is not None:
                raise ConfigError("There is a CA in the masters' database already; nothing was made")
            # Before the commit, so that no CA is without its key.
            self.write(self.files.cakey, key or contents.key, mode=PRIVATE_MODE)
            failpoint("ca.bootstrap-staged-cakey")
            self._insert(transaction, contents, key.decode() if self._password and key else None)
            failpoint("ca.bootstrap-staged")
        failpoint("ca.bootstrap-done")

    def _insert(self, transaction: _Transaction, contents: CaContents, key: str | None) -> None:
        connection, now = transaction.connection, func.clock_timestamp()
        _insert_all(connection, CA_INVENTORY, (_inventory_values(entry, by) for entry, by in contents.inventory))
        moment = connection.execute(select(now)).scalar_one()
        _insert_all(
            connection,
            CA_SIGNED,
            (
                {"name": name, "pem": pem.decode(), "serial": _hex(bundles.certificate(pem).serial_number), "written": moment}
                for name, pem in contents.signed.items()
            ),
        )
        _insert_all(
            connection,
            CA_REQUESTS,
            (
                {"name": name, "pem": pem.decode(), "written": moment, "received_by": self.master, "is_decided": True}
                for name, pem in contents.requests.items()
            ),
        )
        connection.execute(
            insert(CA).values(
                id=1,
                version=int(moment.timestamp() * 1000),  # higher than of any CA that was here before
                certificates=contents.certificates.decode(),
                certificates_written=now,
                crls=contents.crls.decode(),
                crls_written=now,
                key=key,
                next_serial=_hex(contents.next_serial),
            )
        )
        notify(connection, TOPIC)
        transaction.row, transaction.is_changed = _read_row(connection), True

    def contents(self) -> CaContents:
        with self.writing():
            row = self._current()
            key = keys.load(self.files.cakey, self._password)
            pems = list(self.all_names())
            entries = self._read(lambda c: c.execute(select(CA_INVENTORY).order_by(CA_INVENTORY.c.serial)).all())
            return CaContents(
                row.key or self.files.cakey.read_bytes(),
                keys.public_pem(key.public_key()),
                row.certificates,
                row.crls,
                self.next_serial(),
                tuple((_entry(each), each.signed_by) for each in entries),
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
    def _writing(self, *, must_exist: bool) -> Iterator[_Transaction]:
        with self._writers:
            with self._database.begin() as connection:
                connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{HOLD}s'"))
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
                row = _read_row(connection)
                if row is not None and row != self._row:
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
        transaction.row, transaction.is_changed = _read_row(transaction.connection), True

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
        copy = _content(self.files.cacrl)
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
        self._connection.execute(update(CA).values(next_serial=_hex(number)))
        failpoint("ca.serial-stored")

    def serial_stamp(self) -> object:
        return ""  # nothing else writes it

    def signed_serials(self) -> Iterable[int]:
        return [int(serial, 16) for serial in self._read(lambda connection: connection.scalars(select(CA_SIGNED.c.serial)).all())]

    @property
    def inventory_place(self) -> str:
        return f"the inventory in {self.place}"

    def record(self, record: InventoryEntry) -> None:
        self._connection.execute(insert(CA_INVENTORY).values(**_inventory_values(record, self.master)))
        failpoint("ca.inventory-written")

    def inventory(self) -> Inventory:
        return Inventory(map(_entry, self._read(lambda c: c.execute(select(CA_INVENTORY).order_by(CA_INVENTORY.c.serial)).all())))

    def entries_of(self, name: str) -> list[InventoryEntry]:
        query = select(CA_INVENTORY).where(CA_INVENTORY.c.name == name).order_by(CA_INVENTORY.c.serial)
        return [_entry(row) for row in self._read(lambda connection: connection.execute(query).all())]

    def has_issued_serial(self, serial: int) -> bool:
        query = select(CA_INVENTORY.c.serial).where(CA_INVENTORY.c.serial == _hex(serial))
        return self._read(lambda connection: connection.scalar(query)) is not None

    def replace_inventory(self, entries: list[InventoryEntry]) -> None:
        """Add the entries that are missing; those that are there keep the master that signed."""
        present = set(self._connection.scalars(select(CA_INVENTORY.c.serial)))
        missing = (_inventory_values(entry, "") for entry in entries if _hex(entry.serial) not in present)
        _insert_all(self._connection, CA_INVENTORY, missing)

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
        return _bytes(self._read(lambda connection: connection.scalar(query)))

    def save_request(self, name: str, pem: bytes) -> None:
        self._save(CA_REQUESTS, name, pem=pem.decode(), received_by=self.master, is_decided=False)
        failpoint("ca.request-written")

    def save_signed(self, name: str, pem: bytes) -> None:
        self._save(CA_SIGNED, name, pem=pem.decode(), serial=_hex(bundles.certificate(pem).serial_number))
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
            yield NameFiles(name, _bytes(request), _bytes(certificate))

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
        mine: Column[Any] | Any = CA_REQUESTS.c.received_by == self.master if since is not None else text("false")
        query = select(CA_REQUESTS.c.name).where(~CA_REQUESTS.c.is_decided, mine | (age > LEFT_UNDECIDED))
        return sorted(self._read(lambda connection: connection.scalars(query).all()))

    def mark_decided(self, name: str) -> None:
        query = update(CA_REQUESTS).where(CA_REQUESTS.c.name == valid_certname(name)).values(is_decided=True)
        with self._database.begin() as connection:
            connection.execute(query)


def _read_row(connection: Connection, known: int | None = None) -> _Row | None:
    """Return the CA's row; None when there is none, or it has the known version."""
    columns = (CA.c.version, CA.c.certificates, CA.c.certificates_written, CA.c.crls, CA.c.crls_written, CA.c.key)
    query = select(*columns) if known is None else select(*columns).where(CA.c.version != known)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return _Row(row[0], row[1].encode(), row[2], row[3].encode(), row[4], _bytes(row[5]))


def _insert_all(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    if values := list(rows):
        connection.execute(insert(table), values)


def _inventory_values(entry: InventoryEntry, signed_by: str) -> dict[str, Any]:
    return {
        "serial": _hex(entry.serial),
        "not_before": entry.not_before,
        "not_after": entry.not_after,
        "subject": entry.subject,
        "name": entry.name,
        "signed_by": signed_by,
    }


def _entry(row: Any) -> InventoryEntry:
    return InventoryEntry(int(row.serial, 16), row.not_before, row.not_after, row.subject)


def _hex(serial: int) -> str:
    return f"{serial:040x}"


def _bytes(value: str | None) -> bytes | None:
    return value.encode() if value is not None else None


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
