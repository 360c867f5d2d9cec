"""The master's answer, checked with the CA's certificate that this host has: nobody between here and the CA can make one up."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import ocsp
from puppet_model_ocsp_answer import OcspAnswer

from shared.errors import PeerNotTrusted
from shared.indirector import Request
from shared.indirector.plugins import PluginContext
from shared.indirector.rest import Rest


class Verified(Rest[OcspAnswer]):
    """Asks with a number that is used once, so that an old answer is noticed."""

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context.indirection, context.transport)
        self.authorities = Path(context.settings["localcacert"])

    async def find(self, request: Request[OcspAnswer]) -> OcspAnswer | None:
        nonce = secrets.token_bytes(16)
        answer = await super().find(replace(request, options={**request.options, "nonce": nonce.hex()}))
        if answer is not None:
            authorities = x509.load_pem_x509_certificates(await asyncio.to_thread(self.authorities.read_bytes))
            verify(answer.der, authorities, nonce)
        return answer


def verify(der: bytes, authorities: list[x509.Certificate], nonce: bytes) -> None:
    """Raise PeerNotTrusted unless one of the authorities has signed the answer to this question."""
    try:
        response = ocsp.load_der_ocsp_response(der)
        if response.extensions.get_extension_for_class(x509.OCSPNonce).value.nonce != nonce:
            raise PeerNotTrusted("The answer belongs to another question")
        for authority in authorities:
            key = authority.public_key()
            if x509.SubjectKeyIdentifier.from_public_key(key).digest != response.responder_key_hash:
                continue
            if isinstance(key, RSAPublicKey):
                key.verify(response.signature, response.tbs_response_bytes, PKCS1v15(), response.signature_hash_algorithm)
                return
            if isinstance(key, EllipticCurvePublicKey):
                key.verify(response.signature, response.tbs_response_bytes, ECDSA(response.signature_hash_algorithm))
                return
    except (ValueError, x509.ExtensionNotFound, InvalidSignature) as err:
        raise PeerNotTrusted("The answer is not signed by the CA") from err
    raise PeerNotTrusted("The answer is signed by another authority")
