"""The CA's own files: its certificate, its key, its revocation list and the certificates that it has signed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509 import ocsp
from puppet_model_ocsp_answer import OcspAnswer

from shared.errors import BadRequest, Conflict
from shared.indirector import Request, Terminus
from shared.indirector.plugins import PluginContext
from shared.names import valid_certname

LIFETIME = timedelta(hours=1)


class Ca(Terminus[OcspAnswer]):
    """Answers where the CA is; whoever runs it must be able to read the CA's key."""

    def __init__(self, context: PluginContext) -> None:
        self.folder = Path(context.settings["cadir"])

    async def find(self, request: Request[OcspAnswer]) -> OcspAnswer | None:
        name = valid_certname(request.key)
        try:
            nonce = bytes.fromhex(request.option("nonce"))
        except ValueError as err:
            raise BadRequest("The nonce must be in hexadecimal digits") from err
        der = await asyncio.to_thread(self.answer, name, nonce, datetime.now(UTC))
        return None if der is None else OcspAnswer.of(name, der)

    def answer(self, name: str, nonce: bytes, now: datetime) -> bytes | None:
        """The DER of an answer; None for a name that the CA has no certificate of."""
        try:
            issuer = x509.load_pem_x509_certificate((self.folder / "ca_crt.pem").read_bytes())
            key = load_pem_private_key((self.folder / "ca_key.pem").read_bytes(), None)
            revoked = x509.load_pem_x509_crl((self.folder / "ca_crl.pem").read_bytes())
        except FileNotFoundError as err:
            raise Conflict(f"There is no CA here: {err.filename} is missing") from err
        try:
            certificate = x509.load_pem_x509_certificate((self.folder / "signed" / f"{name}.pem").read_bytes())
        except FileNotFoundError:
            return None
        entry = revoked.get_revoked_certificate_by_serial_number(certificate.serial_number)
        builder = ocsp.OCSPResponseBuilder().add_response(
            certificate,
            issuer,
            SHA256(),
            ocsp.OCSPCertStatus.GOOD if entry is None else ocsp.OCSPCertStatus.REVOKED,
            now,
            now + LIFETIME,
            None if entry is None else entry.revocation_date_utc,
            None,
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, issuer)
        if nonce:
            builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
        return builder.sign(key, SHA256()).public_bytes(Encoding.DER)
