"""A CA on its first start, and on every other: made when there is none, adopted when there is one, refused when there is half of one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from certs import certificates, crl, keys, oids
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.keys import Generator
from shared.clock import utc_now
from shared.errors import BadData, ConfigError
from shared.failpoints import failpoint
from shared.names import valid_certname

from .. import audit, signers
from ..audit import Audit
from ..authority import CaOptions, CertificateAuthority
from ..registry import CertificateRegistry
from ..storage.inventory import InventoryEntry
from ..storage.store import CaContents, CaStore

log = logging.getLogger("puppet.ca")

RENEW_OWN_BEFORE = timedelta(days=30)


def bootstrap(
    store: CaStore,
    rules: CaOptions,
    ssldir: SslDir,
    *,
    ca_name: str,
    dns_alt_names: Sequence[str] = (),
    generate: Generator,
    now: Callable[[], datetime] = utc_now,
    report: Audit = audit.to_log,
) -> CertificateAuthority:
    """
    Return the CA of a master that starts: made if there is nothing, then the master's own key and certificate, if it has none.

    Where the CA's database is away, this machine's copies are in force, and nothing is signed until it is back.

    Killed at any point, the next start goes on from there. Blocks, for seconds when it makes RSA keys.

    Args:
        ca_name: the common name of a new CA.
        dns_alt_names: of the master's own certificate; none: puppet, its name, puppet.<its domain>.
        generate: makes a private key, the CA's as well.
    Raises:
        ConfigError: a CA that is damaged or not whole, or a certificate of the master that does not fit; what to do is in the hint.
    """
    try:
        if not store.prepare():
            try:
                create(store, ca_name, generate, rules, now=now, report=report)
            except ConfigError:
                if not store.prepare():  # another master may have made it in this moment
                    raise
    except OSError as err:
        raise _unusable(store, err) from err
    authority = open_authority(store, rules, now=now, report=report)
    if store.is_away:
        return authority
    registry = CertificateRegistry(authority)
    for sentence in (*authority.store.repair_modes(), *registry.recover(), *authority.warnings()):
        log.warning("%s", sentence)
    authority.refresh_crl_if_due()
    ensure_own_certificate(authority, ssldir, dns_alt_names=dns_alt_names, generate=generate)
    return authority


def create(
    store: CaStore,
    name: str,
    generate: Generator,
    rules: CaOptions,
    *,
    now: Callable[[], datetime] = utc_now,
    report: Audit = audit.to_log,
) -> None:
    """Create a new self-signed CA, whole or not at all; ConfigError when there is one already."""
    store.check_free()
    store.create_directories()
    secret = signers.password(store.files)
    key, moment = generate(), now()
    failpoint("ca.bootstrap-key-made")
    certificate = certificates.self_signed_authority(key, name, serial=1, ttl=rules.ca_ttl, now=moment)
    empty = crl.sign(certificate, key, number=0, now=moment, lifetime=timedelta(seconds=rules.crl_ttl))
    store.install(
        CaContents(
            key=keys.private_pem(key, secret),
            public_key=keys.public_pem(key.public_key()),
            certificates=certificates.pem(certificate),
            crls=bundles.dump([empty]),
            next_serial=2,
            inventory=((InventoryEntry.of(certificate), rules.master),),
        )
    )
    report(audit.entry("create-ca", name, by="the CA itself") | audit.of_certificate(certificate))


def open_authority(
    store: CaStore,
    rules: CaOptions,
    *,
    now: Callable[[], datetime] = utc_now,
    report: Audit = audit.to_log,
) -> CertificateAuthority:
    """
    Return the CA that is there, taken as it is: Puppet's of any version, with bundles, an intermediate, or an encrypted key.

    Raises:
        ConfigError: there is none, a part is missing, damaged or unreadable; nothing is changed.
    """
    files = store.files
    try:
        store.check_whole()
        whole = store.exists()
    except OSError as err:
        raise _unusable(store, err) from err
    if not whole:
        raise ConfigError(f"There is no CA in {store.place}", hint="A master with ca = true makes one on its first start.")
    try:
        signers.load(files)
        store.create_directories()
        authority = CertificateAuthority(store, rules, now=now, report=report)
        if not store.is_away:
            store.next_serial()
        authority.crl()
        if not files.capub.exists():
            store.write(files.capub, keys.public_pem(authority.key.public_key()))
    except BadData as err:
        raise ConfigError(
            f"The CA in {store.place} cannot be used: {err.message}", hint=err.hint or "Restore the file from a backup."
        ) from err
    except OSError as err:
        raise _unusable(store, err) from err
    return authority


def _unusable(store: CaStore, err: OSError) -> ConfigError:
    return ConfigError(
        f"The CA in {store.place} cannot be used: {err.strerror}: {err.filename}",
        hint=f"It must be readable and writable by the user this runs as (uid {os.geteuid()}).",
    )


def own_names(name: str, dns_alt_names: Sequence[str]) -> list[str]:
    """Return the alternative names of a master's certificate: those configured, else `puppet`, its name and `puppet.<domain>`."""
    if dns_alt_names:
        return [name, *dns_alt_names]
    domain = name.partition(".")[2]
    return [name, "puppet", *([f"puppet.{domain}"] if domain else [])]


