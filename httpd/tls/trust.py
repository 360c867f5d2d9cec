"""The server's side of TLS: a context that trusts our CA only, and the revoked serials, both loaded again when their files change."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import crl as revocation
from certs import signatures
from certs.files import bundles
from shared.clock import utc_now
from shared.errors import ConfigError, PuppetError
from shared.filesystem.identity import stamp_of

from .handshakes import ServedContext

log = logging.getLogger("puppet.tls")

# CBC comes last, for agents on old systems, whose OpenSSL has nothing better.
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:DHE+AES:!aNULL:!eNULL:!PSK:!SRP:!CAMELLIA:!ARIA"


@dataclass(frozen=True, slots=True)
class TrustFiles:
    """The paths of the server's own certificate and key, of the CA bundle and of the CRLs, all PEM."""

    certificate: Path
    key: Path
    authorities: Path
    crl: Path

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.certificate, self.key, self.authorities, self.crl)


@dataclass(frozen=True, slots=True)
class Revocations:
    """The revoked serials by the DER of their issuer's name. Immutable, so that a request sees one state of them."""

    serials: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    def has_revoked(self, issuer: bytes, serial_number: int) -> bool:
        """Return whether an issuer, by the DER of its name, has revoked one of its certificates."""
        return serial_number in self.serials.get(issuer, frozenset())

    @classmethod
    def of(cls, crls: Iterable[x509.CertificateRevocationList]) -> Revocations:
        serials: dict[bytes, frozenset[int]] = {}
        for crl in crls:
            issuer = crl.issuer.public_bytes()
            # All lists of an issuer together: a file with an old list beside the new one must not hide a revocation.
            serials[issuer] = serials.get(issuer, frozenset()) | {entry.serial_number for entry in crl}
        return cls(serials)


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """One loaded state of the files. `next_update` is when the first of the CRLs ends; None: never."""

    context: ssl.SSLContext
    revocations: Revocations
    authorities: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...]
    next_update: datetime | None


def load(files: TrustFiles, known: Iterable[x509.CertificateRevocationList] = ()) -> ServerTrust:
    """
    Return the state of `files` now. Blocks: call it in a thread.

    Args:
        known: the CRLs in force, which those of the file may not be older than.
    Raises:
        ConfigError: A file is missing or damaged, key and certificate do not belong together, a CA has no CRL, or an older one.
            Without a CRL nothing starts: revocation that is not checked is worse than a server that is down.
    """
    authorities = bundles.certificates(_read(files.authorities, "CA certificate"))
    crls = _crls(files, authorities, known)
    context = _context(files, authorities, crls)
    ends = [crl.next_update_utc for crl in crls if crl.next_update_utc is not None]
    return ServerTrust(context, Revocations.of(crls), authorities, crls, min(ends, default=None))


