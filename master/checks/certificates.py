"""Check that the master's certificate, the CA and the revocation lists are complete, consistent and valid for some time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import Final

from ca.authority import CertificateAuthority
from ca.configured import ca_options, ca_store
from ca.setup.bootstrap import check_own_key
from ca.storage.store import CaStore
from certs import certificates, verify
from certs.files import bundles
from certs.files.ssldir import SslDir
from httpd.tls import trust
from shared.settings import MasterSettings

from ..service.crl_refresh import overdue_since
from ..service.expiry import MAX_NAMES, Ending, agent_endings, expiry_warnings, server_endings
from ..trust import trust_files
from .findings import Finding, run_check

AREA: Final = "certificates"


def check(settings: MasterSettings, now: datetime) -> list[Finding]:
    """Return all problems; none for a master whose CA will be made at its first start."""
    with closing(ca_store(settings)) as store:
        return _check(settings, store, now)


def _check(settings: MasterSettings, store: CaStore, now: datetime) -> list[Finding]:
    findings: list[Finding] = []
    if settings.ca:
        findings += run_check(AREA, lambda: _authority(settings, store, now))
        if any(finding.severity == "error" for finding in findings) or not store.exists():
            return findings
    if settings.ca:
        findings += run_check(AREA, lambda: check_own_key(store, SslDir.of(settings)))
    if not settings.hostcert.exists():
        if not settings.ca:  # on a CA it is made at the start
            hint = "Run 'puppet agent --test' here with the CA as ca_server, and sign the request there."
            findings.append(Finding(AREA, "error", f"This master has no certificate {settings.hostcert}", hint))
        return findings
    refreshed = not settings.ca and settings.crl_refresh_interval > 0
    if refreshed and not settings.hostcrl.exists():
        hint = f"The master fetches it from {settings.ca_server}:{settings.ca_port} when it starts, and does not start without."
        return [*findings, Finding(AREA, "warning", f"There is no CRL {settings.hostcrl} yet", hint)]
    if refreshed:
        findings += run_check(AREA, lambda: _check_refresh(settings, now))
    return [*findings, *run_check(AREA, lambda: _server(settings, now))]


def _check_refresh(settings: MasterSettings, now: datetime) -> Iterator[Finding]:
    last = overdue_since(settings.hostcrl, settings.crl_refresh_interval, now)
    if last is not None:
        message = f"The CRL {settings.hostcrl} is out of date: it was last refreshed on {certificates.time_text(last)}"
        hint = f"A running master fetches it from {settings.ca_server}:{settings.ca_port}, and logs the reason if it cannot."
        yield Finding(AREA, "warning", message, hint)


def _authority(settings: MasterSettings, store: CaStore, now: datetime) -> Iterator[Finding]:
    if store.is_shared:
        store.prepare()
    store.check_whole()
    if not store.exists():
        return
    authority = CertificateAuthority(store, ca_options(settings), now=lambda: now)
    written, free = store.next_serial(), authority.serials.next_free()
    if written != free:
        message = f"The next serial in {store.serial_place} is {written:04X}, which was used already; the next certificate gets {free:04X}"
        yield Finding(AREA, "warning", message, "Is it from a back-up? Restore the rest of the CA's directory, too (docs/operation.md).")
    listed = store.inventory().serials
    signed = ((name, authority.parse_certificate(name, pem)) for name, _, pem in store.all_names() if pem is not None)
    unlisted = [name for name, own in signed if own is not None and own.serial_number not in listed and authority.has_issued(own)]
    if unlisted:
        message = f"{store.inventory_place} lacks certificates of signed/: {', '.join(unlisted[:MAX_NAMES])}"
        yield Finding(AREA, "warning", message, "Is it from a back-up? Run 'puppet cert reinventory'.")
    authority.crl()
    verify.verify_bundle(authority.bundle)
    yield from endings_found(agent_endings(authority), now)


def _server(settings: MasterSettings, now: datetime) -> Iterator[Finding]:
    files = trust_files(settings)
    server_trust = trust.load(files)
    yield from endings_found(server_endings(files), now)
    certificate = bundles.certificate(files.certificate.read_bytes())
    verify.verify(certificate, verify.TrustStore(server_trust.authorities, server_trust.crls, "leaf"), now=now, purpose="server")
    verify.verify_host(certificate, settings.certname)


def endings_found(endings: list[Ending], now: datetime) -> Iterator[Finding]:
    """Yield a finding for each certificate or list that has expired, an error unless it is an agent's, or expires soon, a warning."""
    for warning in expiry_warnings(endings, now):
        message, _, hint = warning.partition(". ")
        over = " expired on " in message and not message.startswith("Certificates of agents")
        yield Finding(AREA, "error" if over else "warning", message, hint)
