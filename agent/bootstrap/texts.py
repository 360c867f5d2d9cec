"""The agent's messages about its certificate, above all those that ask a person to act."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509

from certs import fingerprints
from certs.files.ssldir import SslDir
from certs.verify import NotVerified
from shared.errors import NotFound, PeerNotTrusted, PuppetError


class NoCertificate(PuppetError):
    """The error that there is no certificate, and waiting for one is over; the agent exits with 1."""


class CertificateMismatch(PeerNotTrusted):
    """The error that a certificate belongs to another key."""


def mismatch(certificate: x509.Certificate, layout: SslDir, server: str) -> CertificateMismatch:
    """Return the error for a certificate that does not belong to our key, with the commands that correct this."""
    name = layout.certname
    return CertificateMismatch(
        "The certificate retrieved from the master does not match the agent's private key.\n"
        f"Certificate fingerprint: {fingerprints.fingerprint(certificate)}\n"
        f"Most often this host lost its key, or another host has been given the name {name}.\n"
        "To start again with a certificate of its own:\n"
        f"  on the master:  puppet cert clean {name}        (Puppet 6 and later: puppetserver ca clean --certname {name})\n"
        f"  on this agent:  find {layout.root} -name {name}.pem -delete\n"
        f"and then run the agent again: puppet agent -t --server {server}"
    )


def key_lost(layout: SslDir) -> CertificateMismatch:
    """Return the error for a certificate on disk without its key."""
    name = layout.certname
    return CertificateMismatch(
        f"{layout.hostcert} is there, but its private key {layout.hostprivkey} is not",
        hint=f"Put the key back from a backup; or clean {name} on the CA, remove {layout.hostcert}, and run the agent again.",
    )


def unusable(problem: NotVerified, layout: SslDir, now: datetime) -> PeerNotTrusted:
    """
    Return the error for our own certificate when it has expired, was revoked, or was issued by another CA.

    Args:
        now: The time by this host's clock, which may be wrong.
    """
    return PeerNotTrusted(f"The certificate of this host cannot be used: {problem.message}", hint=_way_out(problem, layout, now))


def _way_out(problem: NotVerified, layout: SslDir, now: datetime) -> str:
    """Return the remedy for a certificate that cannot be used. When the clock may be wrong, the text does not suggest removing anything."""
    from certs.certificates import name_of

    name, clock = layout.certname, f"{now:%Y-%m-%d %H:%M} UTC"
    if problem.reason in ("not-yet-valid", "crl-not-yet-valid"):
        return f"This host's clock says {clock}. Correct it and run again; nothing has to be removed."
    if problem.reason in ("no-crl", "crl-expired", "crl-signature"):
        return (
            f"This host's clock says {clock}. If that is right, the revocation list is at fault and not the certificate:"
            f" remove {layout.hostcrl}, which the next run downloads again."
        )
    if problem.reason != "expired":
        return f"For a new one: 'puppet cert clean {name}' on the CA; remove {layout.hostcert} and {layout.hostprivkey}; run again."
    if name_of(problem.certificate) != name:
        return f"This host's clock says {clock}. If that is right, the CA's certificate itself has expired: the CA must be replaced."
    return (
        f"This host's clock says {clock}. If that is right: an expired certificate cannot renew itself."
        f" Run 'puppet cert clean {name}' on the CA, 'puppet ssl clean' here, and the agent again."
    )


def unsigned(name: str) -> str:
    """Return the message that the certificate request still has to be signed."""
    return f"Couldn't fetch certificate from CA server; you might still need to sign this agent's certificate ({name})."


def fingerprint_text(layout: SslDir, digest: str) -> str:
    """
    Return `(SHA256) AA:BB:…` of the certificate, else of the request; raise NotFound when there is neither.

    Source: command line reference 2.1.
    """
    certificate = layout.certificate()
    if certificate is not None:
        return fingerprints.labelled(certificate, digest)
    pem = layout.request()
    if pem is not None:
        return fingerprints.labelled(x509.load_pem_x509_csr(pem), digest)
    raise NotFound("Fingerprint asked but neither the certificate, nor the certificate request have been issued")
