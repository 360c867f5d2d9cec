"""The listening side of TLS: a context of our CA only, a snapshot of what is revoked, both renewed when their files change."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import bundles, verify
from shared.errors import ConfigError, PuppetError
from shared.filesystem.files import stamp_of

from .handshakes import ServedContext

log = logging.getLogger("puppet.tls")

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:DHE+AES:!aNULL:!eNULL:!PSK:!SRP:!CAMELLIA:!ARIA"


@dataclass(frozen=True, slots=True)
class TrustFiles:
    """Where the server's own certificate and key, the CA bundle and the CRLs lie, all PEM."""

    certificate: Path
    key: Path
    authorities: Path
    crl: Path

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.certificate, self.key, self.authorities, self.crl)


@dataclass(frozen=True, slots=True)
class Revocations:
    """What is revoked: for the DER of an issuer's name, the serials. Immutable, so that a request sees one state of it."""

    serials: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    def revoked(self, certificate: x509.Certificate) -> bool:
        """Whether the issuer of `certificate` has revoked it."""
        return certificate.serial_number in self.serials.get(certificate.issuer.public_bytes(), frozenset())

    @classmethod
    def of(cls, crls: Iterable[x509.CertificateRevocationList]) -> Revocations:
        found: dict[bytes, frozenset[int]] = {}
        for crl in crls:
            issuer = crl.issuer.public_bytes()
            found[issuer] = found.get(issuer, frozenset()) | {entry.serial_number for entry in crl}
        return cls(found)


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """One loaded state of the files. `next_update`: when the first of the CRLs ends, None: never."""

    context: ssl.SSLContext
    revocations: Revocations
    authorities: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...]
    next_update: datetime | None


def load(files: TrustFiles) -> ServerTrust:
    """
    The state of `files` now. Blocks: call it in a thread.

    Raises:
        ConfigError: a file is missing or damaged, key and certificate do not belong together, or a CA has no CRL.
            Without a CRL nothing starts: revocation that is not checked is worse than a master that is down.
    """
    authorities = bundles.certificates(_read(files.authorities, "CA certificate"))
    crls = _crls(files, authorities)
    context = _context(files, authorities, crls)
    ends = [crl.next_update_utc for crl in crls if crl.next_update_utc is not None]
    return ServerTrust(context, Revocations.of(crls), authorities, crls, min(ends, default=None))


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise ConfigError(
            f"Could not read the {what} {path}: {err.strerror}",
            hint="The CA writes it on the master's first start.",
        ) from err


def _crls(files: TrustFiles, authorities: tuple[x509.Certificate, ...]) -> tuple[x509.CertificateRevocationList, ...]:
    return _genuine_crls(bundles.revocation_lists(_read(files.crl, "CRL")), authorities, files.crl)


def _genuine_crls(
    crls: tuple[x509.CertificateRevocationList, ...], authorities: tuple[x509.Certificate, ...], path: Path
) -> tuple[x509.CertificateRevocationList, ...]:
    """The CRLs that one of the authorities signed; others are left out, loudly."""
    kept = []
    for crl in crls:
        if any(crl.issuer == ca.subject and verify.crl_is_genuine(crl, ca) for ca in authorities):
            kept.append(crl)
        else:
            log.error("The CRL of %s in %s is not signed by any CA of ours and is ignored", crl.issuer.rfc4514_string(), path)
    if not kept:
        raise ConfigError(
            f"There is no CRL of our CA in {path}", hint="Copy the CA's ca_crl.pem there; without a CRL no revocation is seen."
        )
    return tuple(kept)


def _context(
    files: TrustFiles, authorities: tuple[x509.Certificate, ...], crls: tuple[x509.CertificateRevocationList, ...]
) -> ssl.SSLContext:
    context = ServedContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    # No tickets: a resumed session would carry an identity that nobody verified again. What TLS 1.2 still resumes by its
    # session id ends with the next context, and each request asks for revocation and dates anyway.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = ssl.CERT_OPTIONAL
    _load_own_certificate(context, files)
    _load_trust(context, authorities, crls, files.crl)
    return context


def _load_own_certificate(context: ssl.SSLContext, files: TrustFiles) -> None:
    """Have our own certificate shown; ConfigError when it cannot be used."""
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as err:
        reason = getattr(err, "reason", None) or getattr(err, "strerror", None) or err
        raise ConfigError(
            f"Could not use the certificate {files.certificate} with the key {files.key}: {reason}",
            hint="Both must exist, belong together, and the key must not be encrypted.",
        ) from err


