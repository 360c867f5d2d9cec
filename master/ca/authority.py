"""The certificate authority: it issues, renews and revokes. Each act is on disk before its result is returned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import certificates, crl, ocsp, signatures
from certs.files import bundles
from certs.files.bundles import MAX_CRL_BYTES
from certs.fingerprints import fingerprint
from certs.keys import PrivateKey, public_der
from shared.clock import utc_now
from shared.errors import BadData, BadRequest, ConfigError, Conflict, Denied, PuppetError, TooLarge
from shared.filesystem.identity import Stamp, stamp_of
from shared.names import quoted_for_log, valid_certname

from . import audit, signers
from .audit import Audit
from .policy import SigningPolicy
from .signers import Signer, Signers
from .storage.inventory import InventoryEntry
from .storage.serials import SerialNumbers
from .storage.store import NEWEST_CRLS, CaStore, is_name

log = logging.getLogger("puppet.ca")

YEAR = 365 * 86400
WARN_BEFORE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class CaOptions:
    """The CA's settings. Times in seconds, sizes in bytes; `master` is the master's own certname."""

    ca_ttl: int = 5 * YEAR
    renewal_ttl: int = 90 * 86400
    crl_ttl: int = 5 * YEAR
    allow_duplicate_certs: bool = False
    allow_auto_renewal: bool = True
    policy: SigningPolicy = field(default_factory=SigningPolicy)
    master: str = ""
    max_pending_requests: int = 10_000
    max_pending_bytes: int = 64 * 1024 * 1024
    max_request_bytes: int = 64 * 1024
    max_upload_bytes: int = 16 * 1024 * 1024


class _CrlFile(NamedTuple):
    pem: bytes
    lists: tuple[x509.CertificateRevocationList, ...]


@dataclass(frozen=True, slots=True)
class _Crls:
    """
    The parsed CRL file: our own list, that of a roll-over's other CA, those of other authorities, and the serials that we revoked.

    `is_whole`: the file has one list of each authority, and ours has all serials that we ever revoked.
    """

    stamp: tuple[Stamp, ...]
    file: _CrlFile
    own: x509.CertificateRevocationList
    companion: x509.CertificateRevocationList | None
    others: tuple[x509.CertificateRevocationList, ...]
    revoked: frozenset[int]
    is_whole: bool

    @property
    def ours(self) -> tuple[x509.CertificateRevocationList, ...]:
        return (self.own,) if self.companion is None else (self.own, self.companion)


class CertificateAuthority:
    """
    A complete CA: its certificate, its key and its files.

    All methods block. Those that write take the store's lock, so that a running master and `puppet cert` can use one directory.
    """

    def __init__(self, store: CaStore, rules: CaOptions, *, now: Callable[[], datetime] = utc_now, report: Audit = audit.to_log) -> None:
        self.store = store
        self.rules = rules
        self.now = now
        self.report = report
        self._signers = signers.load(store.files)
        self._crls: _Crls | None = None
        self.serials = SerialNumbers(store, revoked=self.revoked, authorities=self._own_serials)

    # --- who signs

    def signers(self) -> Signers:
        """Return the CA's certificate and key from the current files, so that a roll-over takes effect in a running master at once."""
        stamps = signers.stamps(self.store.files)
        if stamps != self._signers.stamps:
            try:
                self._signers = signers.load(self.store.files)
            except (PuppetError, OSError) as err:
                log.error("Could not load the CA's certificate and key anew, the old ones stay in force: %s", err)
                self._signers = replace(self._signers, stamps=stamps)  # one error for each change
        return self._signers

    @property
    def bundle(self) -> tuple[x509.Certificate, ...]:
        return self.signers().bundle

    @property
    def certificate(self) -> x509.Certificate:
        return self.signers().own.certificate

    @property
    def key(self) -> PrivateKey:
        return self.signers().own.key

    # --- certificates

    def issue(
        self,
        name: str,
        public_key: CertificatePublicKeyTypes,
        *,
        alternative_names: Iterable[str] = (),
        extensions: Sequence[tuple[str, bytes]] = (),
        ttl: int | None = None,
        by: str,
        action: str = "sign",
    ) -> x509.Certificate:
        """
        Return a new certificate for `name`. It is then in the inventory and in signed/, and its request is removed.

        The order makes sure that a crash loses nothing and no serial is used twice: the next serial is stored, the certificate
        is signed, recorded and written, the request is removed.

        Args:
            ttl: seconds, cut at the CA's own end; None: the setting ca_ttl.
        """
        valid_certname(name)
        with self.store.writing():
            now, own = self.now(), self.signers().own
            end = own.certificate.not_valid_after_utc
            if now >= end:
                raise Conflict(f"The CA's certificate expired on {certificates.time_text(end)}; it can sign no more")
            serial = self.serials.take()
            certificate = certificates.leaf(
                name,
                public_key,
                issuer=own.certificate,
                issuer_key=own.key,
                serial=serial,
                ttl=self.rules.ca_ttl if ttl is None else ttl,
                now=now,
                alternative_names=alternative_names,
                extensions=extensions,
            )
            self.store.record(InventoryEntry.of(certificate))
            self.store.save_signed(name, certificates.pem(certificate))
            self.store.remove_request(name)
            self.report(audit.entry(action, name, by=by) | audit.of_certificate(certificate))
        return certificate

    def _own_serials(self) -> list[int]:
        """Return the serials of the CA certificates that this CA has issued; the one above it numbers its own."""
        return [certificate.serial_number for certificate in self.bundle if self.has_issued(certificate)]

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Return whether this CA's key signed `certificate`, or the key of the other CA of a roll-over."""
        return any(signatures.issued(certificate, signer.certificate) for signer in self.signers().all)

    def renew(self, presented: x509.Certificate, *, by: str) -> x509.Certificate:
        """
        Return a certificate with the key, names and extensions of the client's current one, and new dates.

        Raises:
            Denied: it is not ours, not valid now, revoked, or its key is not that of the name's current certificate.
        """
        name = certificates.name_of(presented)
        try:
            self._check_renewal(presented, valid_certname(name))
        except PuppetError as err:
            refusal = audit.entry("renew", name, by=by, result=f"refused: {err.message}")
            self.report(refusal | audit.of_certificate(presented))
            raise
        waiting = self._unused_renewal(presented, name)
        if waiting is not None:
            log.warning(
                "%s still uses a certificate of the CA that is being replaced, although it has had a new one since %s: its ca.pem or "
                "crl.pem may lack the new CA's",
                name,
                certificates.time_text(waiting.not_valid_before_utc + certificates.BACKDATED),
            )
            return waiting
        return self.issue(
            name,
            presented.public_key(),
            alternative_names=certificates.alternative_names(presented),
            extensions=certificates.puppet_extensions(presented),
            ttl=self.rules.renewal_ttl,
            by=by,
            action="renew",
        )

    def _check_renewal(self, presented: x509.Certificate, name: str) -> None:
        if not self.has_issued(presented):
            raise Denied("Certificate present, but does not match signature")
        now = self.now()
        if not presented.not_valid_before_utc <= now <= presented.not_valid_after_utc:
            raise Denied(
                f"The certificate of {quoted_for_log(name)} is not valid now and cannot be renewed",
                hint="Ask for a new one: puppet ssl clean, then run the agent.",
            )
        if presented.serial_number in self.revoked():
            raise Denied(f"The certificate of {quoted_for_log(name)} is revoked and cannot be renewed")
        current = self.signed_certificate(name)
        if current is None or public_der(current.public_key()) != public_der(presented.public_key()):
            raise Denied(f"The certificate of {quoted_for_log(name)} is not the one that is signed for this name and cannot be renewed")

    def _unused_renewal(self, presented: x509.Certificate, name: str) -> x509.Certificate | None:
        """Return the new CA's certificate that an agent received in a roll-over but does not use yet; None otherwise."""
        own, current = self.signers().own.certificate, self.signed_certificate(name)
        if current is None or signatures.issued(presented, own) or not signatures.issued(current, own):
            return None
        return current

    def signed_certificate(self, name: str) -> x509.Certificate | None:
        """Return the certificate in signed/, or None when there is none; log a warning when it does not parse."""
        pem = self.store.signed(name)
        if pem is None:
            return None
        try:
            return bundles.certificate(pem)
        except BadData as err:
            log.warning("Ignoring %s, which is not a certificate: %s", self.store.signed_path(name), err)
            return None

    # --- revocation

    def serials_of(self, name: str) -> list[int]:
        """
        Return the serials to revoke for a name: of its signed certificate and of every unexpired line of the inventory.

        If all are expired, return the last one; [] when the CA never issued one.
        """
        now = self.now()
        lines = self.store.inventory().of(name)
        serials = {record.serial for record in lines if record.not_after > now}
        current = self.signed_certificate(name)
        if current is not None:
            if self.has_issued(current):
                serials.add(current.serial_number)
            else:
                log.warning("The certificate in %s was not issued by this CA", self.store.signed_path(name))
        if not serials and lines:
            serials = {max(record.serial for record in lines)}
        return sorted(serials)

    def revoke(self, name: str, *, by: str) -> list[int]:
        """
        Put all certificates of `name` on the CRL; return their serials, including those that were on it before.

        Raises:
            Conflict: the CA never issued one to that name.
        """
        with self.store.writing():
            serials = self.serials_of(valid_certname(name))
            if not serials:
                error = Conflict(f"Cannot revoke certificate for host {name} without a signed certificate")
                error.legacy = f"Cannot revoke host {name} because has it doesn't have a signed certificate"
                raise error
            self.revoke_serials(serials, by=by, name=name)
        return serials

    def revoke_serials(self, serials: Iterable[int], *, by: str, name: str = "") -> None:
        """Add serials to the CRL; if all of them are on it already, leave it unchanged."""
        serials = set(serials)
        with self.store.writing():
            new = sorted(serials - self.revoked())
            if new:
                self._sign_crl(add=new)
            current = self.signed_certificate(name) if is_name(name) else None
            known = fingerprint(current) if current is not None and current.serial_number in serials else None
            self.report(audit.entry("revoke", name, by=by, serials=sorted(serials), added=new, fingerprint=known))

    def revoked(self) -> frozenset[int]:
        """Return the serials that this CA has revoked, from the current CRL file."""
        return self._load_crls().revoked

    def crl(self) -> x509.CertificateRevocationList:
        """Return our own CRL, from the current file."""
        return self._load_crls().own

    def crl_pem(self) -> bytes:
        """Return the complete CRL file: our own list and those of the other authorities in the chain."""
        return self._load_crls().file.pem

    def _load_crls(self) -> _Crls:
        path, known, both = self.store.files.cacrl, self._crls, self.signers()
        stamp = (stamp_of(path), *both.stamps)
        if known is not None and known.stamp == stamp:
            return known
        # The copies are read before the file itself: another process writes the file first.
        seen = [] if known is None else [known.file]
        seen += [file for copy in self.store.newest_crls() if (file := _read_crls(copy)) is not None]
        file = _parsed(path, path.read_bytes())
        signers = {signer.certificate.subject: signer for signer in both.all}
        seen_lists = [each for _, lists in seen for each in lists if each.issuer not in signers or _lists_of(signers[each.issuer], [each])]
        newer = crl.newer_known(file.lists, seen_lists)
        if newer is not None:
            error = self._older(newer, file.lists)
            if known is None:
                raise error
            log.error("%s. The newer one stays in force. %s", error, error.hint)
            file = next(each for each in seen if newer in each.lists)
        own = _lists_of(both.own, file.lists)
        if not own:
            raise ConfigError(f"There is no CRL of this CA in {path}", hint="Restore it from a backup.")
        newest = max(own, key=crl.number_of)
        companions = _lists_of(both.companion, file.lists) if both.companion is not None else []
        companion = max(companions, key=crl.number_of, default=None)
        others = {each.issuer: each for each in sorted(file.lists, key=crl.number_of) if each.issuer not in signers}
        ours = (*own, *companions, *(each for each in seen_lists if each.issuer in signers))
        revoked = frozenset[int]().union(*map(crl.serials, ours))
        is_whole = len({each.issuer for each in file.lists}) == len(file.lists) and revoked <= crl.serials(newest)
        self._crls = _Crls(stamp, file, newest, companion, tuple(others.values()), revoked, is_whole)
        return self._crls

    def _older(self, newer: x509.CertificateRevocationList, lists: Iterable[x509.CertificateRevocationList]) -> ConfigError:
        path = self.store.files.cacrl
        number = max(crl.number_of(each) for each in lists if each.issuer == newer.issuer)
        return ConfigError(
            f"The CRL {path} is older than one that was in use: its number is {number}, and {crl.number_of(newer)} was reached",
            hint="It would make revoked certificates valid again. Stop the master, add the newer one, and start it: "
            f"cat {self.store.files.cadir / NEWEST_CRLS} >> {path} (docs/recovery.md).",
        )

    def _sign_crl(self, add: Iterable[int] = ()) -> None:
        """
        Write the successor of our CRL. The caller holds the lock, under which the file is read again.

        In a roll-over both CAs list each serial: they share one counter, so no serial belongs to two certificates.
        """
        loaded, both = self._load_crls(), self.signers()
        new = set(add)
        revised = [self._successor(loaded.own, both.own, new | loaded.revoked)]
        if both.companion is not None and loaded.companion is not None:
            revised.append(self._successor(loaded.companion, both.companion, new | loaded.revoked))
        self.store.save_crls(bundles.dump((*revised, *loaded.others)))

    def _successor(self, old: x509.CertificateRevocationList, by: Signer, add: Iterable[int]) -> x509.CertificateRevocationList:
        lifetime = timedelta(seconds=self.rules.crl_ttl)
        return crl.successor_of(old, by.certificate, by.key, now=self.now(), add=add, lifetime=lifetime)

    def refresh_crl_if_due(self) -> bool:
        """
        Sign the CRL again if it is due; return whether it was signed.

        It is due if it expires within 30 days (or half of its lifetime, if that is less), or lacks serials that were revoked.
        """
        with self.store.writing():
            loaded = self._load_crls()
            if not self._is_due(loaded):
                self.store.copy_crls(loaded.file.pem)  # it may be from somebody else
                return False
            self._sign_crl()
            self.report(audit.entry("refresh-crl", "", by="the CA itself", number=crl.number_of(self.crl())))
        if loaded.is_whole:
            log.warning("The CRL would have ended on %s; it is signed anew", loaded.own.next_update_utc)
        else:
            log.warning(
                "%s had several CRLs of one CA, or lacked revoked serials; it is signed again, with all of them", self.store.files.cacrl
            )
        return True

    def _is_due(self, loaded: _Crls) -> bool:
        before = min(crl.REFRESH_BEFORE, timedelta(seconds=self.rules.crl_ttl) / 2)
        return not loaded.is_whole or any(crl.is_due(signed_list, self.now(), before=before) for signed_list in loaded.ours)

    def upload_crls(self, pem: bytes, *, by: str) -> None:
        """
        Store CRLs of the other authorities in our chain.

        Raises:
            BadRequest: the text has none, or one of an unknown CA, a forged one, a delta, one older than the stored one, or
                one of our own, which only we issue. Nothing is stored then.
        """
        if len(pem) > min(self.rules.max_upload_bytes, MAX_CRL_BYTES):
            raise BadRequest(f"CRLs of {len(pem)} bytes are over the limit of {self.rules.max_upload_bytes}")
        try:
            lists = bundles.revocation_lists(pem)
        except (BadData, TooLarge) as err:
            raise BadRequest("No valid CRLs submitted.") from err
        with self.store.writing():
            loaded = self._load_crls()
            others = {known.issuer.public_bytes(): known for known in loaded.others}
            for uploaded in lists:
                issuer = uploaded.issuer.public_bytes()
                self._check_upload(uploaded, others.get(issuer))
                others[issuer] = uploaded
            self.store.save_crls(bundles.dump((*loaded.ours, *others.values())))
            self.report(audit.entry("upload-crl", "", by=by, issuers=[known.issuer.rfc4514_string() for known in lists]))

    def _check_upload(self, uploaded: x509.CertificateRevocationList, stored: x509.CertificateRevocationList | None) -> None:
        issuer = uploaded.issuer.rfc4514_string()
        if any(uploaded.issuer == signer.certificate.subject for signer in self.signers().all):
            raise BadRequest(f"The CRL of '{issuer}' is this CA's own; only the CA itself makes it")
        if crl.is_delta(uploaded):
            raise BadRequest(f"The CRL of '{issuer}' is a delta CRL, which agents cannot use")
        if not any(uploaded.issuer == c.subject and signatures.crl_is_genuine(uploaded, c) for c in self.bundle):
            raise BadRequest(f"The CRL of '{issuer}' is not signed by an authority of our chain")
        if stored is not None and crl.newer_known([uploaded], [stored]):
            raise BadRequest(
                f"The CRL of '{issuer}' has number {crl.number_of(uploaded)}, older than {crl.number_of(stored)}, which is stored"
            )

    # --- questions

    def answer_ocsp(self, request: bytes) -> bytes:
        """Return the signed answer to an OCSP request, from inventory and CRL; RFC 6960's refusal for a malformed or foreign one."""
        try:
            question = ocsp.parse_request(request)
        except BadData:
            return ocsp.build_refusal("malformed")
        signer = next((candidate for candidate in self.signers().all if ocsp.is_issued_by(question, candidate.certificate)), None)
        if signer is None:
            return ocsp.build_refusal("unauthorized")
        authority, key = signer.certificate, signer.key
        revoked = self.crl().get_revoked_certificate_by_serial_number(question.serial)
        if revoked is not None:
            when = revoked.revocation_date_utc
            return ocsp.build_response(question, "revoked", authority=authority, key=key, now=self.now(), revoked_at=when)
        is_known = question.serial in self.store.inventory().serials
        return ocsp.build_response(question, "good" if is_known else "unknown", authority=authority, key=key, now=self.now())

    def expirations(self) -> dict[str, dict[str, str]]:
        """Return when each certificate and each CRL of the chain ends, as `{"ca-certs": {name: time}, "crls": {name: time}}`."""
        return {
            "ca-certs": {certificates.name_of(c): certificates.time_text(c.not_valid_after_utc) for c in self.bundle},
            "crls": {
                _name(signed_list): certificates.time_text(signed_list.next_update_utc)
                for signed_list in self._load_crls().file.lists
                if signed_list.next_update_utc is not None
            },
        }

    def warnings(self) -> list[str]:
        """Return a sentence for each certificate of the chain, and CRL of another authority, that ends within 90 days."""
        soon = self.now() + WARN_BEFORE
        sentences = [
            f"The CA certificate '{certificates.name_of(c)}' expires on {certificates.time_text(c.not_valid_after_utc)}. "
            "Every certificate ends with it: 'puppet cert rollover start' makes the next one, which all agents must have before that day."
            for c in self.bundle
            if c.not_valid_after_utc <= soon
        ]
        for other in self._load_crls().others:
            if other.next_update_utc is not None and other.next_update_utc <= soon:
                sentences.append(
                    f"The CRL of '{_name(other)}' ends on {certificates.time_text(other.next_update_utc)}; upload a newer one."
                )
        return sentences


def _read_crls(path: Path) -> _CrlFile | None:
    """Return the content of a copy of the CRL file; None when another process has just removed it."""
    try:
        return _parsed(path, path.read_bytes())
    except FileNotFoundError:
        return None


def _parsed(path: Path, pem: bytes) -> _CrlFile:
    try:
        return _CrlFile(pem, bundles.revocation_lists(pem))
    except (BadData, TooLarge) as err:
        raise ConfigError(
            f"The CRL {path} cannot be read: {err.message}",
            hint="Restore it from a backup: without it, revoked certificates would be accepted.",
        ) from err


def _lists_of(signer: Signer, lists: Iterable[x509.CertificateRevocationList]) -> list[x509.CertificateRevocationList]:
    subject = signer.certificate.subject
    return [
        signed_list for signed_list in lists if signed_list.issuer == subject and signatures.crl_is_genuine(signed_list, signer.certificate)
    ]


def _name(crl: x509.CertificateRevocationList) -> str:
    names = crl.issuer.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[0].value) if names else crl.issuer.rfc4514_string()
