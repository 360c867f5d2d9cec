"""Names and where they stand: requests come in, are signed or thrown away, certificates are revoked and cleaned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from cryptography import x509

from certs import certificates, csr, fingerprints, keys, oids
from certs.csr import RequestFacts
from shared.errors import BadRequest, Conflict, NotFound, PuppetError, Unavailable
from shared.filesystem.files import stamp_of
from shared.models.certificate_status import CertificateStatus
from shared.names import quoted_for_log, valid_certname

from . import audit, policy
from .authority import CertificateAuthority
from .policy import SigningPolicy
from .storage import inventory
from .storage.store import CaStore, is_name

log = logging.getLogger("puppet.ca")

State = Literal["requested", "signed", "revoked"]
STATES: tuple[State, ...] = ("requested", "signed", "revoked")
# What clients before 6 ask for: whoever has a file of that kind. The CA keeps no keys of others.
KINDS: Mapping[str, frozenset[State]] = {
    "certificate": frozenset(("signed", "revoked")),
    "certificate_request": frozenset(("requested",)),
    "key": frozenset(),
}
MAX_TTL = 10**12  # seconds; anything beyond is a mistake, and all is cut at the CA's own end anyway


class AlreadyThere(BadRequest):
    """The name has a request or certificate already; `same` when it is a pending request of the same key that asks for the same."""

    def __init__(self, message: str, *, same: bool) -> None:
        super().__init__(message)
        self.same = same


def _content(pem: bytes) -> bytes:
    """What a request's signature is over: signatures with EC keys are another each time."""
    return x509.load_pem_x509_csr(pem).tbs_certrequest_bytes


