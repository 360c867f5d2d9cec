"""The CA's revocation lists as they are in its file, which never goes back to an older one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cryptography import x509

from certs import crl, signatures
from certs.files import bundles
from shared.errors import BadData, ConfigError, TooLarge

from .signers import Signer, Signers
from .storage.folder import NEWEST_CRLS
from .storage.store import CaStore

log = logging.getLogger("puppet.ca")


class CrlFile(NamedTuple):
    pem: bytes
    lists: tuple[x509.CertificateRevocationList, ...]


@dataclass(frozen=True, slots=True)
class Crls:
    """
    The parsed CRL file: our own list, that of a roll-over's other CA, those of other authorities, and the serials that we revoked.

    `is_whole`: the file has one list of each authority, and ours has all serials that we ever revoked.
    """

    stamp: tuple[object, ...]
    file: CrlFile
    own: x509.CertificateRevocationList
    companion: x509.CertificateRevocationList | None
    others: tuple[x509.CertificateRevocationList, ...]
    revoked: frozenset[int]
    is_whole: bool

    @property
    def ours(self) -> tuple[x509.CertificateRevocationList, ...]:
        return (self.own,) if self.companion is None else (self.own, self.companion)


class CrlReader:
    """Reads the CRL file when it, or one of the CA's certificates, has changed."""

    def __init__(self, store: CaStore, signers: Callable[[], Signers]) -> None:
        self.store = store
        self.signers = signers
        self._loaded: Crls | None = None

    def load(self) -> Crls:
        """
        Return the lists in force. Blocks.

        Raises:
            ConfigError: the file cannot be read, or has no list of ours. Older lists than its copy are an error only the first time:
                later, those in force stay.
        """
        place, known, both = self.store.crls_place, self._loaded, self.signers()
        stamp = (self.store.crls_stamp(), *both.stamps)
        if known is not None and known.stamp == stamp:
            return known
        # The copies are read before the file itself: another process writes the file first.
        seen = [] if known is None else [known.file]
        seen += [_parsed(f"{place} (a copy)", copy) for copy in self.store.newest_crls()]
        file = _parsed(place, self.store.crls())
        signers = {signer.certificate.subject: signer for signer in both.all}
        seen_lists = [each for _, lists in seen for each in lists if each.issuer not in signers or _lists_of(signers[each.issuer], [each])]
        newer = crl.newer_known(file.lists, seen_lists)
        if newer is not None:
            file = self._newer_file(newer, file, seen, is_first=known is None)
        own = _lists_of(both.own, file.lists)
        if not own:
            raise ConfigError(f"There is no CRL of this CA in {place}", hint="Restore it from a backup.")
        newest = max(own, key=crl.number_of)
        companions = _lists_of(both.companion, file.lists) if both.companion is not None else []
        companion = max(companions, key=crl.number_of, default=None)
        others = {each.issuer: each for each in sorted(file.lists, key=crl.number_of) if each.issuer not in signers}
        ours = (*own, *companions, *(each for each in seen_lists if each.issuer in signers))
        revoked = frozenset[int]().union(*map(crl.serials, ours))
        is_whole = len({each.issuer for each in file.lists}) == len(file.lists) and revoked <= crl.serials(newest)
        loaded = Crls(stamp, file, newest, companion, tuple(others.values()), revoked, is_whole)
        if self.store.crls_are_settled:
            self._loaded = loaded
        return loaded

    def _newer_file(self, newer: x509.CertificateRevocationList, file: CrlFile, seen: Iterable[CrlFile], *, is_first: bool) -> CrlFile:
        """Return what is in force instead of a file with older lists than those seen; ConfigError where a master must not start so."""
        number = max(crl.number_of(each) for each in file.lists if each.issuer == newer.issuer)
        message = (
            f"The CRL {self.store.crls_place} is older than one that was in use: its number is {number}, and "
            f"{crl.number_of(newer)} was reached"
        )
        better = next(each for each in seen if newer in each.lists)
        if self.store.heals_crls:
            log.warning("%s. The revocations of both are in force and are signed again", message)
            return CrlFile(better.pem, (*better.lists, *file.lists))
        error = ConfigError(
            message,
            hint="It would make revoked certificates valid again. Stop the master, add the newer one, and start it: "
            f"cat {self.store.files.cadir / NEWEST_CRLS} >> {self.store.crls_place} (docs/recovery.md).",
        )
        if is_first:
            raise error
        log.error("%s. The newer one stays in force. %s", error, error.hint)
        return better


def _parsed(place: str, pem: bytes) -> CrlFile:
    try:
        return CrlFile(pem, bundles.revocation_lists(pem))
    except (BadData, TooLarge) as err:
        raise ConfigError(
            f"The CRL {place} cannot be read: {err.message}",
            hint="Restore it from a backup: without it, revoked certificates would be accepted.",
        ) from err


def _lists_of(signer: Signer, lists: Iterable[x509.CertificateRevocationList]) -> list[x509.CertificateRevocationList]:
    return [signed_list for signed_list in lists if signatures.crl_is_genuine(signed_list, signer.certificate)]
