"""The layout of $ssldir: which file is where, with which mode. Source: protocol reference 5.2."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from cryptography import x509

from shared.errors import BadData
from shared.filesystem.files import make_directory, owner_in, write_atomic
from shared.names import valid_certname
from shared.settings import CommonSettings

from .. import keys
from ..keys import PrivateKey
from . import bundles

T = TypeVar("T")

PUBLIC_MODE = 0o644
DIRECTORY_MODE = 0o755
PRIVATE_DIRECTORY_MODE = 0o750


@dataclass(frozen=True, slots=True)
class SslDir:
    """The files of one node, all of them below `root` unless settings say otherwise; `certname` has passed the name rule."""

    root: Path
    certname: str
    certdir: Path
    privatekeydir: Path
    publickeydir: Path
    requestdir: Path
    localcacert: Path
    hostcert: Path
    hostprivkey: Path
    hostpubkey: Path
    hostcsr: Path
    hostcrl: Path
    lock: Path

    @classmethod
    def at(cls, root: Path, certname: str) -> SslDir:
        """Return the usual places."""
        certs, private, public, requests = (root / name for name in ("certs", "private_keys", "public_keys", "certificate_requests"))
        folders = (certs, private, public, requests)
        own = f"{valid_certname(certname)}.pem"
        cert, key, public_key, csr = (folder / own for folder in folders)
        return cls(root, certname, *folders, certs / "ca.pem", cert, key, public_key, csr, root / "crl.pem", root / "ssl.lock")

    @classmethod
    def of(cls, settings: CommonSettings) -> SslDir:
        """Return the paths where the settings put each of them."""
        names = {field.name for field in fields(cls)} - {"root", "certname", "lock"}
        places: dict[str, Path] = {name: getattr(settings, name) for name in names}
        return cls(settings.ssldir, valid_certname(settings.certname), **places, lock=settings.ssl_lockfile)

    @property
    def privatedir(self) -> Path:
        return self.root / "private"

    @property
    def owner(self) -> tuple[int, int] | None:
        """(uid, gid) that root gives to new files: those of the directory itself, which may be the service's. None: the caller's own."""
        return owner_in(self.root)

    def create(self) -> None:
        """Create the missing directories, with Puppet's modes; existing ones are unchanged."""
        make_directory(self.root, mode=DIRECTORY_MODE)
        public = ((folder, DIRECTORY_MODE) for folder in (self.certdir, self.publickeydir, self.requestdir))
        private = ((folder, PRIVATE_DIRECTORY_MODE) for folder in (self.privatekeydir, self.privatedir))
        others = ((path.parent, DIRECTORY_MODE) for path in (self.localcacert, self.hostcrl, self.lock, *self.own_files()))
        for folder, mode in (*public, *private, *others):
            if not folder.exists():
                make_directory(folder, mode=mode)
                if self.owner is not None:
                    os.chown(folder, *self.owner, follow_symlinks=False)

    def authorities(self) -> tuple[x509.Certificate, ...] | None:
        """Return the CA bundle; None when there is none yet. BadData names the file."""
        pem = _read(self.localcacert)
        return None if pem is None else _named(self.localcacert, bundles.certificates, pem)

    def crls(self) -> tuple[x509.CertificateRevocationList, ...] | None:
        pem = _read(self.hostcrl)
        return None if pem is None else _named(self.hostcrl, bundles.revocation_lists, pem)

    def certificate(self) -> x509.Certificate | None:
        """Return this node's certificate; None when there is none yet."""
        pem = _read(self.hostcert)
        return None if pem is None else _named(self.hostcert, bundles.certificate, pem)

    def key(self, password: bytes | None = None) -> PrivateKey | None:
        """Return this node's private key; None when there is none yet."""
        try:
            return keys.load(self.hostprivkey, password)
        except FileNotFoundError:
            return None

    def request(self) -> bytes | None:
        """Return the PEM of this node's own request, as long as it is stored."""
        return _read(self.hostcsr)

    def save_authorities(self, pem: bytes) -> None:
        write_atomic(self.localcacert, pem, mode=PUBLIC_MODE, owner=self.owner)

    def save_crls(self, pem: bytes) -> None:
        write_atomic(self.hostcrl, pem, mode=PUBLIC_MODE, owner=self.owner)

    def save_certificate(self, certificate: x509.Certificate) -> None:
        write_atomic(self.hostcert, bundles.dump([certificate]), mode=PUBLIC_MODE, owner=self.owner)

    def save_request(self, csr: x509.CertificateSigningRequest) -> None:
        write_atomic(self.hostcsr, bundles.dump([csr]), mode=PUBLIC_MODE, owner=self.owner)

    def save_key(self, key: PrivateKey) -> None:
        """Write the private key, then its public half; a crash in between leaves a key whose public half is written next time."""
        keys.save(self.hostprivkey, key, owner=self.owner)
        self.save_public_key(key)

    def save_public_key(self, key: PrivateKey) -> None:
        write_atomic(self.hostpubkey, keys.public_pem(key.public_key()), mode=PUBLIC_MODE, owner=self.owner)

    def own_files(self) -> Iterable[Path]:
        """Return the files that belong to this node alone: what `puppet ssl clean` removes."""
        return (self.hostcert, self.hostprivkey, self.hostpubkey, self.hostcsr)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _named(path: Path, read: Callable[[bytes], T], pem: bytes) -> T:
    try:
        return read(pem)
    except BadData as err:
        raise BadData(f"{path} cannot be read: {err.message}", hint="Remove the file; the next run downloads it again.") from err
