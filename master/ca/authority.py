"""The authority itself: it issues, renews and revokes. What it has done is on disk before anyone hears of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import bundles, certificates, crl, ocsp, signatures
from certs.bundles import MAX_CRL_BYTES
from certs.fingerprints import fingerprint
from certs.keys import PrivateKey, belongs, public_der
from shared.errors import BadData, BadRequest, ConfigError, Conflict, Denied, PuppetError, TooLarge
from shared.failpoints import failpoint
from shared.names import certname, shown

from . import audit
from .audit import Audit
from .inventory import Record
from .policy import SigningPolicy
from .store import CaStore, Stamp, is_name, stamp_of

log = logging.getLogger("puppet.ca")

YEAR = 365 * 86400
WARN_BEFORE = timedelta(days=90)
_SMALL_SERIAL = 2**63  # imported certificates may carry random serials, which the counter must not follow


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CaRules:
    """What the settings say. Times in seconds, sizes in bytes; `master` is the master's own certname."""

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


@dataclass(frozen=True, slots=True)
class _Crls:
    """The CRL file as it was read: our own list, those of other authorities, and what is revoked by us."""

    stamp: Stamp
    pem: bytes
    own: x509.CertificateRevocationList
    others: tuple[x509.CertificateRevocationList, ...]
    revoked: frozenset[int]