class CertificateRegistry:
    """What the CA knows about names. All methods block; `by` says in the audit trail who wanted it."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self.authority = authority
        self.store: CaStore = authority.store
        self.rules = authority.rules
        self._pending: tuple[object, int, int] = (None, 0, 0)  # stamp of requests/, count, bytes

    # --- requests

    def submit(self, name: str, pem: bytes, *, by: str) -> RequestFacts:
        """
        Store a request, once it is well made, strong, its own, and there is room.

        Raises:
            BadName, BadData, BadRequest: what is wrong with it; nothing was stored.
            AlreadyThere: the name has one, and duplicates are not allowed.
            Unavailable: too many requests are pending.
        """
        try:
            valid_certname(name)
            facts = csr.parse(pem, max_bytes=self.rules.max_request_bytes)
            policy.check_submission(facts, name, master=self.rules.master)
            with self.store.writing():
                self._check_duplicate(name, facts)
                self._check_room(len(facts.pem))
                self.store.save_request(name, facts.pem)
                stamp, count, size = self._pending
                self._pending = (stamp_of(self.store.files.csrdir), count + 1, size + len(facts.pem)) if stamp else (None, 0, 0)
        except PuppetError as err:
            self._report("request", name, by, f"refused: {err.message}")
            raise
        self._report("request", name, by, "stored", fingerprint=fingerprints.fingerprint(facts))
        return facts

    def delete_request(self, name: str, *, by: str) -> bool:
        """Throw a pending request away; whether there was one."""
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
        same = pending is not None and _content(pending) == _content(facts.pem)
        raise AlreadyThere(f"{name} already has a {what} certificate; ignoring certificate request", same=same)

    def _check_room(self, size: int) -> None:
        stamp = stamp_of(self.store.files.csrdir)
        if self._pending[0] != stamp:  # somebody else wrote there
            self._pending = (stamp, *self.store.pending_size())
        _, count, used = self._pending
        if count >= self.rules.max_pending_requests or used + size > self.rules.max_pending_bytes:
            raise Unavailable(
                f"{count} certificate requests are pending; no more are taken",
                retry_after=600,
                hint="Sign or clean some: puppet cert list. The limits are max_pending_requests and max_pending_bytes.",
            )

    def request(self, name: str) -> bytes | None:
        """The PEM of a pending request, None when there is none; one that does not parse counts as none."""
        pem = self.store.request(name)
        return pem if pem is not None and self._facts(name, pem) is not None else None

    def _facts(self, name: str, pem: bytes) -> RequestFacts | None:
        try:
            return csr.parse(pem, max_bytes=len(pem))
        except PuppetError as err:
            log.warning("Ignoring the request of %s, which does not parse: %s", quoted_for_log(name), err)
            return None

    def sign(self, name: str, *, by: str, policy_: SigningPolicy | None = None, ttl: object = None) -> x509.Certificate:
        """
        Sign the pending request of `name`.

        Args:
            policy_: None: the settings' own.
            ttl: seconds; None: the setting ca_ttl.
        Raises:
            Conflict: there is no request.
            PolicyViolation, BadRequest: it may not be signed; it stays where it is.
        """
        seconds = ttl_of(ttl)
        policy.check_name(name)
        with self.store.writing():
            pem = self.store.request(name)
            facts = self._facts(name, pem) if pem is not None else None
            if facts is None:
                error = Conflict(f"Cannot sign certificate for host {name} without a certificate request")
                error.legacy = f"Cannot sign for host {name} without a certificate request"
                raise error
            try:
                policy.check_signing(facts, name, policy_ or self.rules.policy)
            except PuppetError as err:
                self._report("sign", name, by, f"refused: {err.message}", fingerprint=fingerprints.fingerprint(facts))
                raise
            return self.authority.issue(
                name,
                facts.public_key,  # type: ignore[arg-type]  # its strength was checked: RSA, EC or Ed25519
                alternative_names=facts.alternative_names,
                extensions=[(e.oid, e.value) for e in facts.extensions],
                ttl=seconds,
                by=by,
            )

    def pending(self) -> list[str]:
        """Names with a request that parses, sorted."""
        return [status.name for status in self.statuses("requested")]

    # --- states

    def status(self, name: str) -> CertificateStatus | None:
        """Where `name` stands; None when the CA knows neither a request nor a certificate of it."""
        valid_certname(name)
        pem = self.store.request(name)
        if pem is not None:
            facts = self._facts(name, pem)
            if facts is not None:
                return _status(name, "requested", facts, facts.alternative_names, _rights(facts))
        current = self.authority.signed_certificate(name)
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
        """All names, or those in one state, sorted. Names that break the rule, or that only have litter, are left out."""
        names = set(self.store.request_names()) | (set(self.store.signed_names()) if state != "requested" else set())
        found = (self.status(name) for name in sorted(names) if is_name(name))
        return [each for each in found if each is not None and (not state or each.state == state)]

    def set_state(self, name: str, desired: object, *, ttl: object = None, by: str) -> x509.Certificate | list[int]:
        """
        Bring `name` into the desired state: the new certificate for `signed`, the serials for `revoked`.

        Raises:
            BadRequest: neither of the two; Conflict: the name's state forbids it; NotFound: a name the CA never heard of.
        """
        valid_certname(name)
        if desired is None:
            raise BadRequest('Missing required parameter "desired_state"')
        if desired not in ("signed", "revoked") or not isinstance(desired, str):
            text = (
                f"State {quoted_for_log(str(desired))[1:-1]} invalid; Must specify desired state of 'signed' or 'revoked' for host {name}"
            )
            error = BadRequest(f"{text}.")
            error.legacy = text
            raise error
        ttl_of(ttl)
        if self.status(name) is None and not self.authority.serials_of(name):
            missing = NotFound("Invalid certificate subject.")
            missing.legacy = (
                f"Cannot sign for host {name} without a certificate request"
                if desired == "signed"
                else f"Cannot revoke host {name} because has it doesn't have a signed certificate"
            )
            raise missing
        return self.sign(name, by=by, ttl=ttl) if desired == "signed" else self.authority.revoke(name, by=by)

    def delete(self, name: str, *, by: str) -> list[str]:
        """Remove certificate and request, without revoking; gives what was removed, by Puppet's names for it."""
        valid_certname(name)
        with self.store.writing():
            removed = []
            current = self.authority.signed_certificate(name)
            if self.store.remove_signed(name):
                removed.append("Puppet::SSL::Certificate")
            if self.store.remove_request(name):
                removed.append("Puppet::SSL::CertificateRequest")
            gone = audit.of_certificate(current) if current is not None else {}
            self._report("delete", name, by, ", ".join(removed) or "nothing was there", **gone)
        return removed

    def clean(self, names: Iterable[str], *, by: str) -> list[str]:
        """Revoke and delete each; gives the names that never had a certificate (a request of theirs is gone, too)."""
        wanted = [valid_certname(name) for name in names]
        missing = []
        with self.store.writing():
            serials: list[int] = []
            for name in wanted:
                found = self.authority.serials_of(name)
                serials += found
                if not found:
                    missing.append(name)
            if serials:  # one CRL for all of them
                self.authority.revoke_serials(serials, by=by, name=", ".join(wanted)[:1000])
            for name in wanted:
                self.delete(name, by=by)
        return missing

    # --- after a crash

    def recover(self) -> list[str]:
        """
        Put right what a crash left: a request whose certificate was written is removed. Gives a sentence for each thing found.

        A request that is newer than the certificate is a new one and stays, also with the same key.
        """
        found = [f"{path} was left behind by a crash and is ignored" for path in self.store.litter()]
        with self.store.writing():
            for name in self.store.request_names():
                if not is_name(name):
                    found.append(f"A request with the name {quoted_for_log(name)} cannot be signed: the name is not a certname")
                    continue
                pem = self.store.request(name)
                facts = self._facts(name, pem) if pem is not None else None
                current = self.authority.signed_certificate(name) if facts is not None else None
                if facts is None or current is None or not self._answered(name, facts, current):
                    continue
                self.store.remove_request(name)
                found.append(f"The request of {name} was signed before the CA stopped; it is removed")
        return found

    def _answered(self, name: str, facts: RequestFacts, current: x509.Certificate) -> bool:
        if keys.public_der(facts.public_key) != keys.public_der(current.public_key()):
            return False
        return self.store.request_path(name).stat().st_mtime_ns <= self.store.signed_path(name).stat().st_mtime_ns

    def reinventory(self, *, by: str) -> int:
        """
        Write the inventory anew: what is in signed/, the CA's own certificates, and the lines the old one has; gives the number of lines.

        Lines of certificates that are no longer in signed/ are kept, since they are what revokes them.
        """
        with self.store.writing():
            found = {inventory.InventoryEntry.of(c) for c in {signer.certificate for signer in self.authority.signers().all}}
            for name in self.store.signed_names():
                if is_name(name) and (current := self.authority.signed_certificate(name)) is not None:
                    found.add(inventory.InventoryEntry.of(current))
            found |= set(self.store.records())
            lines = sorted(found, key=lambda record: (record.serial, record.subject))
            self.store.write(self.store.files.cert_inventory, "".join(map(str, lines)).encode())
            self._report("reinventory", "", by, "done", lines=len(lines))
        return len(lines)

    def _report(self, action: str, name: str, by: str, result: str, **details: object) -> None:
        self.authority.report(audit.entry(action, name[:200], by=by, result=result, **details))


def ttl_of(given: object) -> int | None:
    """A certificate's lifetime in seconds from a request's body; None when none was given, BadRequest when it is not one."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        raise BadRequest(f"cert_ttl must be a whole number of seconds, not {quoted_for_log(str(given))}")
    return min(given, MAX_TTL)


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
        dns_alt_names=[each for each in alternative_names if each.startswith("DNS:")],
        subject_alt_names=list(alternative_names),
        authorization_extensions=rights,
        serial_number=certificate.serial_number if certificate else None,
        not_before=certificates.time_text(certificate.not_valid_before_utc) if certificate else None,
        not_after=certificates.time_text(certificate.not_valid_after_utc) if certificate else None,
    )
