"""A CA on its first start, and on every other: made when there is none, adopted when there is one, refused when there is half of one."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from certs import certificates, crl, keys, oids
from certs.files import bundles
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from certs.keys import Generator
from shared.clock import utc_now
from shared.errors import BadData, ConfigError
from shared.failpoints import failpoint
from shared.filesystem.files import make_directory, write_atomic
from shared.names import valid_certname

from .. import audit, signers
from ..audit import Audit
from ..authority import CaOptions, CertificateAuthority
from ..registry import CertificateRegistry
from ..storage.inventory import InventoryEntry
from ..storage.store import PRIVATE_MODE, PUBLIC_MODE, CaStore

log = logging.getLogger("puppet.ca")

RENEW_OWN_BEFORE = timedelta(days=30)
_COMPLETE = "complete"


def bootstrap(
    files: CaFiles,
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

    Killed at any point, the next start goes on from there. Blocks, for seconds when it makes RSA keys.

    Args:
        ca_name: the common name of a new CA.
        dns_alt_names: of the master's own certificate; none: puppet, its name, puppet.<its domain>.
        generate: makes a private key, the CA's as well.
    Raises:
        ConfigError: a CA that is damaged or not whole, or a certificate of the master that does not fit; what to do is in the hint.
    """
    try:
        if not prepare(files):
            create(files, ca_name, generate, rules, now=now, report=report)
    except OSError as err:
        raise _unusable(files, err) from err
    authority = open_authority(files, rules, now=now, report=report)
    registry = CertificateRegistry(authority)
    for sentence in (*authority.store.repair_modes(), *registry.recover(), *authority.warnings()):
        log.warning("%s", sentence)
    authority.refresh_crl_if_due()
    ensure_own_certificate(authority, ssldir, dns_alt_names=dns_alt_names, generate=generate)
    return authority


def prepare(files: CaFiles) -> bool:
    """Finish or undo a creation that was interrupted; whether there is a whole CA now. ConfigError for half of one."""
    store = CaStore(files)
    if files.staging.exists():
        with store.writing():  # waits for another process that is just making the CA
            if (files.staging / _COMPLETE).exists():
                _move_into_place(store)
            elif files.staging.exists():
                shutil.rmtree(files.staging)  # it was not whole, and nothing of it was in place
    store.check_whole()
    return store.exists()


def create(
    files: CaFiles,
    name: str,
    generate: Generator,
    rules: CaOptions,
    *,
    now: Callable[[], datetime] = utc_now,
    report: Audit = audit.to_log,
) -> None:
    """
    Create a new self-signed CA. It is prepared in a temporary folder, marked as complete, and then moved file by file: a crash before the
    mark leaves nothing, one after it is finished by the next `prepare`.
    """
    store = CaStore(files)
    store.create_directories()
    with store.writing():
        if store.exists():
            raise ConfigError(f"There is a CA in {files.cadir} already; nothing was made")
        key, moment = generate(), now()
        certificate = certificates.self_signed_authority(key, name, serial=1, ttl=rules.ca_ttl, now=moment)
        empty = crl.sign(certificate, key, number=0, now=moment, lifetime=timedelta(seconds=rules.crl_ttl))
        failpoint("ca.bootstrap-key-made")
        make_directory(files.staging, mode=0o700)
        contents = {
            "cakey": keys.private_pem(key),
            "cacert": certificates.pem(certificate),
            "capub": keys.public_pem(key.public_key()),
            "cacrl": bundles.dump([empty]),
            "serial": b"0002",
            "cert_inventory": str(InventoryEntry.of(certificate)).encode(),
        }
        for what, content in contents.items():
            write_atomic(files.staging / what, content, mode=PRIVATE_MODE if what == "cakey" else PUBLIC_MODE, owner=store.owner)
            failpoint(f"ca.bootstrap-staged-{what}")
        write_atomic(files.staging / _COMPLETE, b"")
        failpoint("ca.bootstrap-staged")
        _move_into_place(store)
        report(audit.entry("create-ca", name, by="the CA itself") | audit.of_certificate(certificate))


def _move_into_place(store: CaStore) -> None:
    files = store.files
    for what in ("cakey", "cacert", "capub", "serial", "cert_inventory", "cacrl"):
        staged, target = files.staging / what, Path(getattr(files, what))
        if not staged.exists():
            continue
        make_directory(target.parent)
        store.write(target, staged.read_bytes(), mode=PRIVATE_MODE if what == "cakey" else PUBLIC_MODE)
        failpoint(f"ca.bootstrap-moved-{what}")
    shutil.rmtree(files.staging)
    failpoint("ca.bootstrap-done")


def open_authority(
    files: CaFiles,
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
    store = CaStore(files)
    try:
        store.check_whole()
        whole = store.exists()
    except OSError as err:
        raise _unusable(files, err) from err
    if not whole:
        raise ConfigError(f"There is no CA in {files.cadir}", hint="A master with ca = true makes one on its first start.")
    try:
        signers.load(files)
        store.create_directories()
        authority = CertificateAuthority(store, rules, now=now, report=report)
        store.next_serial()
        authority.crl()
        if not files.capub.exists():
            store.write(files.capub, keys.public_pem(authority.key.public_key()))
    except BadData as err:
        raise ConfigError(
            f"The CA in {files.cadir} cannot be used: {err.message}", hint=err.hint or "Restore the file from a backup."
        ) from err
    except OSError as err:
        raise _unusable(files, err) from err
    return authority


def _unusable(files: CaFiles, err: OSError) -> ConfigError:
    return ConfigError(
        f"The CA in {files.cadir} cannot be used: {err.strerror}: {err.filename}",
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
            f"The certificate {ssldir.hostcert} was not issued by the CA in {authority.store.files.cadir}",
            hint="Set ca = false if this host's CA is elsewhere; otherwise move the certificate away and start again.",
        )
    current = authority.signed_certificate(name)
    for found, where in ((current, authority.store.signed_path(name)), (own, ssldir.hostcert)):
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