def _load_trust(
    context: ssl.SSLContext,
    authorities: tuple[x509.Certificate, ...],
    crls: tuple[x509.CertificateRevocationList, ...],
    path: Path,
) -> None:
    """Have peers verified by these authorities, and by these CRLs if there are any; `path`: where they are from."""
    context.load_verify_locations(cadata=b"".join(ca.public_bytes(Encoding.DER) for ca in authorities))
    if crls:
        with tempfile.NamedTemporaryFile(prefix="crl") as file:  # OpenSSL takes CRLs from files only; these are the ones just checked
            file.write(bundles.dump(crls))
            file.flush()
            context.load_verify_locations(cafile=file.name)
        context.verify_flags |= _crl_flag(authorities, crls, path)
    if not any(ca.subject == ca.issuer for ca in authorities):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def client_context(files: TrustFiles, now: datetime, *, known: bool) -> ssl.SSLContext:
    """
    For asking the CA: it has to show a certificate of our CA for its name. Blocks.

    Its revocation is checked by our CRLs as long as they are current. With one that has ended, or none, nothing would verify any
    more, not even the CA that has the next one.

    Args:
        known: show our own certificate.
    Raises:
        ConfigError, BadData: a file cannot be used.
    """
    authorities = bundles.certificates(_read(files.authorities, "CA certificate"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        crls = _crls(files, authorities)
    except PuppetError:
        crls = ()
    current = all(each.next_update_utc is None or each.next_update_utc > now for each in crls)
    _load_trust(context, authorities, crls if current else (), files.crl)
    if known:
        _load_own_certificate(context, files)
    return context


def _no_password() -> bytes:
    # Without this, OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted")


def _crl_flag(authorities: tuple[x509.Certificate, ...], crls: tuple[x509.CertificateRevocationList, ...], path: Path) -> ssl.VerifyFlags:
    issuers = {crl.issuer for crl in crls}
    missing = [ca.subject.rfc4514_string() for ca in authorities if ca.subject not in issuers]
    if not missing:
        return ssl.VERIFY_CRL_CHECK_CHAIN
    log.warning("%s has no CRL of %s: only the peers' own certificates are checked for revocation", path, ", ".join(missing))
    return ssl.VERIFY_CRL_CHECK_LEAF


class ServerTls:
    """
    The current trust, for handshakes (`context`) and for each request (`revocations`).

    `watch` reloads when one of the files changes; what cannot be loaded is logged and the old state stays. An ended CRL refuses
    every certificate, so `on_expired` is asked (the CA service signs it anew) and an error is logged again and again.
    """

    def __init__(
        self,
        files: TrustFiles,
        *,
        interval: float = 0.5,
        on_expired: Callable[[], Awaitable[object]] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.files = files
        self.interval = interval
        self.on_expired = on_expired
        self.now = now
        self._trust: ServerTrust | None = None
        self._seen: tuple[object, ...] = ()
        self._loaded = b""  # a sum of what the files held
        self._loading = asyncio.Lock()
        self._complained: datetime | None = None

    @property
    def trust(self) -> ServerTrust:
        if self._trust is None:
            raise ConfigError("TLS is not loaded yet")
        return self._trust

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        return self.trust.context

    @property
    def revocations(self) -> Revocations:
        return self.trust.revocations

    async def start(self) -> None:
        """Load the files; ConfigError or BadData when they do not allow a start."""
        await self.reload()

    async def reload(self) -> None:
        """
        Load the files now; the CA service calls this after a revocation.

        Raises:
            ConfigError: something cannot be loaded. The old state stays, but for what is revoked: that counts at once if the
                CRL itself can be read, whatever is wrong with the other files.
        """
        async with self._loading:
            seen = await asyncio.to_thread(self._stamps)
            try:
                self._loaded = await asyncio.to_thread(self._contents)
                self._trust = await asyncio.to_thread(load, self.files)
            except PuppetError:
                if self._trust is not None:
                    crls = await asyncio.to_thread(_crls, self.files, self._trust.authorities)
                    self._trust = replace(self._trust, revocations=Revocations.of(crls), crls=crls)
                raise
            self._seen = seen
        await self._check_dates()

    async def watch(self) -> None:
        """Runs until cancelled: reload on change, complain about an ended CRL."""
        while True:
            await asyncio.sleep(self.interval)
            try:
                if (seen := await asyncio.to_thread(self._stamps)) == self._seen:
                    await self._check_dates()
                elif await asyncio.to_thread(self._contents) == self._loaded:
                    self._seen = seen  # a refresh that brought nothing new
                else:
                    await self.reload()
                    log.info("Loaded the certificates and CRLs anew")
            except (PuppetError, OSError, ssl.SSLError, ValueError) as err:
                self._seen = await asyncio.to_thread(self._stamps)  # complain once a change
                log.error("Could not load the certificates or CRLs anew, the old ones stay in force: %s", err)

    def _contents(self) -> bytes:
        """A sum over all files; of one that cannot be read, over why not."""
        found = hashlib.sha256()
        for path in self.files.all:
            try:
                found.update(hashlib.sha256(path.read_bytes()).digest())
            except OSError as err:
                found.update(f"error {err.errno}".encode())
        return found.digest()

    def _stamps(self) -> tuple[object, ...]:
        stamps: list[object] = []
        for path in self.files.all:
            try:
                stamps.append(stamp_of(path))
            except OSError as err:
                stamps.append(err.errno)
        return tuple(stamps)

    async def _check_dates(self) -> None:
        end, now = self.trust.next_update, self.now()
        if end is None or end > now:
            self._complained = None
            return
        if self._complained is not None and (now - self._complained).total_seconds() < 60:
            return
        self._complained = now
        log.error("The CRL in %s ended on %s: every agent's certificate is refused until there is a new one", self.files.crl, end)
        if self.on_expired is not None:
            await self.on_expired()
