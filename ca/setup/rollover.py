"""
Replacing a CA while its agents continue to work: the new CA is published first, then signs, and finally is the only one.

With a new key (a CA with a name of its own):

    start   agents get both CAs and both CRLs with their usual refresh; the old one signs
    switch  the new one signs; what the old one has issued stays valid, and its CRL is kept
    finish  once nobody has a certificate of the old one: the master gets one of the new CA, the old one is gone

With the same key (same subject, later dates) there is nothing to switch: what one has signed, the other verifies.

Each step can be repeated: killed in the middle, the next call goes on from there. Which CA signs is what ca_key.pem says,
so that this changes in one write.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography import x509

from certs import certificates, crl, fingerprints, keys, oids, signatures, verify
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.keys import Generator
from shared.errors import ConfigError, Conflict
from shared.failpoints import failpoint
from shared.filesystem.files import make_directory, write_atomic
from shared.names import is_certname

from .. import audit, signers
from ..authority import CertificateAuthority
from ..signers import RolloverFiles, Signer
from ..storage.folder import FolderStore
from ..storage.inventory import InventoryEntry
from ..storage.store import PRIVATE_MODE, PUBLIC_MODE

# Twice the interval of a day after which agents fetch CA certificates and CRLs anew.
OVERLAP = timedelta(days=2)
MAX_CA_NAME = 64  # characters that X.520 gives a common name

Phase = Literal["none", "started", "switched", "same-key"]


@dataclass(frozen=True)
class CaState:
    """One CA of the two: which it is, and whose certificates are of it."""

    subject: str
    fingerprint: str
    not_after: str
    names: tuple[str, ...] = ()

    def to_data(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class RolloverStatus:
    """The state of a roll-over."""

    phase: Phase
    signs: CaState
    bundle: str
    old: CaState | None = None
    new: CaState | None = None
    started: datetime | None = None
    switch_from: datetime | None = None
    blocking: tuple[str, ...] = ()  # who would be locked out by `finish` now

    def to_data(self) -> dict[str, object]:
        """Return it as plain data, for --json."""
        return {
            "phase": self.phase,
            "signs": self.signs.to_data(),
            "bundle_fingerprint": self.bundle,
            "old": self.old.to_data() if self.old else None,
            "new": self.new.to_data() if self.new else None,
            "started": self.started.isoformat() if self.started else None,
            "switch_from": self.switch_from.isoformat() if self.switch_from else None,
            "blocking": list(self.blocking),
        }


@dataclass
class Rollover:
    """A CA and the master whose it is. All methods block, and take the CA's lock where they write."""

    authority: CertificateAuthority
    ssldir: SslDir
    by: str = "the command line"
    report: audit.Audit = field(default=audit.to_log)

    @property
    def files(self) -> RolloverFiles:
        return RolloverFiles.of(self.authority.store.files)

    @property
    def _store(self) -> FolderStore:
        """The files of the CA; ConfigError: it is not in files."""
        store = self.authority.store
        if not isinstance(store, FolderStore):
            raise ConfigError(f"A roll-over works on a CA in files only, and this one is in {store.place}")
        return store

    # --- start

    def start(self, generate: Generator, *, name: str = "", same_key: bool = False) -> RolloverStatus:
        """
        Make the next CA and give it to the agents, in addition to the present one.

        Args:
            name: the new CA's common name; '': the old one's with the next number. With `same_key` it is always the old one's.
        Raises:
            Conflict: another roll-over is under way, the signing CA is an intermediate, or the name is taken.
        """
        store = self._store
        with store.writing():
            if self.files.folder.exists():
                if same_key != (self._phase() == "same-key"):
                    raise Conflict("Another roll-over is under way", hint="See 'puppet cert rollover status'.")
            else:
                self._make(generate, name, same_key=same_key)
            self._publish()
        return self.status()

    def _make(self, generate: Generator, name: str, *, same_key: bool) -> None:
        """Make the folder `rollover`, whole or not at all; until it exists, nothing has happened."""
        authority, store = self.authority, self._store
        old = authority.signers().own
        self._check_start(old.certificate)
        title = certificates.name_of(old.certificate) if same_key else name or next_name(certificates.name_of(old.certificate))
        if not same_key and any(title == certificates.name_of(c) for c in authority.bundle):
            raise Conflict(
                f"The present CA is called '{title}' already",
                hint="Two CAs with the same name cannot be distinguished: choose another name.",
            )
        if not 0 < len(title) <= MAX_CA_NAME:
            raise ConfigError(f"The name of a CA has 1 to {MAX_CA_NAME} characters, not {len(title)}")
        now = authority.now()
        if same_key:
            # A certificate that names its issuer by serial is valid only below one with that serial.
            serial = old.certificate.serial_number if self._serial_is_named() else authority.serials.take()
            certificate = certificates.renewed_authority(old.certificate, old.key, serial=serial, ttl=authority.rules.ca_ttl, now=now)
            new = Signer(certificate, old.key)
        else:
            key = generate()
            serial = authority.serials.take()
            certificate = certificates.self_signed_authority(key, title, serial=serial, ttl=authority.rules.ca_ttl, now=now)
            new = Signer(certificate, key)
        if same_key and certificate.not_valid_after_utc <= old.certificate.not_valid_after_utc:
            raise ConfigError(
                f"The new certificate would expire on {_text(certificate.not_valid_after_utc)}, no later than the present one",
                hint="Set ca_ttl to a longer time.",
            )
        secret = signers.password(store.files)
        making = store.files.cadir / ".rollover.making"
        shutil.rmtree(making, ignore_errors=True)
        make_directory(making, mode=0o700)
        staged = RolloverFiles.at(making)
        for path, content, mode in (
            (staged.old_key, store.files.cakey.read_bytes(), PRIVATE_MODE),
            (staged.old_certificate, certificates.pem(old.certificate), PUBLIC_MODE),
            (staged.new_key, keys.private_pem(new.key, secret), PRIVATE_MODE),
            (staged.new_certificate, certificates.pem(certificate), PUBLIC_MODE),
            (staged.started, now.isoformat().encode(), PUBLIC_MODE),
        ):
            write_atomic(path, content, mode=mode, owner=store.owner)
        store.take_folder(making, self.files.folder)
        failpoint("ca.rollover-made")
        self.report(audit.entry("rollover-start", certificates.name_of(certificate), by=self.by) | audit.of_certificate(certificate))

    def _check_start(self, old: x509.Certificate) -> None:
        if old.issuer != old.subject:
            raise Conflict(
                f"The CA that signs, '{verify.subject_of(old)}', is an intermediate: only '{verify.issuer_of(old)}' can replace it",
                hint="Have that authority issue a new intermediate, and put it in the place of ca_crt.pem; agents trust its root already.",
            )
        if old.not_valid_after_utc <= self.authority.now():
            raise Conflict(
                f"The CA's certificate expired on {_text(old.not_valid_after_utc)}: agents accept nothing from it any more",
                hint="Make a new CA: move the cadir away, start the master, and have every agent enrol again.",
            )

    def _serial_is_named(self) -> bool:
        """Return whether a certificate in signed/ names its issuer by serial as well as by key, as some of Puppet 2 and 3 do."""
        return any(certificates.names_issuers_serial(certificate) for certificate in self._valid().values())

    def _publish(self) -> None:
        """Write both CRLs, then both certificates, to the files that agents and the master's own TLS use; existing ones stay in them."""
        authority, store = self.authority, self._store
        old, new = signers.pair(store.files)
        if not _same_key(old, new):
            lists = bundles.revocation_lists(authority.crl_pem())
            if not any(signatures.crl_is_genuine(revocation_list, new.certificate) for revocation_list in lists):
                # All that is revoked is on it from its first day: serials are counted on, so none of them is anybody else's.
                lifetime = timedelta(seconds=authority.rules.crl_ttl)
                first = crl.sign(new.certificate, new.key, number=0, now=authority.now(), entries=list(authority.crl()), lifetime=lifetime)
                store.save_crls(bundles.dump((*lists, first)))
                failpoint("ca.rollover-crl")
        if new.certificate.serial_number not in store.inventory().serials:
            store.record(InventoryEntry.of(new.certificate))
        # With the same key the first one of the file is the one that signs.
        first_two = (new, old) if _same_key(old, new) or self._phase() == "switched" else (old, new)
        pair = [signer.certificate for signer in first_two]
        self._write_bundle([*pair, *(c for c in authority.bundle if c not in pair)])
        failpoint("ca.rollover-published")

    def _write_bundle(self, bundle: list[x509.Certificate]) -> None:
        """Write ca_crt.pem, and this host's own copy of it."""
        authority, store = self.authority, self._store
        if list(authority.bundle) != bundle:
            store.write(store.files.cacert, bundles.dump(bundle))
        if self.ssldir.localcacert.exists() and self.ssldir.authorities() != tuple(bundle):
            self.ssldir.save_authorities(bundles.dump(bundle))
        if self.ssldir.hostcrl.exists():
            self.ssldir.save_crls(authority.crl_pem())

    # --- switch

    def switch(self, *, at_once: bool = False) -> RolloverStatus:
        """
        Let the new CA sign from now on.

        Args:
            at_once: even if agents do not have it yet: they get certificates that they cannot use, and continue with their old ones.
        Raises:
            Conflict: none was started, or it is too early.
        """
        store = self._store
        with store.writing():
            phase = self._needed()
            if phase == "same-key":
                raise Conflict("The new CA has the key of the old one: there is nothing to switch", hint="Go on with 'finish'.")
            due = self._started() + OVERLAP
            if phase == "started" and self.authority.now() < due and not at_once:
                raise Conflict(
                    f"It is too early: until {_text(due)} there may be agents that have not refreshed their CA certificates and CRLs",
                    hint="Agents without ca_refresh_interval (before 8) need ca.pem and crl.pem as files. --now switches all the same.",
                )
            if phase == "started":
                new = signers.pair(store.files)[1]
                store.write(store.files.cakey, self.files.new_key.read_bytes(), mode=PRIVATE_MODE)
                failpoint("ca.rollover-switched")
                self.report(audit.entry("rollover-switch", certificates.name_of(new.certificate), by=self.by))
            store.write(store.files.capub, keys.public_pem(self.authority.key.public_key()))
            self._publish()
        return self.status()

    # --- finish

    def finish(self) -> RolloverStatus:
        """
        End the trust in the old CA: its certificate, key and CRL are moved into a folder that nothing reads.

        Raises:
            Conflict: some agents would be locked out, or none was started.
        """
        authority, store = self.authority, self._store
        with store.writing():
            phase = self._needed()
            if phase == "started":
                raise Conflict("The new CA does not sign yet", hint="First 'puppet cert rollover switch'.")
            blocking = self._blocking()
            if blocking:
                listed = ", ".join(blocking[:10]) + (f" and {len(blocking) - 10} more" if len(blocking) > 10 else "")
                raise Conflict(
                    f"{len(blocking)} would be locked out, since their certificates are of the old CA: {listed}",
                    hint="Have them renew theirs (hostcert_renewal_interval) or enrol again; 'puppet cert clean' decommissioned nodes.",
                )
            old, new = signers.pair(store.files)
            if phase == "switched":
                self._renew_own()
                self._write_bundle([c for c in authority.bundle if c != old.certificate])
                lists = bundles.revocation_lists(authority.crl_pem())
                remaining = [revocation_list for revocation_list in lists if revocation_list.issuer != old.certificate.subject]
                store.save_crls(bundles.dump(remaining))
            else:
                self._write_bundle([c for c in authority.bundle if c != old.certificate])
            failpoint("ca.rollover-alone")
            retired = store.files.cadir / f"retired-{old.certificate.serial_number:04x}-{authority.now():%Y%m%d%H%M%S}"
            store.take_folder(self.files.folder, retired)
            self.report(audit.entry("rollover-finish", certificates.name_of(new.certificate), by=self.by, retired=str(retired)))
        if self.ssldir.hostcrl.exists():
            self.ssldir.save_crls(authority.crl_pem())
        return self.status()

    def _renew_own(self) -> None:
        """Give the master a certificate of the new CA, with the names that it had; agents have both CAs at this moment."""
        authority, current = self.authority, self.ssldir.certificate()
        if current is None or signatures.issued(current, authority.certificate):
            return
        certificate = authority.issue(
            self.ssldir.certname,
            current.public_key(),
            alternative_names=certificates.alternative_names(current),
            extensions=certificates.puppet_extensions(current) or [certificates.text_extension(oids.CLI_AUTH, "true")],
            by=self.by,
            action="renew",
        )
        self.ssldir.save_certificate(certificate)
        failpoint("ca.rollover-own")

    # --- questions

    def status(self) -> RolloverStatus:
        """Return the state of the roll-over, from the files alone."""
        authority = self.authority
        valid = self._valid()
        own = authority.signers().own.certificate
        phase = self._phase()
        everyone = {name: certificate for name, certificate in valid.items() if authority.has_issued(certificate)}
        bundle = fingerprints.of_bundle(bundles.dump([own, *(c for c in authority.bundle if c != own)]))
        if phase == "none":
            return RolloverStatus(phase, _state(own, tuple(sorted(everyone))), bundle)
        old, new = signers.pair(authority.store.files)
        of_old = [name for name, c in everyone.items() if signatures.issued(c, old.certificate)]
        of_new = [name for name, c in everyone.items() if signatures.issued(c, new.certificate)]
        first, second = _state(old.certificate, tuple(sorted(of_old))), _state(new.certificate, tuple(sorted(of_new)))
        started = self._started()
        signs = first if own == old.certificate else second
        due = started + OVERLAP if phase == "started" else None
        return RolloverStatus(phase, signs, bundle, first, second, started, due, self._blocking())

    def _phase(self) -> Phase:
        files = self.authority.store.files
        if not self.files.folder.exists():
            return "none"
        old, new = signers.pair(files)
        if _same_key(old, new):
            return "same-key"
        return "switched" if keys.belongs(self.authority.key, new.certificate.public_key()) else "started"

    def _needed(self) -> Phase:
        phase = self._phase()
        if phase == "none":
            raise Conflict("No roll-over is under way", hint="Begin one with 'puppet cert rollover start'.")
        self._started()
        return phase

    def _started(self) -> datetime:
        text = self.files.started.read_text("ascii", "replace").strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            hint = "Write there when it was started, as 2026-11-21T12:00:00Z."
            raise ConfigError(f"{self.files.started} holds no time", hint=hint) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _valid(self) -> dict[str, x509.Certificate]:
        """Return the certificates in signed/ that an agent could use now."""
        authority = self.authority
        now, revoked = authority.now(), authority.revoked()
        certificates = ((name, authority.signed_certificate(name)) for name in authority.store.signed_names() if is_certname(name))
        return {name: c for name, c in certificates if c is not None and c.not_valid_after_utc > now and c.serial_number not in revoked}

    def _blocking(self) -> tuple[str, ...]:
        """Return the names that only have a certificate of the old CA; without the master, which gets a new one in `finish`."""
        pair = signers.pair(self.authority.store.files)
        if not pair or _same_key(*pair):
            return ()
        old = pair[0].certificate
        return tuple(sorted(n for n, c in self._valid().items() if signatures.issued(c, old) and n != self.ssldir.certname))


def next_name(name: str) -> str:
    """Return the common name of the CA after `name`: with the next number in parentheses."""
    match = re.fullmatch(r"(.*) \((\d{1,6})\)", name)
    base, number = (match[1], int(match[2]) + 1) if match else (name, 2)
    ending = f" ({number})"
    return base[: MAX_CA_NAME - len(ending)] + ending


def _same_key(old: Signer, new: Signer) -> bool:
    return keys.public_der(old.certificate.public_key()) == keys.public_der(new.certificate.public_key())


def _state(certificate: x509.Certificate, names: tuple[str, ...]) -> CaState:
    end = certificates.time_text(certificate.not_valid_after_utc)
    return CaState(verify.subject_of(certificate), fingerprints.fingerprint(certificate), end, names)


def _text(moment: datetime) -> str:
    return certificates.time_text(moment)
