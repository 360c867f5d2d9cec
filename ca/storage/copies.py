"""A master's copies of the certificate and CRLs of a CA in a database: what TLS reads, and what holds while the database is away."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from certs import crl, signatures
from certs.files import bundles
from certs.files.cadir import CaFiles
from shared.errors import BadData, ConfigError, TooLarge

from .store import PRIVATE_MODE, CaStore

log = logging.getLogger("puppet.ca")


@dataclass(frozen=True, slots=True)
class CaRow:
    """The CA's row, but for the serial. `version` is -1 for copies on this machine that were read while the database was away."""

    version: int
    certificates: bytes
    certificates_written: datetime
    crls: bytes
    crls_written: datetime
    key: bytes | None


def read_copies(files: CaFiles) -> CaRow | None:
    """Return the copies; None when there are none."""
    authorities, lists = content_of(files.cacert), content_of(files.cacrl)
    if authorities is None or lists is None:
        return None
    written = [datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in (files.cacert, files.cacrl)]
    return CaRow(-1, authorities, written[0], lists, written[1], None)


def write_copies(store: CaStore, row: CaRow, *, with_key: bool) -> None:
    """
    Write the files that TLS reads, unless they are the same, with the times of the database. A failure is an error in the log.

    CRLs that are newer than those of the database stay, for it was restored from a back-up; and so do all when the CA has not signed those.
    """
    files = store.files
    try:
        store.create_directories()
        if row.key is not None and with_key:
            _write_copy(store, files.cakey, row.key, mode=PRIVATE_MODE)
        _write_copy(store, files.cacert, row.certificates, row.certificates_written)
        if _may_replace_crls(files, row):
            _write_copy(store, files.cacrl, row.crls, row.crls_written)
    except OSError as err:
        log.error("Could not write this master's copy of the CA's certificate and CRL, which TLS reads: %s", err)


def _write_copy(store: CaStore, path: Path, content: bytes, written: datetime | None = None, **options: Any) -> None:
    if content_of(path) == content:
        return
    store.write(path, content, **options)
    if written is not None:
        os.utime(path, (written.timestamp(),) * 2)


def _may_replace_crls(files: CaFiles, row: CaRow) -> bool:
    copy = content_of(files.cacrl)
    if copy == row.crls:
        return False
    try:
        authorities = bundles.certificates(row.certificates)
        lists = _genuine(row.crls, authorities)
        if not lists:
            log.error("The CA has not signed the CRL in the masters' database: the copy %s stays", files.cacrl)
            return False
        return copy is None or crl.newer_known(lists, _genuine(copy, authorities)) is None
    except (BadData, TooLarge) as err:
        log.error("The CRL in the masters' database, or the copy %s, cannot be read: %s", files.cacrl, err)
        return copy is None


def _genuine(pem: bytes, authorities: Sequence[x509.Certificate]) -> list[x509.CertificateRevocationList]:
    lists = bundles.revocation_lists(pem)
    return [each for each in lists if any(signatures.crl_is_genuine(each, authority) for authority in authorities)]


def check_certificates(files: CaFiles, row: CaRow) -> None:
    """
    Raise ConfigError when this machine's copy of the CA's certificate is another one.

    TLS trusts the copy: whoever can write to the database must not be able to have another CA trusted.
    """
    copy = content_of(files.cacert)
    if copy is not None and copy != row.certificates:
        raise ConfigError(
            f"The CA's certificate in the masters' database is not the one in {files.cacert}",
            hint=f"Somebody has changed one of them. If you have replaced the CA, remove {files.cacert} and {files.cacrl} on this master.",
        )


def content_of(path: Path) -> bytes | None:
    """Return the content of a file; None when it does not exist."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
