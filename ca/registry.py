"""Names and their states: requests are stored, signed or deleted, certificates are revoked and cleaned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from cryptography import x509

from certs import certificates, csr, fingerprints, keys, oids
from certs.csr import RequestFacts
from shared.errors import BadRequest, Conflict, NotFound, PuppetError, Unavailable
from shared.models.certificate_status import CertificateStatus
from shared.names import is_certname, quoted_for_log, valid_certname

from . import audit, policy
from .authority import CertificateAuthority
from .policy import SigningPolicy
from .storage import inventory
from .storage.store import CaStore, NameFiles

log = logging.getLogger("puppet.ca")

State = Literal["requested", "signed", "revoked"]
STATES: tuple[State, ...] = ("requested", "signed", "revoked")
# Clients before 6 ask for the names that have a file of one kind. The CA stores no keys of nodes.
KINDS: Mapping[str, frozenset[State]] = {
    "certificate": frozenset(("signed", "revoked")),
    "certificate_request": frozenset(("requested",)),
    "key": frozenset(),
}
MAX_TTL = 10**12  # seconds; more is a mistake, and every certificate ends with the CA's own anyway


class DuplicateRequest(BadRequest):
    """The name already has a request or certificate; `same` is True for a pending request with the same content."""

    def __init__(self, message: str, *, same: bool) -> None:
        super().__init__(message)
        self.same = same


def _signed_content(pem: bytes) -> bytes:
    """Return the part of a request that is signed. Two signatures of it with one EC key differ."""
    return x509.load_pem_x509_csr(pem).tbs_certrequest_bytes


class CertificateRegistry:
    """The states of all names. All methods block; `by` names the initiator in the audit trail."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self.authority = authority
        self.store: CaStore = authority.store
        self.rules = authority.rules

    # --- requests

    def submit(self, name: str, pem: bytes, *, by: str) -> RequestFacts:
        """
        Store a request after checking that it is well-formed, strong, signed by its own key, and within the limits.

        Raises:
            BadName, BadData, BadRequest: the request is invalid; nothing was stored.
            DuplicateRequest: the name has one, and duplicates are not allowed.
            Unavailable: too many requests are pending.
        """
        try:
            valid_certname(name)
            facts = csr.parse(pem, max_bytes=self.rules.max_request_bytes)
            policy.check_submission(facts, name, master=self.rules.master)
            with self.store.writing():
                self._check_duplicate(name, facts)
                # Anybody may submit requests; without a bound a stranger could fill the CA's disk.
                self._check_room(len(facts.pem))
                self.store.save_request(name, facts.pem)
        except PuppetError as err:
            self._report("request", name, by, f"refused: {err.message}")
            raise
        self._report("request", name, by, "stored", fingerprint=fingerprints.fingerprint(facts))
        return facts

    def delete_request(self, name: str, *, by: str) -> bool:
        """Delete a pending request and return whether there was one."""
        valid_certname(name)
        with self.store.writing():
            removed = self.store.remove_request(name)
        self._report("delete-request", name, by, "done" if removed else "nothing was there")
        return removed

    def _check_duplicate(self, name: str, facts: RequestFacts) -> None:
        pending = self.request(name)
        what = "requested"
        if pending is None:
            current = self.authority.signed_certificate(name)
            if current is None:
                return
            what = "revoked" if current.serial_number in self.authority.revoked() else "signed"
        if self.rules.allow_duplicate_certs:
            log.info("%s already has a %s certificate; new certificate will overwrite it", name, what)
            return
        same = pending is not None and _signed_content(pending) == _signed_content(facts.pem)
        raise DuplicateRequest(f"{name} already has a {what} certificate; ignoring certificate request", same=same)

    def _check_room(self, size: int) -> None:
        count, used = self.store.pending_size()
        if count >= self.rules.max_pending_requests or used + size > self.rules.max_pending_bytes:
            raise Unavailable(
                f"{count} certificate requests are pending; no more are accepted",
                retry_after=600,
                hint="Sign or clean some: puppet cert list. The limits are max_pending_requests and max_pending_bytes.",
            )

    def request(self, name: str) -> bytes | None:
        """Return the PEM of a pending request, or None when there is none or it does not parse."""
        pem = self.store.request(name)
        return pem if self.facts_of(name, pem) is not None else None

    def facts_of(self, name: str, pem: bytes | None) -> RequestFacts | None:
        """Return what a name's request asks for; None when there is none, or, with a warning, when it does not parse."""
        if pem is None:
            return None
        try:
            return csr.parse(pem, max_bytes=len(pem))
        except PuppetError as err:
            log.warning("Ignoring the request of %s, which does not parse: %s", quoted_for_log(name), err)
            return None

    def sign(self, name: str, *, by: str, policy_: SigningPolicy | None = None, ttl: object = None) -> x509.Certificate:
        """
        Sign the pending request of `name`.

        Args:
            policy_: None: the policy of the settings.
            ttl: seconds; None: the setting ca_ttl, or auto_renewal_cert_ttl for an agent that announces that it renews.

        Raises:
            Conflict: there is no request.
            PolicyViolation, BadRequest: the policy forbids signing it; it stays pending.
        """
        seconds = ttl_of(ttl)
        policy.check_name(name)
        with self.store.writing():
            facts = self.facts_of(name, self.store.request(name))
            if facts is None:
                raise Conflict(
                    f"Cannot sign certificate for host {name} without a certificate request",
                    legacy=f"Cannot sign for host {name} without a certificate request",
                )
            try:
                policy.check_signing(facts, name, policy_ or self.rules.policy)
            except PuppetError as err:
                self._report("sign", name, by, f"refused: {err.message}", fingerprint=fingerprints.fingerprint(facts))
                raise
            if seconds is None and self.rules.allow_auto_renewal and facts.announces_renewal:
                seconds = self.rules.renewal_ttl
            return self.authority.issue(
                name,
                facts.public_key,  # type: ignore[arg-type]  # its strength was checked: RSA, EC or Ed25519
                alternative_names=facts.alternative_names,
                extensions=[(e.oid, e.value) for e in facts.extensions],
                ttl=seconds,
                by=by,
            )

    def pending(self) -> list[str]:
        """Return the names with a request that parses, sorted."""
        return [status.name for status in self.statuses("requested")]

    # --- states

    def status(self, name: str) -> CertificateStatus | None:
        """Return the state of `name`, or None when the CA has neither a request nor a certificate for it."""
        return self._status(NameFiles(valid_certname(name), self.store.request(name), self.store.signed(name)))

    def _status(self, files: NameFiles) -> CertificateStatus | None:
        name = files.name
        facts = self.facts_of(name, files.request)
        if facts is not None:
            return _status(name, "requested", facts, facts.alternative_names, _rights(facts))
        current = self.authority.parse_certificate(name, files.certificate) if files.certificate is not None else None
        if current is None:
            return None
        revoked = current.serial_number in self.authority.revoked()
        return _status(
            name,
            "revoked" if revoked else "signed",
            current,
            certificates.alternative_names(current),
            certificates.authorization_extensions(current),
        )

    def statuses(self, state: str = "") -> list[CertificateStatus]:
        """Return the states of all names, or of those in one state, sorted by name. Invalid names and unreadable files are skipped."""
        everything = self.store.all_names(only_requests=state == "requested")
        statuses = (self._status(files) for files in everything if is_certname(files.name))
        return [status for status in statuses if status is not None and (not state or status.state == state)]

    def set_state(self, name: str, desired: object, *, ttl: object = None, by: str) -> x509.Certificate | list[int]:
        """
        Bring `name` into the desired state; return the new certificate for `signed`, the serials for `revoked`.

        Raises:
            BadRequest: `desired` is neither.
            Conflict: the name's state forbids it.
            NotFound: the CA does not know the name.
        """
        valid_certname(name)
        if desired is None:
            raise BadRequest('Missing required parameter "desired_state"')
        if desired not in ("signed", "revoked") or not isinstance(desired, str):
            text = (
                f"State {quoted_for_log(str(desired))[1:-1]} invalid; Must specify desired state of 'signed' or 'revoked' for host {name}"
            )
            raise BadRequest(f"{text}.", legacy=text)
        ttl_of(ttl)
        if self.status(name) is None and not self.authority.serials_of(name):
            raise NotFound(
                "Invalid certificate subject.",
                legacy=f"Cannot sign for host {name} without a certificate request"
                if desired == "signed"
                else f"Cannot revoke host {name} because has it doesn't have a signed certificate",
            )
        return self.sign(name, by=by, ttl=ttl) if desired == "signed" else self.authority.revoke(name, by=by)

    def delete(self, name: str, *, by: str) -> list[str]:
        """Remove certificate and request without revoking; return Puppet's class names of the removed ones."""
        valid_certname(name)
        with self.store.writing():
            removed = []
            current = self.authority.signed_certificate(name)
            if self.store.remove_signed(name):
                removed.append("Puppet::SSL::Certificate")
            if self.store.remove_request(name):
                removed.append("Puppet::SSL::CertificateRequest")
            removed_certificate = audit.of_certificate(current) if current is not None else {}
            self._report("delete", name, by, ", ".join(removed) or "nothing was there", **removed_certificate)
        return removed

    def clean(self, names: Iterable[str], *, by: str) -> list[str]:
        """Revoke and delete each name; return the names that never had a certificate. Their requests are deleted as well."""
        certnames = [valid_certname(name) for name in names]
        missing = []
        with self.store.writing():
            serials: list[int] = []
            for name in certnames:
                issued = self.authority.serials_of(name)
                serials += issued
                if not issued:
                    missing.append(name)
            if serials:  # one CRL for all of them
                self.authority.revoke_serials(serials, by=by, name=", ".join(certnames)[:1000])
            for name in certnames:
                self.delete(name, by=by)
        return missing

    # --- after a crash

    def recover(self) -> list[str]:
        """
        Repair the effects of a crash: delete requests whose certificates were written. Return a sentence for each finding.

        A request that is newer than the certificate is a new one and stays, even with the same key.
        """
        sentences = [f"{path} was left behind by a crash and is ignored" for path in self.store.litter()]
        with self.store.writing():
            for name in self.store.request_names():
                if not is_certname(name):
                    sentences.append(f"A request with the name {quoted_for_log(name)} cannot be signed: the name is not a certname")
                    continue
                facts = self.facts_of(name, self.store.request(name))
                current = self.authority.signed_certificate(name) if facts is not None else None
                if facts is None or current is None or not self._was_signed(name, facts, current):
                    continue
                self.store.remove_request(name)
                sentences.append(f"The request of {name} was signed before the CA stopped; it is removed")
        return sentences

    def _was_signed(self, name: str, facts: RequestFacts, current: x509.Certificate) -> bool:
        if keys.public_der(facts.public_key) != keys.public_der(current.public_key()):
            return False
        return self.store.is_older_than_certificate(name)

    def reinventory(self, *, by: str) -> int:
        """
        Rewrite the inventory from signed/, the CA's own certificates and the old inventory; return the number of lines.

        Lines of certificates that are no longer in signed/ stay, because revoking these certificates needs them.
        """
        with self.store.writing():
            entries = {inventory.InventoryEntry.of(c) for c in {signer.certificate for signer in self.authority.signers().all}}
            for name, _, pem in self.store.all_names():
                if pem is not None and (current := self.authority.parse_certificate(name, pem)) is not None:
                    entries.add(inventory.InventoryEntry.of(current))
            entries |= set(self.store.inventory().records)
            lines = sorted(entries, key=lambda record: (record.serial, record.subject))
            self.store.replace_inventory(lines)
            self._report("reinventory", "", by, "done", lines=len(lines))
        return len(lines)

    def _report(self, action: str, name: str, by: str, result: str, **details: object) -> None:
        self.authority.report(audit.entry(action, name[:200], by=by, result=result, **details))