class Authority:
    """
    A CA that is whole: its certificate, its key and its files. All methods block; those that write take the store's lock,
    so that a running master and `puppet cert` can work on one directory.
    """

    def __init__(
        self,
        store: CaStore,
        bundle: Sequence[x509.Certificate],
        key: PrivateKey,
        rules: CaRules,
        *,
        now: Callable[[], datetime] = utc_now,
        report: Audit = audit.to_log,
    ) -> None:
        own = next((c for c in bundle if belongs(key, c.public_key())), None)
        if own is None:
            raise ConfigError(
                f"The CA's key {store.files.cakey} does not belong to a certificate in {store.files.cacert}",
                hint="Both must come from the same backup.",
            )
        if not certificates.is_authority(own):
            raise ConfigError(f"The certificate in {store.files.cacert} is not one of a CA (CA:FALSE)")
        self.store = store
        self.bundle = tuple(bundle)
        self.certificate = own
        self.key = key
        self.rules = rules
        self.now = now
        self.report = report
        self._crls: _Crls | None = None
        self._least_serial = 1 + max((r.serial for r in store.records() if r.serial < _SMALL_SERIAL), default=0)

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
        A new certificate for `name`, which is in the inventory and in signed/ when this returns; its request is gone.

        In this order, so that a crash at any point loses nothing and no serial is used twice: the next serial is
        stored, the certificate is signed, recorded, written, the request removed.

        Args:
            ttl: seconds, cut at the CA's own end; None: the setting ca_ttl.
        """
        certname(name)
        with self.store.writing():
            now = self.now()
            if now >= self.certificate.not_valid_after_utc:
                raise Conflict(
                    f"The CA's certificate expired on {certificates.time_text(self.certificate.not_valid_after_utc)}; it can sign no more"
                )
            serial = self.store.take_serial(self._least_serial)
            made = certificates.leaf(
                name,
                public_key,
                issuer=self.certificate,
                issuer_key=self.key,
                serial=serial,
                ttl=self.rules.ca_ttl if ttl is None else ttl,
                now=now,
                alternative_names=alternative_names,
                extensions=extensions,
            )
            self.store.record(Record.of(made))
            self.store.save_signed(name, certificates.pem(made))
            self.store.remove_request(name)
            self.report(audit.entry(action, name, by=by) | audit.of_certificate(made))
        return made

    def issued(self, certificate: x509.Certificate) -> bool:
        """Whether this CA's key signed `certificate`."""
        return signatures.issued(certificate, self.certificate)

    def renew(self, presented: x509.Certificate, *, by: str) -> x509.Certificate:
        """
        A certificate with the key, names and extensions of the one that the client proved to hold, with new dates.

        Raises:
            Denied: it is not ours, not valid now, revoked, or not the key of the name's current certificate.
        """
        name = certificates.name_of(presented)
        try:
            self._may_renew(presented, certname(name))
        except PuppetError as err:
            refusal = audit.entry("renew", name, by=by, result=f"refused: {err.message}")
            self.report(refusal | audit.of_certificate(presented))
            raise
        return self.issue(
            name,
            presented.public_key(),
            alternative_names=certificates.alternative_names(presented),
            extensions=certificates.puppet_extensions(presented),
            ttl=self.rules.renewal_ttl,
            by=by,
            action="renew",
        )

    def _may_renew(self, presented: x509.Certificate, name: str) -> None:
        if not self.issued(presented):
            raise Denied("Certificate present, but does not match signature")
        now = self.now()
        if not presented.not_valid_before_utc <= now <= presented.not_valid_after_utc:
            raise Denied(
                f"The certificate of {shown(name)} is not valid now and cannot be renewed",
                hint="Ask for a new one: puppet ssl clean, then run the agent.",
            )
        if presented.serial_number in self.revoked():
            raise Denied(f"The certificate of {shown(name)} is revoked and cannot be renewed")
        current = self.signed_certificate(name)
        if current is None or public_der(current.public_key()) != public_der(presented.public_key()):
            raise Denied(f"The certificate of {shown(name)} is not the one that is signed for this name and cannot be renewed")

    def signed_certificate(self, name: str) -> x509.Certificate | None:
        """The certificate in signed/, None when there is none; one that does not parse counts as none, with a warning."""
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
        The serials to revoke for a name: of its signed certificate and of every unexpired line of the inventory.

        When all are expired, the last one; [] when the CA never issued one.
        """
        now = self.now()
        lines = self.store.ledger().of(name)
        found = {record.serial for record in lines if record.not_after > now}
        current = self.signed_certificate(name)
        if current is not None:
            if self.issued(current):
                found.add(current.serial_number)
            else:
                log.warning("The certificate in %s was not issued by this CA", self.store.signed_path(name))
        if not found and lines:
            found = {max(record.serial for record in lines)}
        return sorted(found)

    def revoke(self, name: str, *, by: str) -> list[int]:
        """
        Put all certificates of `name` on the CRL; gives their serials, also those that were on it already.

        Raises:
            Conflict: the CA never issued one to that name.
        """
        with self.store.writing():
            serials = self.serials_of(certname(name))
            if not serials:
                error = Conflict(f"Cannot revoke certificate for host {name} without a signed certificate")
                error.legacy = f"Cannot revoke host {name} because has it doesn't have a signed certificate"
                raise error
            self.revoke_serials(serials, by=by, name=name)
        return serials

    def revoke_serials(self, serials: Iterable[int], *, by: str, name: str = "") -> None:
        """Put serials on the CRL that are not on it yet; without a new one the CRL stays as it is."""
        serials = set(serials)
        with self.store.writing():
            new = sorted(serials - self.revoked())
            if new:
                self._sign_crl(add=new)
            current = self.signed_certificate(name) if is_name(name) else None
            known = fingerprint(current) if current is not None and current.serial_number in serials else None
            self.report(audit.entry("revoke", name, by=by, serials=sorted(serials), added=new, fingerprint=known))

    def revoked(self) -> frozenset[int]:
        """The serials that this CA has revoked, as the CRL file says now."""
        return self._loaded().revoked

    def crl(self) -> x509.CertificateRevocationList:
        """Our own CRL, as the file says now."""
        return self._loaded().own

    def crl_pem(self) -> bytes:
        """The whole CRL file: our own list and those of the other authorities in the chain."""
        return self._loaded().pem

    def _loaded(self) -> _Crls:
        path = self.store.files.cacrl
        stamp = stamp_of(path)
        known = self._crls
        if known is not None and known.stamp == stamp:
            return known
        pem = path.read_bytes()
        try:
            lists = bundles.revocation_lists(pem)
        except (BadData, TooLarge) as err:
            raise ConfigError(
                f"The CRL {path} cannot be read: {err.message}",
                hint="Restore it from a backup: without it, revoked certificates would be accepted.",
            ) from err
        own = [each for each in lists if each.issuer == self.certificate.subject and signatures.crl_is_genuine(each, self.certificate)]
        if not own:
            raise ConfigError(f"There is no CRL of this CA in {path}", hint="Restore it from a backup.")
        newest = max(own, key=crl.number_of)
        others = tuple(each for each in lists if each not in own)
        self._crls = _Crls(stamp, pem, newest, others, crl.serials(newest))
        return self._crls

    def _sign_crl(self, add: Iterable[int] = ()) -> None:
        """Write the successor of our CRL; the caller holds the lock, so the file is read anew under it."""
        loaded = self._loaded()
        lifetime = timedelta(seconds=self.rules.crl_ttl)
        revised = crl.revised(loaded.own, self.certificate, self.key, now=self.now(), add=add, lifetime=lifetime)
        self._write_crls((revised, *loaded.others))

    def _write_crls(self, lists: Iterable[x509.CertificateRevocationList]) -> None:
        self.store.write(self.store.files.cacrl, bundles.dump(lists))
        failpoint("ca.crl-written")

    def refresh_crl_if_due(self) -> bool:
        """Sign the CRL again when 30 days or less of it are left (or half of its lifetime, when that is less); whether it was done."""
        before = min(crl.REFRESH_BEFORE, timedelta(seconds=self.rules.crl_ttl) / 2)
        if not crl.is_due(self.crl(), self.now(), before=before):
            return False
        with self.store.writing():
            if not crl.is_due(self.crl(), self.now(), before=before):
                return False  # another process was faster
            end = self.crl().next_update_utc
            self._sign_crl()
            self.report(audit.entry("refresh-crl", "", by="the CA itself", number=crl.number_of(self.crl())))
        log.warning("The CRL would have ended on %s; it is signed anew", end)
        return True

    def upload_crls(self, pem: bytes, *, by: str) -> None:
        """
        Take over CRLs of the other authorities in our chain.

        Raises:
            BadRequest: none in the text, one of a stranger, a forged one, a delta, an older one than we have, or one of
                our own, which only we make. Nothing is stored then.
        """
        if len(pem) > min(self.rules.max_upload_bytes, MAX_CRL_BYTES):
            raise BadRequest(f"CRLs of {len(pem)} bytes are over the limit of {self.rules.max_upload_bytes}")
        try:
            lists = bundles.revocation_lists(pem)
        except (BadData, TooLarge) as err:
            raise BadRequest("No valid CRLs submitted.") from err
        with self.store.writing():
            loaded = self._loaded()
            kept = {each.issuer.public_bytes(): each for each in loaded.others}
            for given in lists:
                issuer = given.issuer.public_bytes()
                self._check_upload(given, kept.get(issuer))
                kept[issuer] = given
            self._write_crls((loaded.own, *kept.values()))
            self.report(audit.entry("upload-crl", "", by=by, issuers=[each.issuer.rfc4514_string() for each in lists]))

    def _check_upload(self, given: x509.CertificateRevocationList, stored: x509.CertificateRevocationList | None) -> None:
        who = given.issuer.rfc4514_string()
        if given.issuer == self.certificate.subject:
            raise BadRequest(f"The CRL of '{who}' is this CA's own; only the CA itself makes it")
        if crl.is_delta(given):
            raise BadRequest(f"The CRL of '{who}' is a delta CRL, which agents cannot use")
        if not any(given.issuer == c.subject and signatures.crl_is_genuine(given, c) for c in self.bundle):
            raise BadRequest(f"The CRL of '{who}' is not signed by an authority of our chain")
        if stored is not None and crl.number_of(given) < crl.number_of(stored):
            raise BadRequest(f"The CRL of '{who}' has number {crl.number_of(given)}, older than {crl.number_of(stored)}, which is stored")

    # --- questions

    def answer_ocsp(self, request: bytes) -> bytes:
        """The signed answer to an OCSP request, from the inventory and the CRL; a malformed or foreign one gets RFC 6960's refusal."""
        try:
            asked = ocsp.question(request)
        except BadData:
            return ocsp.refusal("malformed")
        if not ocsp.asks_about(asked, self.certificate):
            return ocsp.refusal("unauthorized")
        revoked = self.crl().get_revoked_certificate_by_serial_number(asked.serial)
        if revoked is not None:
            when = revoked.revocation_date_utc
            return ocsp.answer(asked, "revoked", authority=self.certificate, key=self.key, now=self.now(), revoked_at=when)
        known = asked.serial in self.store.ledger().serials
        return ocsp.answer(asked, "good" if known else "unknown", authority=self.certificate, key=self.key, now=self.now())

    def expirations(self) -> dict[str, dict[str, str]]:
        """When each certificate and each CRL of the chain ends: `{"ca-certs": {name: time}, "crls": {name: time}}`."""
        lists = (self.crl(), *self._loaded().others)
        return {
            "ca-certs": {certificates.name_of(c): certificates.time_text(c.not_valid_after_utc) for c in self.bundle},
            "crls": {_name(each): certificates.time_text(each.next_update_utc) for each in lists if each.next_update_utc is not None},
        }

    def warnings(self) -> list[str]:
        """A sentence for each certificate of the chain, and CRL of another authority, that ends within 90 days."""
        soon = self.now() + WARN_BEFORE
        found = [
            f"The CA certificate '{certificates.name_of(c)}' expires on {certificates.time_text(c.not_valid_after_utc)}. "
            "Every certificate ends with it: renew it with the same key and give the new one to all agents before that day."
            for c in self.bundle
            if c.not_valid_after_utc <= soon
        ]
        for each in self._loaded().others:
            if each.next_update_utc is not None and each.next_update_utc <= soon:
                found.append(f"The CRL of '{_name(each)}' ends on {certificates.time_text(each.next_update_utc)}; upload a newer one.")
        return found


def _name(crl: x509.CertificateRevocationList) -> str:
    found = crl.issuer.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(found[0].value) if found else crl.issuer.rfc4514_string()
