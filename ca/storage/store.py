"""Where a CA keeps what it knows: the interface of its stores, which take no decisions."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from certs.files.cadir import CaFiles
from shared.filesystem.files import is_readable_by_others, make_directory, owner_in, write_atomic

from .inventory import Inventory, InventoryEntry

log = logging.getLogger("puppet.ca")

TOPIC = "crl"
"""The topic of notices about another CRL or certificate of the CA."""

PUBLIC_MODE, PRIVATE_MODE = 0o644, 0o640
MAX_FILE = 1024 * 1024  # bytes of a request or certificate


class NameFiles(NamedTuple):
    """The PEM of a name's pending request and of its certificate; None where there is none."""

    name: str
    request: bytes | None
    certificate: bytes | None


@dataclass(frozen=True, slots=True)
class CaContents:
    """
    A whole CA: its key and certificates, its CRLs, all in PEM; the next serial; and, by name, the PEMs of requests and certificates.

    Each entry of the inventory comes with the name of the master that signed, '' where that is not recorded.
    """

    key: bytes
    public_key: bytes
    certificates: bytes
    crls: bytes
    next_serial: int
    inventory: tuple[tuple[InventoryEntry, str], ...]
    requests: Mapping[str, bytes] = field(default_factory=dict)
    signed: Mapping[str, bytes] = field(default_factory=dict)