def ttl_of(seconds: object) -> int | None:
    """Return a certificate's lifetime in seconds from a request's body, None for no value; raise BadRequest for an invalid one."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        raise BadRequest(f"cert_ttl must be a whole number of seconds, not {quoted_for_log(str(seconds))}")
    return min(seconds, MAX_TTL)


def _rights(facts: RequestFacts) -> dict[str, str]:
    return {oids.SHORT_NAMES.get(e.oid, e.oid): e.text for e in facts.extensions if oids.is_authorization(e.oid)}


def _status(
    name: str,
    state: State,
    thing: x509.Certificate | RequestFacts,
    alternative_names: tuple[str, ...],
    rights: dict[str, str],
) -> CertificateStatus:
    certificate = thing if isinstance(thing, x509.Certificate) else None
    return CertificateStatus(
        name=name,
        state=state,
        fingerprint=fingerprints.fingerprint(thing),
        fingerprints={
            "default": fingerprints.fingerprint(thing),
            **{digest: fingerprints.fingerprint(thing, digest) for digest in ("SHA1", "SHA256", "SHA512")},
        },
        dns_alt_names=[alternative_name for alternative_name in alternative_names if alternative_name.startswith("DNS:")],
        subject_alt_names=list(alternative_names),
        authorization_extensions=rights,
        serial_number=certificate.serial_number if certificate else None,
        not_before=certificates.time_text(certificate.not_valid_before_utc) if certificate else None,
        not_after=certificates.time_text(certificate.not_valid_after_utc) if certificate else None,
    )
