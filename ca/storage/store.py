"""The CA's directory, in the layout of Puppet's own: files only, no decisions. Source: protocol reference 5.2."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certs.files.cadir import CaFiles
from shared.errors import BadName, ConfigError, NotFound
from shared.failpoints import failpoint
from shared.filesystem.files import (
    FileLock,
    append_synced,
    is_readable_by_others,
    make_directory,
    open_beneath,
    owner_in,
    sync_directory,
    write_atomic,
)
from shared.filesystem.identity import Stamp, identity_of
from shared.names import quoted_for_log, valid_certname

from . import inventory
from .inventory import Inventory, InventoryEntry

log = logging.getLogger("puppet.ca")

PUBLIC_MODE, PRIVATE_MODE = 0o644, 0o640
MAX_FILE = 1024 * 1024  # bytes of a request or certificate
NEWEST_CRLS = "newest_crl_*.pem"
LOCK_TIMEOUT = 30.0  # seconds that a writer waits for another process


class CaStore:
    """
    Reading and writing of a CA's files; each write is whole or not at all, and synced.

    What is written inside `with store.writing():` is safe against other threads and processes; reading needs no lock.
    Run by root on a directory of another user, new files go to that user. All methods block.
    """

    def __init__(self, files: CaFiles) -> None:
        self.files = files
        self.lock_timeout = LOCK_TIMEOUT
        self._threads = threading.RLock()
        self._depth = 0
        self._file_lock: FileLock | None = None
        self._inventory: tuple[Stamp, Inventory] = (None, Inventory())

    @property
    def owner(self) -> tuple[int, int] | None:
        """(uid, gid) that new files get; None: the caller's own."""
        return owner_in(self.files.cadir)

    def exists(self) -> bool:
        """Return whether anything of a CA exists."""
        return any(path.exists() for path in self.files.essential.values())

    def check_whole(self) -> None:
        """Raise ConfigError, listing existing and missing files, when only a part of a CA is there."""
        there = [f"{name} ({path})" for name, path in self.files.essential.items() if path.exists()]
        missing = [f"{name} ({path})" for name, path in self.files.essential.items() if not path.exists()]
        if there and missing:
            raise ConfigError(
                f"The CA in {self.files.cadir} is not whole. Missing: {', '.join(missing)}. There: {', '.join(there)}",
                hint="Nothing was changed. Restore the missing files from a backup; 'puppet cert reinventory' rebuilds a lost inventory. "
                "To make a new CA instead, move all of them away: every node then needs a new certificate.",
            )

    def create_directories(self) -> None:
        files = self.files
        folders = [(files.cadir, 0o750 if not files.cadir.exists() else 0o755), (files.csrdir, 0o755), (files.signeddir, 0o755)]
        for folder, mode in folders:
            existed = folder.exists()
            make_directory(folder, mode=mode)
            if not existed:
                self._own(folder)

    def _own(self, path: Path) -> None:
        if self.owner is not None:
            os.chown(path, *self.owner, follow_symlinks=False)

    def repair_modes(self) -> list[str]:
        """Take the private files away from others; gives a sentence for each file that was open."""
        repaired = []
        for path in (self.files.cakey, self.files.capass):
            try:
                if is_readable_by_others(path):
                    path.chmod(PRIVATE_MODE)
                    repaired.append(f"{path} was readable by everyone; its mode is now 0640. Others may have copied it.")
            except FileNotFoundError:
                continue
            except PermissionError:
                repaired.append(f"{path} is readable by everyone and its mode could not be changed")
        return repaired

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

    def write(self, path: Path, data: bytes, *, mode: int = PUBLIC_MODE) -> None:
        write_atomic(path, data, mode=mode, owner=self.owner)

    def take_folder(self, made: Path, place: Path) -> None:
        """Rename a folder of the cadir, synced, and give it the directory's owner."""
        self._own(made)
        made.rename(place)
        sync_directory(self.files.cadir)

    # --- CRLs

    def newest_crls(self) -> list[Path]:
        """
        Return the copies of the newest CRL file: one, unless somebody has added an older one.

        Each is named after its content, so that unpacking an old back-up over the directory does not replace it.
        """
        return sorted(self.files.cadir.glob(NEWEST_CRLS))

    def save_crls(self, pem: bytes) -> None:
        """Write the CRL file, then the copy that shows when somebody puts an older one in its place; the caller holds the lock."""
        self.write(self.files.cacrl, pem)
        failpoint("ca.crl-written")
        self.copy_crls(pem)

    def copy_crls(self, pem: bytes) -> None:
        """Keep this content of the CRL file as its newest; the caller holds the lock. A full disk is no error: the CRL itself counts."""
        copy = self.files.cadir / NEWEST_CRLS.replace("*", hashlib.sha256(pem).hexdigest()[:16])
        copies = self.newest_crls()
        try:
            if copy not in copies:
                self.write(copy, pem)
            for older in copies:
                if older != copy:
                    older.unlink(missing_ok=True)
        except OSError as err:
            log.warning("Could not write the copy of the CRL, %s, and try again within the hour: %s", copy, err)

    # --- serial and inventory

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

    # --- requests and certificates

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
        self.write(self.request_path(name), pem)
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

    def pending_size(self) -> tuple[int, int]:
        """Return how many requests are pending, and their bytes together."""
        count = size = 0
        with os.scandir(self.files.csrdir) as entries:
            for entry in entries:
                if entry.name.endswith(".pem"):
                    count += 1
                    size += entry.stat(follow_symlinks=False).st_size
        return count, size

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


def is_name(name: str) -> bool:
    """Return whether a file's name is one that may be a certname."""
    try:
        valid_certname(name)
    except BadName:
        return False
    return True
