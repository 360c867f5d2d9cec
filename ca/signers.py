"""The keys that sign: the CA's key and certificate, and, during a roll-over, those of the other CA too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from certs import certificates, keys
from certs.files import bundles
from certs.files.cadir import CaFiles
from certs.keys import PrivateKey
from shared.errors import ConfigError
from shared.filesystem.identity import Stamp, stamp_of


@dataclass(frozen=True, slots=True)
class Signer:
    """A CA's certificate with its key."""

    certificate: x509.Certificate
    key: PrivateKey


@dataclass(frozen=True, slots=True)
class Signers:
    """
    One loaded state of the CA's files.

    `own` issues certificates. `companion` is the other CA of a roll-over with a new key, which does not sign yet, or no longer: its CRL
    is maintained as well, and its certificates count as ours.
    """

    stamps: tuple[Stamp, ...]
    bundle: tuple[x509.Certificate, ...]
    own: Signer
    companion: Signer | None = None

    @property
    def all(self) -> tuple[Signer, ...]:
        return (self.own,) if self.companion is None else (self.own, self.companion)


@dataclass(frozen=True, slots=True)
class RolloverFiles:
    """The files of a roll-over's two CAs: only `ca_key.pem` determines which of them signs."""

    folder: Path
    old_certificate: Path
    old_key: Path
    new_certificate: Path
    new_key: Path
    started: Path
    """When it was started, ISO 8601 in UTC."""

    @classmethod
    def at(cls, folder: Path) -> RolloverFiles:
        return cls(folder, *(folder / name for name in ("old_crt.pem", "old_key.pem", "new_crt.pem", "new_key.pem", "started")))

    @classmethod
    def of(cls, files: CaFiles) -> RolloverFiles:
        return cls.at(files.rollover)


def stamps(files: CaFiles) -> tuple[Stamp, ...]:
    """Return what changes whenever another certificate or key is put there."""
    return tuple(stamp_of(path) for path in (files.cacert, files.cakey, RolloverFiles.of(files).new_certificate))


def password(files: CaFiles) -> bytes | None:
    """Return the password of the CA's keys; None if they are not encrypted."""
    try:
        return files.capass.read_bytes().strip() or None
    except FileNotFoundError:
        return None


def load(files: CaFiles) -> Signers:
    """
    Return the CA's certificates and keys as the files are now. Blocks.

    Raises:
        ConfigError: key and certificate do not belong together, or it is not a CA's. BadData, OSError: a file cannot be read.
    """
    before = stamps(files)
    key = keys.load(files.cakey, password(files))
    bundle = bundles.certificates(files.cacert.read_bytes())
    roll_over_pair = pair(files)
    # Between two writes of a roll-over the new key may be there before ca_crt.pem is in order.
    candidates = (*bundle, *(signer.certificate for signer in roll_over_pair))
    own = next((c for c in candidates if keys.belongs(key, c.public_key())), None)
    if own is None:
        raise ConfigError(
            f"The CA's key {files.cakey} does not belong to a certificate in {files.cacert}", hint="Both must come from the same backup."
        )
    if not certificates.is_authority(own):
        raise ConfigError(f"The certificate in {files.cacert} is not one of a CA (CA:FALSE)")
    companion = next((signer for signer in roll_over_pair if not keys.belongs(key, signer.certificate.public_key())), None)
    return Signers(before, bundle, Signer(own, key), companion)


def pair(files: CaFiles) -> tuple[Signer, ...]:
    """Return the old and the new CA of a roll-over, in this order; () when there is none."""
    place = RolloverFiles.of(files)
    if not place.folder.exists():
        return ()
    secret = password(files)
    return tuple(
        Signer(bundles.certificate(certificate.read_bytes()), keys.load(key, secret))
        for certificate, key in ((place.old_certificate, place.old_key), (place.new_certificate, place.new_key))
    )
