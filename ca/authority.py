"""The certificate authority: it issues, renews and revokes. Each act is on disk before its result is returned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import certificates, crl, ocsp, signatures
from certs.files import bundles
from certs.files.bundles import MAX_CRL_BYTES
from certs.fingerprints import fingerprint
from certs.keys import PrivateKey, public_der
from shared.clock import utc_now
from shared.errors import BadData, BadRequest, Conflict, Denied, PuppetError, TooLarge
from shared.names import is_certname, quoted_for_log, valid_certname

from . import audit, signers
from .audit import Audit
from .crls import CrlReader, Crls
from .policy import SigningPolicy
from .signers import Signer, Signers
from .storage.inventory import InventoryEntry
from .storage.serials import SerialNumbers
from .storage.store import CaStore

log = logging.getLogger("puppet.ca")

YEAR = 365 * 86400
# A new CA certificate must reach every agent, some of which run rarely.
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


class CertificateAuthority:
    """
    A complete CA: its certificate, its key and its store.

    All methods block. Those that write take the store's lock, so that running masters and `puppet cert` can use one store.
    """

    def __init__(self, store: CaStore, rules: CaOptions, *, now: Callable[[], datetime] = utc_now, report: Audit = audit.to_log) -> None:
        self.store = store
        self.rules = rules
        self.now = now
        self._report = report
        self._signers = signers.load(store.files)
        self._crls = CrlReader(store, self.signers)
        self.serials = SerialNumbers(store, revoked=self.revoked, authorities=self._own_serials)

    def report(self, entry: dict[str, object]) -> None:
        """Report an act as soon as it is stored for good, a refusal at once; where masters share the CA, with this master's name."""
        if self.store.is_shared:
            entry = entry | {"master": self.rules.master}
        if str(entry.get("result", "")).startswith("refused"):
            self._report(entry)
        else:
            self.store.when_stored(lambda: self._report(entry))

    # --- who signs

    def signers(self) -> Signers:
        """Return the CA's certificate and key from the current files, so that a roll-over takes effect in a running master at once."""
        stamps = signers.stamps(self.store.files)
        if stamps != self._signers.stamps:
            try:
                self._signers = signers.load(self.store.files)
            except (PuppetError, OSError) as err:
                log.error("Could not reload the CA's certificate and key, the old ones stay in force: %s", err)
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
                raise Conflict(f"The CA's certificate expired on {certificates.time_text(end)}; it cannot sign any more")
            # Stored before it is used: after a crash a number is lost, but never used twice.
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
            # Inventory, certificate, request in this order: whatever a crash cuts off, no certificate leaves without a record to revoke it
            # by.
            self.store.record(InventoryEntry.of(certificate))
            self.store.save_signed(name, certificates.pem(certificate))
            # Last, so that a crash leaves a request that can be signed again.
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
        # Under the lock, where each revocation is known: what is renewed after it would be good again.
        with self.store.writing():
            return self._renew(presented, by=by)

    def _renew(self, presented: x509.Certificate, *, by: str) -> x509.Certificate:
        name = certificates.name_of(presented)
        try:
            self._check_renewal(presented, valid_certname(name))
        except PuppetError as err:
            refusal = audit.entry("renew", name, by=by, result=f"refused: {err.message}")
            self.report(refusal | audit.of_certificate(presented))
            raise
        waiting = self._unused_renewal(presented, name)
        # The same certificate again, not a further one: an agent that cannot use it would fetch one in each run.
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
        # TLS has checked this, but a proxy or an old list may have let it pass.
        if presented.serial_number in self.revoked():
            raise Denied(f"The certificate of {quoted_for_log(name)} is revoked and cannot be renewed")
        current = self.signed_certificate(name)
        # A name may have been given to another machine since; the old one must not renew its way back.
        if current is None or public_der(current.public_key()) != public_der(presented.public_key()):
            raise Denied(f"The certificate of {quoted_for_log(name)} is not the one that is signed for this name and cannot be renewed")

    def _unused_renewal(self, presented: x509.Certificate, name: str) -> x509.Certificate | None:
        """Return the new CA's certificate that an agent received in a roll-over but does not use yet; None otherwise."""
        own, current = self.signers().own.certificate, self.signed_certificate(name)
        if current is None or signatures.issued(presented, own) or not signatures.issued(current, own):
            return None
        return current

    def signed_certificate(self, name: str) -> x509.Certificate | None:
        """Return the certificate of a name, or None when there is none; log a warning when it does not parse."""
        pem = self.store.signed(name)
        return self.parse_certificate(name, pem) if pem is not None else None

    def parse_certificate(self, name: str, pem: bytes) -> x509.Certificate | None:
        """Return the certificate of a name, which the store has as PEM; None, with a warning, when it does not parse."""
        try:
            return bundles.certificate(pem)
        except BadData as err:
            log.warning("Ignoring %s, which is not a certificate: %s", self.store.signed_place(name), err)
            return None

    # --- revocation

    def serials_of(self, name: str) -> list[int]:
        """
        Return the serials to revoke for a name: of its signed certificate and of every unexpired line of the inventory.

        If all are expired, return the last one; [] when the CA never issued one.
        """
        now = self.now()
        lines = self.store.entries_of(name)
        # All that are still valid, not only the newest: a stolen older certificate would otherwise stay good.
        serials = {record.serial for record in lines if record.not_after > now}
        current = self.signed_certificate(name)
        if current is not None:
            if self.has_issued(current):
                serials.add(current.serial_number)
            else:
                log.warning("The certificate %s was not issued by this CA", self.store.signed_place(name))
        if not serials and lines:
            # All have expired: revoking the last one keeps the reference's answer instead of an error.
            serials = {max(record.serial for record in lines)}
        return sorted(serials)

    def revoke(self, name: str, *, by: str, force: bool = False) -> list[int]:
        """
        Put all certificates of `name` on the CRL; return their serials, including those that were on it before.

        Raises:
            Conflict: the CA never issued one to that name, or this master serves with it and `force` is not set.
        """
        with self.store.writing():
            serials = self.serials_of(valid_certname(name))
            if not serials:
                raise Conflict(
                    f"Cannot revoke certificate for host {name} without a signed certificate",
                    legacy=f"Cannot revoke host {name} because has it doesn't have a signed certificate",
                )
            self.revoke_serials(serials, by=by, name=name, force=force)
        return serials

    def revoke_serials(self, serials: Iterable[int], *, by: str, name: str = "", force: bool = False) -> None:
        """
        Add serials to the CRL; if all of them are on it already, leave it unchanged.

        Raises:
            Conflict: one is that of the certificate with which this master serves, and `force` is not set.
        """
        serials = set(serials)
        with self.store.writing():
            new = sorted(serials - self.revoked())
            own = self.signed_certificate(self.rules.master) if self.rules.master and not force else None
            if own is not None and own.serial_number in new:
                raise Conflict(
                    f"This master serves with the certificate of {self.rules.master}: without it, every agent would refuse the master",
                    hint=f"To replace it, run 'puppet cert clean --force {self.rules.master}', and restart the master at once.",
                )
            if new:
                # Only for new serials: a list without a change would get a new number and be fetched by all agents.
                self._sign_crl(add=new)
            current = self.signed_certificate(name) if is_certname(name) else None
            known = fingerprint(current) if current is not None and current.serial_number in serials else None
            self.report(audit.entry("revoke", name, by=by, serials=sorted(serials), added=new, fingerprint=known))

    def revoked(self) -> frozenset[int]:
        """Return the serials that this CA has revoked, from the current CRL file."""
        return self._crls.load().revoked

    def crl(self) -> x509.CertificateRevocationList:
        """Return our own CRL, from the current file."""
        return self._crls.load().own

    def crl_pem(self) -> bytes:
        """Return the complete CRL file: our own list and those of the other authorities in the chain."""
        return self._crls.load().file.pem

    def _sign_crl(self, add: Iterable[int] = ()) -> None:
        """
        Write the successor of our CRL. The caller holds the lock, under which the file is read again.

        In a roll-over both CAs list each serial: they share one counter, so no serial belongs to two certificates.
        """
        loaded, both = self._crls.load(), self.signers()
        new = set(add)
        revised = [self._successor(loaded.own, both.own, new | loaded.revoked)]
        if both.companion is not None and loaded.companion is not None:
            # Both CAs revoke each serial, since either list may be the one that a master checks.
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
            loaded = self._crls.load()
            if not self._is_due(loaded):
                self.store.copy_crls(loaded.file.pem)  # it may be from somebody else
                return False
            self._sign_crl()
            self.report(audit.entry("refresh-crl", "", by="the CA itself", number=crl.number_of(self.crl())))
        if loaded.is_whole:
            log.warning("The CRL would have expired on %s; it was signed again", loaded.own.next_update_utc)
        else:
            log.warning(
                "The CRL %s had several lists of one CA, or lacked revoked serials; it is signed again, with all of them",
                self.store.crls_place,
            )
        return True

    def _is_due(self, loaded: Crls) -> bool:
        # With a short crl_ttl the usual margin would sign a new list at every check.
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
            loaded = self._crls.load()
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
        if not any(signatures.crl_is_genuine(uploaded, c) for c in self.bundle):
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
        is_known = self.store.has_issued_serial(question.serial)
        return ocsp.build_response(question, "good" if is_known else "unknown", authority=authority, key=key, now=self.now())

    def expirations(self) -> dict[str, dict[str, str]]:
        """Return when each certificate and each CRL of the chain ends, as `{"ca-certs": {name: time}, "crls": {name: time}}`."""
        return {
            "ca-certs": {certificates.name_of(c): certificates.time_text(c.not_valid_after_utc) for c in self.bundle},
            "crls": {
                _name(signed_list): certificates.time_text(signed_list.next_update_utc)
                for signed_list in self._crls.load().file.lists
                if signed_list.next_update_utc is not None
            },
        }

    def warnings(self) -> list[str]:
        """Return a sentence for each certificate of the chain, and CRL of another authority, that ends within 90 days."""
        soon = self.now() + WARN_BEFORE
        sentences = [
            f"The CA certificate '{certificates.name_of(c)}' expires on {certificates.time_text(c.not_valid_after_utc)}. "
            "All certificates expire with it: 'puppet cert rollover start' makes the next one, which all agents must have before that day."
            for c in self.bundle
            if c.not_valid_after_utc <= soon
        ]
        for other in self._crls.load().others:
            if other.next_update_utc is not None and other.next_update_utc <= soon:
                sentences.append(
                    f"The CRL of '{_name(other)}' ends on {certificates.time_text(other.next_update_utc)}; upload a newer one."
                )
        return sentences


def _name(crl: x509.CertificateRevocationList) -> str:
    names = crl.issuer.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[0].value) if names else crl.issuer.rfc4514_string()