def _read(path: Path, kind: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise ConfigError(
            f"Could not read the {kind} {path}: {err.strerror}",
            hint="The CA writes it on the master's first start.",
        ) from err


def _crls(
    files: TrustFiles, authorities: tuple[x509.Certificate, ...], known: Iterable[x509.CertificateRevocationList] = ()
) -> tuple[x509.CertificateRevocationList, ...]:
    crls = _genuine_crls(bundles.revocation_lists(_read(files.crl, "CRL")), authorities, files.crl)
    # An older list would make revoked certificates valid again, as after unpacking a back-up.
    newer = revocation.newer_known(crls, (crl for crl in known if _is_genuine(crl, authorities)))
    if newer is not None:
        name, number = newer.issuer.rfc4514_string(), revocation.number_of(newer)
        raise ConfigError(
            f"The CRL of {name} in {files.crl} is older than number {number}, which is in use",
            hint="It would make revoked certificates valid again. Put the newer one back (docs/recovery.md).",
        )
    return crls


def _is_genuine(crl: x509.CertificateRevocationList, authorities: Iterable[x509.Certificate]) -> bool:
    return any(signatures.crl_is_genuine(crl, ca) for ca in authorities)


def _genuine_crls(
    crls: tuple[x509.CertificateRevocationList, ...], authorities: tuple[x509.Certificate, ...], path: Path
) -> tuple[x509.CertificateRevocationList, ...]:
    """Return the CRLs that one of the authorities signed, and log the others; raise ConfigError when none is left."""
    genuine = []
    for crl in crls:
        if _is_genuine(crl, authorities):
            genuine.append(crl)
        else:
            log.error("The CRL of %s in %s is not signed by any CA of ours and is ignored", crl.issuer.rfc4514_string(), path)
    # Without any list OpenSSL would check nothing; refusing to start is the safe side.
    if not genuine:
        raise ConfigError(
            f"There is no CRL of our CA in {path}", hint="Copy the CA's ca_crl.pem there; without a CRL no revocation is seen."
        )
    return tuple(genuine)


def _context(
    files: TrustFiles, authorities: tuple[x509.Certificate, ...], crls: tuple[x509.CertificateRevocationList, ...]
) -> ssl.SSLContext:
    context = ServedContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    # No tickets: a resumed session would carry an identity that nobody verified again. What TLS 1.2 still resumes by its
    # session id ends with the next context, and revocation and dates are checked for each request anyway.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # New agents have no certificate yet and must be able to fetch the CA's and leave a request.
    context.verify_mode = ssl.CERT_OPTIONAL
    _load_own_certificate(context, files)
    _load_trust(context, authorities, crls, files.crl)
    return context


def _load_own_certificate(context: ssl.SSLContext, files: TrustFiles) -> None:
    """Load our own certificate and key into a context; raise ConfigError when they cannot be used."""
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
    """Make a context verify peers by these authorities, and by these CRLs, if any, which are from `path`."""
    context.load_verify_locations(cadata=b"".join(ca.public_bytes(Encoding.DER) for ca in authorities))
    if crls:
        with tempfile.NamedTemporaryFile(prefix="crl") as file:  # OpenSSL takes CRLs from files only; these are the ones just checked
            file.write(bundles.dump(crls))
            file.flush()
            context.load_verify_locations(cafile=file.name)
        context.verify_flags |= _crl_flag(authorities, crls, path)
    # Only an intermediate CA is here: OpenSSL would otherwise insist on finding its root.
    if not any(ca.subject == ca.issuer for ca in authorities):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def client_context(files: TrustFiles, now: datetime, *, with_certificate: bool) -> ssl.SSLContext:
    """
    Return a context for requests to the CA, which has to show a certificate of our CA for its name. Blocks.

    The CA's own revocation is checked by our CRLs as long as they are current. With one that has ended, or none, nothing would verify
    any more, not even the CA that has the next one.

    Args:
        with_certificate: Show our own certificate.
    Raises:
        ConfigError, BadData: A file cannot be used.
    """
    authorities = bundles.certificates(_read(files.authorities, "CA certificate"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        crls = _crls(files, authorities)
    except PuppetError:
        crls = ()
    # OpenSSL fails every connection with an expired list, even the one that would fetch a new list.
    current = all(crl.next_update_utc is None or crl.next_update_utc > now for crl in crls)
    _load_trust(context, authorities, crls if current else (), files.crl)
    if with_certificate:
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


@dataclass(eq=False, repr=False)
class ServerTls:
    """
    The trust in force, for handshakes (`context`) and for each request (`revocations`).

    `watch` reloads when one of the files changes; files that cannot be loaded are logged and the old state stays. An expired CRL makes
    TLS refuse every certificate, so `on_expired` is awaited (the CA service signs it again) and an error is logged once a minute.
    """

    files: TrustFiles
    _: KW_ONLY
    interval: float = 0.5
    on_expired: Callable[[], Awaitable[object]] | None = None
    now: Callable[[], datetime] = utc_now
    _trust: ServerTrust | None = field(default=None, init=False)
    _loaded_stamps: tuple[object, ...] = field(default=(), init=False)
    _loaded_digest: bytes = field(default=b"", init=False)  # of the files' contents
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _last_complaint: datetime | None = field(default=None, init=False)

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
        """Load the files; raise ConfigError or BadData when they do not allow a start."""
        await self.reload()

    async def reload(self) -> None:
        """
        Load the files now; the CA service calls this after a revocation.

        Raises:
            ConfigError: A file cannot be loaded. The old state stays, except for revocations: they count at once if the CRL
                itself can be read and is not older, even if the other files are faulty.
        """
        async with self._loading:
            stamps = await asyncio.to_thread(self._stamps)
            try:
                self._loaded_digest = await asyncio.to_thread(self._digest)
                self._trust = await asyncio.to_thread(load, self.files, self._trust.crls if self._trust is not None else ())
            except PuppetError:
                # A revocation must count even if, say, the new certificate beside it cannot be loaded.
                if self._trust is not None:
                    crls = await asyncio.to_thread(_crls, self.files, self._trust.authorities, self._trust.crls)
                    self._trust = replace(self._trust, revocations=Revocations.of(crls), crls=crls)
                raise
            self._loaded_stamps = stamps
        await self._check_dates()

    async def watch(self) -> None:
        """Run until cancelled: reload when files change, log an error while the CRL has ended."""
        while True:
            await asyncio.sleep(self.interval)
            try:
                if (stamps := await asyncio.to_thread(self._stamps)) == self._loaded_stamps:
                    await self._check_dates()
                elif await asyncio.to_thread(self._digest) == self._loaded_digest:
                    self._loaded_stamps = stamps  # a refresh that changed nothing
                else:
                    await self.reload()
                    log.info("Reloaded the certificates and CRLs")
            except (PuppetError, OSError, ssl.SSLError, ValueError) as err:
                self._loaded_stamps = await asyncio.to_thread(self._stamps)  # one error for each change
                log.error("Could not reload the certificates or CRLs, the old ones stay in force: %s", err)

    def _digest(self) -> bytes:
        """Return a digest of all files; of one that cannot be read, of the reason."""
        digest = hashlib.sha256()
        for path in self.files.all:
            try:
                digest.update(hashlib.sha256(path.read_bytes()).digest())
            except OSError as err:
                digest.update(f"error {err.errno}".encode())
        return digest.digest()

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
            self._last_complaint = None
            return
        # The check runs every half second.
        if self._last_complaint is not None and (now - self._last_complaint).total_seconds() < 60:
            return
        self._last_complaint = now
        log.error("The CRL in %s ended on %s: every agent's certificate is refused until there is a new one", self.files.crl, end)
        if self.on_expired is not None:
            await self.on_expired()
