"""The CA's directory, in the layout of Puppet's own: files only, no decisions. Source: protocol reference 5.2."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from certs.files import bundles
from certs.files.cadir import CaFiles
from shared.errors import BadData, ConfigError, Conflict, NotFound, PuppetError
from shared.failpoints import failpoint
from shared.filesystem.files import FileLock, append_synced, make_directory, open_beneath, sync_directory, write_atomic
from shared.filesystem.identity import Stamp, identity, identity_of, stamp_of
from shared.names import is_certname, quoted_for_log, valid_certname

from . import inventory
from .inventory import Inventory, InventoryEntry
from .store import MAX_FILE, PRIVATE_MODE, PUBLIC_MODE, CaContents, CaStore, NameFiles

log = logging.getLogger("puppet.ca")

NEWEST_CRLS = "newest_crl_*.pem"
LOCK_TIMEOUT = 30.0  # seconds that a writer waits for another process
MOVED = "moved"  # the folder with what is left of a CA that has moved to a database
_COMPLETE = "complete"


class FolderStore(CaStore):
    """The CA in files of one machine."""

    def __init__(self, files: CaFiles) -> None:
        super().__init__(files)
        self.lock_timeout = LOCK_TIMEOUT
        self._threads = threading.RLock()
        self._depth = 0
        self._file_lock: FileLock | None = None
        self._inventory: tuple[Stamp, Inventory] = (None, Inventory())
        self._pending: tuple[Stamp, int, int] = (None, 0, 0)  # of requests/: its identity, count, bytes
        self._signed: dict[str, tuple[Stamp, int]] = {}  # name: (identity of the file, serial)

    # --- a CA as a whole

    @property
    def place(self) -> str:
        return str(self.files.cadir)

    def exists(self) -> bool:
        return any(path.exists() for path in self.files.essential.values())

    def check_whole(self) -> None:
        """Raise ConfigError, listing existing and missing files, when only a part of a CA is there."""
        there = [f"{name} ({path})" for name, path in self.files.essential.items() if path.exists()]
        missing = [f"{name} ({path})" for name, path in self.files.essential.items() if not path.exists()]
        if there and missing:
            hint = (
                "Nothing was changed. Restore the missing files from a backup; 'puppet cert reinventory' rebuilds a lost inventory. "
                "To make a new CA instead, move all of them away: every node then needs a new certificate."
            )
            if self._moved.exists():
                hint = "The CA has moved to a database: set state to that, or 'puppet state move --to files' brings it back."
            raise ConfigError(
                f"The CA in {self.files.cadir} is not whole. Missing: {', '.join(missing)}. There: {', '.join(there)}", hint=hint
            )

    @property
    def _moved(self) -> Path:
        return self.files.cadir / MOVED

    def create_directories(self) -> None:
        self._make_folder(self.files.cadir, 0o750)
        self._make_folder(self.files.csrdir)
        self._make_folder(self.files.signeddir)

    def prepare(self) -> bool:
        files = self.files
        if files.staging.exists():
            with self.writing():  # waits for another process that is just making the CA
                if (files.staging / _COMPLETE).exists():
                    self._move_into_place()
                elif files.staging.exists():
                    shutil.rmtree(files.staging)  # it was not whole, and nothing of it was in place
        if files.serial.exists():
            shutil.rmtree(self._moved, ignore_errors=True)  # it is from before the CA came back
        self.check_whole()
        return self.exists()

    def check_free(self) -> None:
        if self.exists():
            raise ConfigError(f"There is a CA in {self.files.cadir} already; nothing was made")

    def install(self, contents: CaContents) -> None:
        """
        Store a whole CA. It is prepared in a temporary folder, marked as complete, and then moved file by file: a crash before the mark
        leaves nothing, one after it is finished by the next `prepare`.
        """
        files = self.files
        self.create_directories()
        with self.writing():
            if files.serial.exists() or files.cert_inventory.exists():
                raise ConfigError(f"There is a CA in {files.cadir} already; nothing was made")
            if files.cacert.exists() and files.cacert.read_bytes() != contents.certificates:
                raise ConfigError(f"{files.cacert} is the certificate of another CA; nothing was made", hint="Move that CA away.")
            for path_of, pems in ((self.request_path, contents.requests), (self.signed_path, contents.signed)):
                for name, pem in pems.items():
                    write_atomic(path_of(name), pem, mode=PUBLIC_MODE, owner=self.owner, durable=False)
            if contents.requests or contents.signed:
                os.sync()  # once for all of them
            make_directory(files.staging, mode=0o700)
            for what, content in (
                ("cakey", contents.key),
                ("cacert", contents.certificates),
                ("capub", contents.public_key),
                ("cacrl", contents.crls),
                ("serial", f"{contents.next_serial:04X}".encode()),
                ("cert_inventory", "".join(str(entry) for entry, _ in contents.inventory).encode()),
            ):
                self.write(files.staging / what, content, mode=PRIVATE_MODE if what == "cakey" else PUBLIC_MODE)
                failpoint(f"ca.bootstrap-staged-{what}")
            write_atomic(files.staging / _COMPLETE, b"")
            failpoint("ca.bootstrap-staged")
            self._move_into_place()

    def _move_into_place(self) -> None:
        files = self.files
        for what in ("cakey", "cacert", "capub", "serial", "cert_inventory", "cacrl"):
            staged, target = files.staging / what, Path(getattr(files, what))
            if not staged.exists():
                continue
            make_directory(target.parent)
            self.write(target, staged.read_bytes(), mode=PRIVATE_MODE if what == "cakey" else PUBLIC_MODE)
            failpoint(f"ca.bootstrap-moved-{what}")
        shutil.rmtree(files.staging)
        failpoint("ca.bootstrap-done")

    def contents(self) -> CaContents:
        files = self.files
        if files.rollover.exists():
            raise Conflict("A roll-over is under way", hint="See 'puppet cert rollover status'; finish it first.")
        pems = {each.name: each for each in self.all_names() if is_certname(each.name)}
        return CaContents(
            files.cakey.read_bytes(),
            files.capub.read_bytes(),
            files.cacert.read_bytes(),
            files.cacrl.read_bytes(),
            self.next_serial(),
            tuple((entry, "") for entry in self.inventory().records),
            {name: each.request for name, each in pems.items() if each.request is not None},
            {name: each.certificate for name, each in pems.items() if each.certificate is not None},
        )

    def retire(self, successor: str) -> None:
        """Move what only a CA in files needs into a folder; certificate, key and CRL stay, for the master's TLS."""
        files = self.files
        make_directory(self._moved, mode=0o700)
        self._own(self._moved)
        # The serial first: without it nothing is signed here.
        for path in (files.serial, files.cert_inventory, files.csrdir, files.signeddir, *files.cadir.glob(NEWEST_CRLS)):
            with suppress(FileNotFoundError):
                path.rename(self._moved / f"{path.name}")
            failpoint(f"ca.retired-{path.name}")
        sync_directory(files.cadir)
        log.info("What is left of the CA in %s is in %s: it is in %s now", files.cadir, self._moved, successor)

    def is_retired(self) -> bool:
        return self._moved.exists() and not self.files.serial.exists()

    # --- changes

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep all others from writing, in this process and others; may be nested. Unavailable when another holds the lock too long."""
        with self._threads:
            if self._depth == 0:
                self._file_lock = FileLock(self.files.cadir / "ca.lock")
                self._file_lock.acquire(timeout=self.lock_timeout)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._file_lock is not None:
                    self._file_lock.release()
                    self._file_lock = None

    def take_folder(self, made: Path, place: Path) -> None:
        """Rename a folder of the cadir, synced, and give it the directory's owner."""
        self._own(made)
        made.rename(place)
        sync_directory(self.files.cadir)

    # --- CRLs

    @property
    def crls_place(self) -> str:
        return str(self.files.cacrl)

    def crls_stamp(self) -> object:
        return stamp_of(self.files.cacrl)

    def crls(self) -> bytes:
        return self.files.cacrl.read_bytes()

    def newest_crls(self) -> Iterator[bytes]:
        """
        Yield the copies of the newest CRL file: one, unless somebody has added an older one.

        Each is named after its content, so that unpacking an old back-up over the directory does not replace it.
        """
        for path in self._copies():
            with suppress(FileNotFoundError):  # another process has just removed it
                yield path.read_bytes()

    def _copies(self) -> list[Path]:
        return sorted(self.files.cadir.glob(NEWEST_CRLS))

    def certificates_written(self) -> float:
        return self.files.cacert.stat().st_mtime

    def crls_written(self) -> float:
        return self.files.cacrl.stat().st_mtime

    def save_crls(self, pem: bytes) -> None:
        """Write the CRL file, then the copy that shows when somebody puts an older one in its place; the caller holds the lock."""
        self.write(self.files.cacrl, pem)
        failpoint("ca.crl-written")
        self.copy_crls(pem)

    def copy_crls(self, pem: bytes) -> None:
        """Keep this content of the CRL file as its newest; the caller holds the lock. A full disk is no error: the CRL itself counts."""
        copy = self.files.cadir / NEWEST_CRLS.replace("*", hashlib.sha256(pem).hexdigest()[:16])
        copies = self._copies()
        try:
            if copy not in copies:
                self.write(copy, pem)
            for older in copies:
                if older != copy:
                    older.unlink(missing_ok=True)
        except OSError as err:
            log.warning("Could not write the copy of the CRL, %s, and try again within the hour: %s", copy, err)

    # --- serial and inventory

    @property
    def serial_place(self) -> str:
        return str(self.files.serial)

    def next_serial(self) -> int:
        """Return the number that the next certificate gets; ConfigError when the file says nothing of the kind."""
        text = self.files.serial.read_text("ascii", "replace").strip()
        try:
            number = int(text, 16)
        except ValueError:
            number = 0
        if number < 1:
            raise ConfigError(
                f"The serial file {self.files.serial} holds {quoted_for_log(text)}, which is not a number in hex",
                hint="Write the next free serial there: one more than the highest in inventory.txt, for example 0005.",
            )
        return number

    def save_next_serial(self, number: int) -> None:
        """Store the number that the next certificate gets; the caller holds the lock."""
        self.write(self.files.serial, f"{number:04X}".encode())
        failpoint("ca.serial-stored")

    def serial_stamp(self) -> object:
        return identity_of(self.files.serial)

    def signed_serials(self) -> Iterable[int]:
        """Return the serials of the certificates in signed/; only files that are new or were written since are read."""
        with os.scandir(self.files.signeddir) as entries:
            changed_by_name = {entry.name.removesuffix(".pem"): identity(entry.stat(follow_symlinks=False)) for entry in entries}
        for name in self.signed_names():
            changed = changed_by_name.get(name)
            if changed is None or not is_certname(name) or self._signed.get(name, (None, 0))[0] == changed:
                continue
            try:
                pem = self.signed(name)
                if pem is not None:
                    self._signed[name] = (changed, bundles.certificate(pem).serial_number)
            except BadData:
                continue  # litter, which the start of the master names
            except PuppetError as err:
                log.warning("Could not read the serial of the certificate of %s: %s", name, err)
        return [serial for _, serial in self._signed.values()]

    @property
    def inventory_place(self) -> str:
        return str(self.files.cert_inventory)

    def record(self, record: InventoryEntry) -> None:
        """Add a line to the inventory; the caller holds the lock."""
        stamp, entries = self._inventory
        current = stamp is not None and stamp == identity_of(self.files.cert_inventory)
        append_synced(self.files.cert_inventory, str(record).encode())
        if current:
            entries.add(record)
            self._inventory = (identity_of(self.files.cert_inventory), entries)
        failpoint("ca.inventory-written")

    def inventory(self) -> Inventory:
        """Return the readable lines of the inventory; read again only when somebody else has changed the file."""
        stamp = identity_of(self.files.cert_inventory)
        if stamp is None:
            return Inventory()
        cached_stamp, entries = self._inventory
        if cached_stamp != stamp:
            entries = Inventory(inventory.inventory_entries(self.files.cert_inventory.read_text("utf-8", "replace")))
            self._inventory = (stamp, entries)
        return entries

    def entries_of(self, name: str) -> list[InventoryEntry]:
        return self.inventory().of(name)

    def has_issued_serial(self, serial: int) -> bool:
        return serial in self.inventory().serials

    def replace_inventory(self, entries: list[InventoryEntry]) -> None:
        self.write(self.files.cert_inventory, "".join(map(str, entries)).encode())

    # --- requests and certificates

    def request_place(self, name: str) -> str:
        return str(self.request_path(name))

    def signed_place(self, name: str) -> str:
        return str(self.signed_path(name))

    def request_path(self, name: str) -> Path:
        return self.files.csrdir / f"{valid_certname(name)}.pem"

    def signed_path(self, name: str) -> Path:
        return self.files.signeddir / f"{valid_certname(name)}.pem"

    def request(self, name: str) -> bytes | None:
        """Return the PEM of a pending request; None when there is none, or only the empty rest of one."""
        return _read(self.files.csrdir, name)

    def signed(self, name: str) -> bytes | None:
        """Return the PEM of an issued certificate; None when there is none."""
        return _read(self.files.signeddir, name)

    def save_request(self, name: str, pem: bytes) -> None:
        count, size = self.pending_size()
        is_new = not self.request_path(name).exists()
        self.write(self.request_path(name), pem)
        if is_new:
            self._pending = (identity_of(self.files.csrdir), count + 1, size + len(pem))
        failpoint("ca.request-written")

    def save_signed(self, name: str, pem: bytes) -> None:
        self.write(self.signed_path(name), pem)
        failpoint("ca.certificate-written")

    def remove_request(self, name: str) -> bool:
        removed = _remove(self.request_path(name))
        failpoint("ca.request-removed")
        return removed

    def remove_signed(self, name: str) -> bool:
        removed = _remove(self.signed_path(name))
        failpoint("ca.certificate-removed")
        return removed

    def request_names(self) -> list[str]:
        """Return the names with a file in requests/, sorted; some may break the name rule, which a listing shows."""
        return _names(self.files.csrdir)

    def signed_names(self) -> list[str]:
        return _names(self.files.signeddir)

    def all_names(self, *, only_requests: bool = False) -> Iterator[NameFiles]:
        for name in sorted({*self.request_names(), *(() if only_requests else self.signed_names())}):
            if is_certname(name):
                yield NameFiles(name, self.request(name), None if only_requests else self.signed(name))
            else:
                yield NameFiles(name, None, None)

    def pending_size(self) -> tuple[int, int]:
        """Return how many requests are pending, and their bytes together; counted again only when another process wrote there."""
        stamp = identity_of(self.files.csrdir)
        if self._pending[0] != stamp:
            count = size = 0
            with os.scandir(self.files.csrdir) as entries:
                for entry in entries:
                    if entry.name.endswith(".pem"):
                        count += 1
                        size += entry.stat(follow_symlinks=False).st_size
            self._pending = (stamp, count, size)
        return self._pending[1:]

    def is_older_than_certificate(self, name: str) -> bool:
        return self.request_path(name).stat().st_mtime_ns <= self.signed_path(name).stat().st_mtime_ns

    def mark_decided(self, name: str) -> None:
        """Do nothing: a request is older than the master that is asked about it later."""

    def undecided(self, since: float | None) -> list[str]:
        names: list[str] = []
        if since is None:
            return names
        for name in self.request_names():
            with suppress(FileNotFoundError):
                # Older requests were left pending by a decision, which must not be repeated.
                if is_certname(name) and self.request_path(name).stat().st_mtime >= since:
                    names.append(name)
        return names

    def litter(self) -> list[Path]:
        """Return the files that a crash left behind: temporary ones and empty ones. They are never listed, signed or served."""
        paths = []
        for folder in (self.files.cadir, self.files.csrdir, self.files.signeddir):
            try:
                entries = list(os.scandir(folder))
            except FileNotFoundError:
                continue
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or entry.name == "ca.lock" or entry.name == "master.lock":
                    continue
                temporary = entry.name.endswith(".tmp") or (entry.name.startswith(".") and ".tmp" in entry.name)
                empty = entry.name.endswith(".pem") and entry.stat(follow_symlinks=False).st_size == 0
                if temporary or empty:
                    paths.append(Path(entry.path))
        return sorted(paths)


def _read(folder: Path, name: str) -> bytes | None:
    try:
        with open_beneath(folder, f"{valid_certname(name)}.pem") as file:
            pem = file.read(MAX_FILE + 1)
    except NotFound:
        return None
    if len(pem) > MAX_FILE:
        raise ConfigError(f"{folder / name}.pem is larger than {MAX_FILE} bytes", hint="It is no request or certificate: move it away.")
    return pem or None


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name[:-4] for entry in os.scandir(folder) if entry.name.endswith(".pem") and not entry.name.startswith("."))
    except FileNotFoundError:
        return []