def check_own_key(store: CaStore, ssldir: SslDir) -> None:
    """Raise ConfigError when this host has a certificate in signed/, but not its key, as after a CA was adopted."""
    name, path = ssldir.certname, ssldir.hostprivkey
    if not path.exists() and store.signed(name) is not None:
        raise ConfigError(
            f"This host, {name}, has a certificate, but not its key {path}",
            hint=f"Copy the key from where the CA was, or run 'puppet cert clean --force {name}': the master then gets a new certificate.",
        )


def ensure_own_certificate(authority: CertificateAuthority, ssldir: SslDir, *, dns_alt_names: Sequence[str], generate: Generator) -> None:
    """
    Ensure that the master has a key, a certificate of this CA that matches it, and copies of the CA's certificate and CRL in its ssldir.

    A certificate with less than 30 days left is reissued with the same key. Order: key, certificate in the CA, copy in the ssldir.
    """
    name = valid_certname(ssldir.certname)
    ssldir.create()
    key = ssldir.key()
    if key is None:
        check_own_key(authority.store, ssldir)
        key = generate()
        ssldir.save_key(key)
        failpoint("master.key-written")
    elif not ssldir.hostpubkey.exists():
        ssldir.save_public_key(key)
    own = ssldir.certificate()
    if own is not None and not authority.has_issued(own):
        raise ConfigError(
            f"The certificate {ssldir.hostcert} was not issued by the CA in {authority.store.place}",
            hint="Set ca = false if this host's CA is elsewhere; otherwise move the certificate away and start again.",
        )
    current = authority.signed_certificate(name)
    for found, where in ((current, authority.store.signed_place(name)), (own, ssldir.hostcert)):
        if found is not None and not keys.belongs(key, found.public_key()):
            raise ConfigError(
                f"The certificate {where} does not match the private key {ssldir.hostprivkey}",
                hint=f"Put the right key there, or run 'puppet cert clean --force {name}' and start again: this creates both.",
            )
    best = current if current is not None and authority.has_issued(current) else own
    if best is not None and best.serial_number in authority.revoked():
        raise ConfigError(
            f"The certificate of this master, {name}, is revoked",
            hint=f"Run 'puppet cert clean --force {name}', and start again: this creates both key and certificate.",
        )
    if best is None or best.not_valid_after_utc - authority.now() < RENEW_OWN_BEFORE:
        ends_with_ca = best is not None and best.not_valid_after_utc >= authority.certificate.not_valid_after_utc
        if not ends_with_ca:
            best = authority.issue(
                name,
                key.public_key(),
                alternative_names=own_names(name, dns_alt_names),
                extensions=[certificates.text_extension(oids.CLI_AUTH, "true")],
                by="the master itself",
            )
            failpoint("master.certificate-issued")
    assert best is not None
    if own != best:
        ssldir.save_certificate(best)
        failpoint("master.certificate-written")
    bundle = bundles.dump(authority.bundle)
    if ssldir.authorities() != authority.bundle:
        ssldir.save_authorities(bundle)
    if not ssldir.hostcrl.exists():
        ssldir.save_crls(authority.crl_pem())