class CaStore(ABC):
    """
    Reading and writing of what a CA keeps; each write is whole or not at all, and durable.

    What is written inside `with store.writing():` is safe against other threads, processes and masters; reading needs no lock. The CA's
    certificate, key and CRL are files on this machine in any case, for they are what TLS reads. All methods block.

    Args:
        files: The folder on this machine. Run by root on a directory of another user, new files go to that user.
    """

    is_shared = False
    """Whether other masters use the same CA at the same time."""

    def __init__(self, files: CaFiles) -> None:
        self.files = files

    def close(self) -> None:
        """Close what was opened for this store alone, at the end of a command."""
        return

    # --- files of this machine

    @property
    def owner(self) -> tuple[int, int] | None:
        """(uid, gid) that new files get; None: the caller's own."""
        return owner_in(self.files.cadir)

    def write(self, path: Path, data: bytes, *, mode: int = PUBLIC_MODE) -> None:
        write_atomic(path, data, mode=mode, owner=self.owner)

    def _make_folder(self, folder: Path, mode: int = 0o755) -> None:
        if not folder.exists():
            make_directory(folder, mode=mode)
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
            except OSError as err:  # of another account, or a mount that is read-only
                repaired.append(f"{path} is readable by everyone and its mode could not be changed: {err.strerror}")
        return repaired

    @abstractmethod
    def create_directories(self) -> None:
        """Create the folders on this machine that are missing."""

    @abstractmethod
    def litter(self) -> list[Path]:
        """Return the files that a crash left behind. They are never listed, signed or served."""

    # --- what other masters change

    @property
    def is_away(self) -> bool:
        """Whether the store could not be used when it was asked last; what is on this machine is in force then."""
        return False

    last_seen: datetime | None = None
    """When the CRLs in force were last those of a store that may be away; None: never, or it cannot be."""

    def refresh(self) -> bool:
        """Take over what other masters have changed since the last time; return whether it was anything. Unavailable: it is away."""
        return False

    # --- a CA as a whole

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the CA is, for messages."""

    @abstractmethod
    def prepare(self) -> bool:
        """Finish or undo a creation that was interrupted; return whether there is a whole CA now. ConfigError for half of one."""

    @abstractmethod
    def check_whole(self) -> None:
        """Raise ConfigError when only a part of a CA is there, or what this machine needs of it is missing."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether anything of a CA exists."""

    @abstractmethod
    def check_free(self) -> None:
        """Raise ConfigError when a new CA must not be made here."""

    @abstractmethod
    def install(self, contents: CaContents) -> None:
        """Store a whole CA where there is none, whole or not at all; ConfigError when there is one already."""

    @abstractmethod
    def contents(self) -> CaContents:
        """Return everything that is stored."""

    @abstractmethod
    def retire(self, successor: str) -> None:
        """Make sure that nobody uses this CA here any more, since it has moved to `successor`; the caller holds the lock."""

    def is_retired(self) -> bool:
        """Return whether only the rest of a CA that has moved is here."""
        return False

    # --- changes

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Keep all others from writing; may be nested. Unavailable when another holds the lock too long, or the store is away."""

    def moving(self) -> AbstractContextManager[None]:
        """Do the same for as long as moving a CA takes."""
        return self.writing()

    def when_stored(self, work: Callable[[], None]) -> None:
        """Call `work` as soon as what was written so far is stored for good; never, if it is undone."""
        work()

    # --- CRLs

    @property
    def crls_are_settled(self) -> bool:
        """Whether the CRLs that `crls` returns to this thread are stored for good."""
        return True

    @abstractmethod
    def crls_stamp(self) -> object:
        """Return what differs after each change of the CRLs."""

    @abstractmethod
    def crls(self) -> bytes:
        """Return the PEM of all CRLs."""

    @abstractmethod
    def newest_crls(self) -> Iterator[bytes]:
        """Yield copies of CRLs that were in force; one that is newer than `crls` shows that these are from a back-up."""

    heals_crls = False
    """Whether CRLs from a back-up are completed from the newer copy; otherwise the administrator has to."""

    @abstractmethod
    def save_crls(self, pem: bytes) -> None:
        """Store the CRLs; the caller holds the lock."""

    @abstractmethod
    def copy_crls(self, pem: bytes) -> None:
        """Keep a copy of CRLs in force for `newest_crls`; the caller holds the lock."""

    @property
    @abstractmethod
    def crls_place(self) -> str:
        """Where the CRLs are, for messages."""

    @abstractmethod
    def certificates_written(self) -> float:
        """Return when the CA's certificates were last written, in seconds since the epoch."""

    @abstractmethod
    def crls_written(self) -> float:
        """Return when the CRLs were last written, in seconds since the epoch."""

    # --- serial and inventory

    @property
    @abstractmethod
    def serial_place(self) -> str:
        """Where the next serial is, for messages."""

    @abstractmethod
    def next_serial(self) -> int:
        """Return the number that the next certificate gets; ConfigError when it is none."""

    @abstractmethod
    def save_next_serial(self, number: int) -> None:
        """Store the number that the next certificate gets; the caller holds the lock."""

    @abstractmethod
    def serial_stamp(self) -> object:
        """Return what differs after the next serial was written by anything but a CA under the lock."""

    @abstractmethod
    def signed_serials(self) -> Iterable[int]:
        """Return the serials of the certificates of all names."""

    @property
    @abstractmethod
    def inventory_place(self) -> str:
        """Where the inventory is, for messages."""

    @abstractmethod
    def record(self, record: InventoryEntry) -> None:
        """Add an entry to the inventory; the caller holds the lock."""

    @abstractmethod
    def inventory(self) -> Inventory:
        """Return all entries."""

    @abstractmethod
    def entries_of(self, name: str) -> list[InventoryEntry]:
        """Return the entries of a name, the oldest first."""

    @abstractmethod
    def has_issued_serial(self, serial: int) -> bool:
        """Return whether the inventory has a serial."""

    @abstractmethod
    def replace_inventory(self, entries: list[InventoryEntry]) -> None:
        """Let the inventory consist of these; the caller holds the lock."""

    # --- requests and certificates

    @abstractmethod
    def request_place(self, name: str) -> str:
        """Where the request of a name is, for messages."""

    @abstractmethod
    def signed_place(self, name: str) -> str:
        """Where the certificate of a name is, for messages."""

    @abstractmethod
    def request(self, name: str) -> bytes | None:
        """Return the PEM of a pending request; None when there is none, or only the empty rest of one."""

    @abstractmethod
    def signed(self, name: str) -> bytes | None:
        """Return the PEM of an issued certificate; None when there is none."""

    @abstractmethod
    def save_request(self, name: str, pem: bytes) -> None: ...

    @abstractmethod
    def save_signed(self, name: str, pem: bytes) -> None: ...

    @abstractmethod
    def remove_request(self, name: str) -> bool:
        """Return whether there was one."""

    @abstractmethod
    def remove_signed(self, name: str) -> bool:
        """Return whether there was one."""

    @abstractmethod
    def request_names(self) -> list[str]:
        """Return the names with a request, sorted; some may break the name rule, which a listing shows."""

    @abstractmethod
    def signed_names(self) -> list[str]:
        """Return the names with a certificate, sorted."""

    @abstractmethod
    def all_names(self, *, only_requests: bool = False) -> Iterator[NameFiles]:
        """Yield everything by name, sorted; `only_requests`: of those with a pending request."""

    @abstractmethod
    def pending_size(self) -> tuple[int, int]:
        """Return how many requests are pending, and their bytes together."""

    @abstractmethod
    def is_older_than_certificate(self, name: str) -> bool:
        """Return whether the name's request was stored before its certificate was; both exist."""

    # --- requests of which autosign has not decided yet

    @abstractmethod
    def undecided(self, since: float | None) -> list[str]:
        """
        Return the pending requests whose master was killed before it had decided, or may have been.

        Args:
            since: When the last master on this machine started that was killed, in seconds since the epoch; None: it was not.
        """

    @abstractmethod
    def mark_decided(self, name: str) -> None:
        """Note that autosign leaves a request pending."""
