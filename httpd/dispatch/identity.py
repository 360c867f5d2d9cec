"""The identity of a client: the verified certificate of its connection, or the one that a configured proxy passes on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import certificates, verify
from certs.files import bundles
from certs.oids import OidNames
from shared.client import Client
from shared.errors import BadData, BadName, Denied, PeerNotTrusted
from shared.names import quoted_for_log, valid_certname

from ..connections.connection import HttpRequest
from ..options import ServerOptions
from ..peers import Peer, ProxyRules
from ..tls.trust import Revocations, ServerTls, ServerTrust

log = logging.getLogger("puppet.http")

_IDENTITY_HEADER = re.compile(r"(x-)?(ssl-)?client-(s-)?(dn|verify|cert)", re.ASCII)
_CN_ONLY = re.compile(r"/?CN=([^/,+\\=]+)", re.ASCII)
MAX_HEADER_CERTIFICATE = 16 * 1024


class ClientIdentity:
    """
    Determines the client of a request over TLS.

    Args:
        tls: The trust that certificates of clients are checked against.
    """

    def __init__(self, tls: ServerTls, options: ServerOptions) -> None:
        self._tls = tls
        self._options = options
        self._names = options.oid_names or OidNames()

    def client_of(self, request: HttpRequest) -> Client:
        """Return the client, checked against the revocations and the clock of this moment; raise Denied."""
        connection, address, options = request.connection, request.client.address, self._options
        if connection.peer is None:
            # Parsed once for each connection; only validity is checked for each request.
            connection.peer = peer_of(_certificate_of(connection.transport), address, self._names)
        # A connection may stay open for hours, in which its certificate can be revoked or expire.
        client = still_valid(connection.peer, self._tls.revocations, options.now())
        # Any spelling: proxies and frameworks disagree on the case and on `_` for `-`.
        claims = identity_headers(request.headers)
        if not claims:
            return client
        if not options.proxy.trusts(address):
            log.warning("Ignored %s of %s(%s): it is not a configured proxy", quoted_for_log(claims[0]), client.name, address)
            return client
        headers = list(request.headers.items())
        peer = peer_behind_proxy(headers, options.proxy, self._tls.trust, address, self._names, options.now())
        return still_valid(peer, self._tls.revocations, options.now())


def _certificate_of(transport: object) -> bytes | None:
    """Return the DER of the peer's verified certificate; None without TLS or certificate."""
    get = getattr(transport, "get_extra_info", None)
    tls = get("ssl_object") if get is not None else None
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return certificate


def peer_of(der: bytes | None, address: str, names: OidNames) -> Peer:
    """Return the peer with a certificate (DER, verified by TLS), or without one."""
    anonymous = Client(name=address, address=address, authenticated=False)
    if der is None:
        return Peer(anonymous)
    try:
        certificate = x509.load_der_x509_certificate(der)
        name = valid_certname(certificates.name_of(certificate))
        if certificates.is_authority(certificate):
            raise BadName("A CA's own certificate names no node")
        client = Client(
            name=name,
            address=address,
            authenticated=True,
            extensions=certificates.trusted_extensions(certificate, names),
            alt_names=certificates.alternative_names(certificate),
            certificate=der,
        )
    except (ValueError, x509.DuplicateExtension, BadName, BadData) as err:
        return Peer(anonymous, problem=str(err))
    return Peer(client, certificate)


def still_valid(peer: Peer, revocations: Revocations, now: datetime) -> Client:
    """
    Return the client of `peer` if its certificate is valid now; called for each request, since a connection may outlive a revocation.

    Raises:
        Denied: The certificate is revoked, has expired since the handshake, or has no valid name.
    """
    if peer.problem:
        raise Denied(f"The client certificate cannot be used: {peer.problem}")
    checked = peer.checked_parts
    if checked is not None:
        if revocations.has_revoked(checked.issuer, checked.serial_number):
            raise Denied(f"The certificate of {peer.client.name} is revoked")
        if not checked.begin <= now <= checked.end:
            raise Denied(f"The certificate of {peer.client.name} is not valid at this time")
    return peer.client


def identity_headers(headers: Iterable[str]) -> list[str]:
    """Return the header names that claim an identity, in whatever spelling."""
    return [name for name in headers if _IDENTITY_HEADER.fullmatch(name.replace("_", "-").lower())]


def peer_behind_proxy(
    headers: Sequence[tuple[str, str]], rules: ProxyRules, trust: ServerTrust, address: str, names: OidNames, now: datetime
) -> Peer:
    """
    Return the peer that a trusted proxy speaks for; it is anonymous when the proxy says that no certificate was verified.

    The certificate itself decides, verified again against our CA and CRLs; the DN in its header must not contradict it.

    Raises:
        Denied: A header appears twice, the certificate is missing or does not verify, or the DN is not its subject.
    """
    values = {}
    for name in (rules.dn_header, rules.verify_header, rules.certificate_header):
        matching = [value for key, value in headers if key.replace("_", "-").lower() == name]
        if len(matching) > 1:
            raise Denied(f"The header {name} appears more than once")
        values[name] = matching[0] if matching else ""
    if values[rules.verify_header] != "SUCCESS":
        return peer_of(None, address, names)
    text = unquote(values[rules.certificate_header])
    if not text or len(text) > MAX_HEADER_CERTIFICATE:
        raise Denied(f"The proxy passed on no certificate in {rules.certificate_header}")
    try:
        certificate = bundles.certificate(_restore_line_ends(text).encode("ascii", "replace"))
        verify.verify(certificate, verify.TrustStore(trust.authorities, trust.crls), now=now, purpose="client")
    except (BadData, PeerNotTrusted) as err:
        raise Denied(f"The certificate that the proxy passed on is not trusted: {err}") from err
    peer = peer_of(certificate.public_bytes(Encoding.DER), address, names)
    dn = values[rules.dn_header]
    if dn:
        match = _CN_ONLY.fullmatch(dn.strip())
        if match is None or match[1] != peer.client.name:
            raise Denied(f"The name {quoted_for_log(dn)} does not agree with the certificate of {peer.client.name}")
    return peer


def _restore_line_ends(text: str) -> str:
    """Return PEM with its line ends, which proxies may have made into spaces or tabs."""
    body = re.sub(r"[\t ]+", "\n", text.replace("-----BEGIN CERTIFICATE-----", "").replace("-----END CERTIFICATE-----", "").strip())
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
