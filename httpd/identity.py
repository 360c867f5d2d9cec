"""The identity of a client: the verified certificate of its connection, or the one that a configured proxy passes on."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import bundles, certificates, verify
from certs.oids import OidNames
from shared.errors import BadData, BadName, ConfigError, Denied, PeerNotTrusted
from shared.indirector.core import Client
from shared.names import quoted_for_log, valid_certname

from .tls import Revocations, ServerTrust

log = logging.getLogger("puppet.http")

_IDENTITY_HEADER = re.compile(r"(x-)?(ssl-)?client-(s-)?(dn|verify|cert)", re.ASCII)
_CN_ONLY = re.compile(r"/?CN=([^/,+\\=]+)", re.ASCII)
MAX_HEADER_CERTIFICATE = 16 * 1024


@dataclass(frozen=True, slots=True)
class Peer:
    """A connection's other end. `problem` says why its certificate, though verified, names nobody."""

    client: Client
    certificate: x509.Certificate | None = None
    problem: str = ""

    @property
    def authenticated(self) -> bool:
        return self.client.authenticated


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """The proxies whose identity headers count; without `networks` there are none. Header names are lower case with dashes."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    dn_header: str = "x-client-dn"
    verify_header: str = "x-client-verify"
    certificate_header: str = "x-client-cert"

    @classmethod
    def of(cls, *, switched_on: bool, addresses: Iterable[str], dn: str, verify: str) -> ProxyRules:
        """Return the rules of the settings, which have CGI's names of headers (`HTTP_X_CLIENT_DN`); ConfigError for a bad address."""
        networks = []
        for address in addresses if switched_on else ():
            try:
                networks.append(ipaddress.ip_network(address, strict=False))
            except ValueError as err:
                raise ConfigError(f"proxy_addresses: {quoted_for_log(address)} is not an address or network") from err
        return cls(tuple(networks), dn_header=_header(dn), verify_header=_header(verify))

    def trusts(self, address: str) -> bool:
        """Return whether the identity headers of the peer at `address` count."""
        if not self.networks or not address:
            return False
        peer = ipaddress.ip_address(address)
        return any(peer in network for network in self.networks)


def _header(variable: str) -> str:
    return variable.removeprefix("HTTP_").replace("_", "-").lower()


def address_of(peername: object) -> str:
    """Return the address in a socket's name of its peer, as IPv4 also when the peer connected over IPv6; '' when there is none."""
    if not isinstance(peername, Sequence) or not peername:
        return ""
    text = str(peername[0]).split("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


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
        Denied: The certificate is revoked, has ended since the handshake, or names nobody.
    """
    if peer.problem:
        raise Denied(f"The client certificate cannot be used: {peer.problem}")
    certificate = peer.certificate
    if certificate is not None:
        if revocations.revoked(certificate):
            raise Denied(f"The certificate of {peer.client.name} is revoked")
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
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
        Denied: A header stands twice, the certificate is missing or does not verify, or the DN is not its subject.
    """
    values = {}
    for name in (rules.dn_header, rules.verify_header, rules.certificate_header):
        matching = [value for key, value in headers if key.replace("_", "-").lower() == name]
        if len(matching) > 1:
            raise Denied(f"The header {name} stands more than once")
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
