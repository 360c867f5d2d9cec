"""Encrypted texts: `ENC[PKCS7,…]`, as hiera-eyaml writes them. Source: language reference 18.8."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from shared.errors import BadData, Unsupported

_BLOCK = re.compile(r"ENC\[\s*(?:([A-Za-z0-9_]+)\s*,)?([A-Za-z0-9+/=\s]*)\]")
MAX_BLOCK = 4 * 1024 * 1024
"""Characters of one encrypted block."""


def decrypt_text(text: str, keys: Callable[[], DecryptionKeys]) -> str:
    """
    Return the text with its encrypted blocks decrypted; `keys` is called only when there is one.

    Raises:
        BadData: a block is damaged, or is for another key; the message contains nothing of it.
        Unsupported: a block is encrypted with another method.
    """

    def decrypt(match: re.Match[str]) -> str:
        method = (match[1] or "PKCS7").upper()
        if method != "PKCS7":
            raise Unsupported(f"Blocks encrypted with {method} cannot be read", hint="Encrypt them with PKCS7: `eyaml recrypt` does.")
        if len(match[2]) > MAX_BLOCK:
            raise BadData(f"The block is longer than {MAX_BLOCK} characters")
        try:
            content = base64.b64decode("".join(match[2].split()), validate=True)
        except binascii.Error as error:
            raise BadData("The block is not base64") from error
        return keys().decrypt(content)

    # The newline is the one of the command that encrypted the value, as with hiera-eyaml.
    return _BLOCK.sub(decrypt, text).rstrip("\n") if "ENC[" in text else text


class DecryptionKeys:
    """A private key and its certificate. Decrypted blocks are cached, because RSA is slow."""

    def __init__(self, private_key: bytes, certificate: bytes) -> None:
        # Imported here, because few sites have encrypted data and each compiling process would load it.
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(private_key, None)
        except (ValueError, TypeError) as error:
            raise BadData("The private key cannot be read", hint="It has to be PEM without a passphrase.") from error
        if not isinstance(key, RSAPrivateKey):
            raise BadData("The private key is not RSA")
        try:
            self._certificate = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise BadData("The public key is not a certificate in PEM") from error
        self._key = key
        # Without a cache, each compile would decrypt each value with RSA again.
        self.decrypt = lru_cache(maxsize=10_000)(self._decrypt)

    def _decrypt(self, content: bytes) -> str:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import pkcs7

        try:
            return pkcs7.pkcs7_decrypt_der(content, self._certificate, self._key, []).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadData("What was encrypted is not UTF-8") from error
        except UnsupportedAlgorithm as error:
            raise Unsupported(
                f"The block is encrypted in a way that cannot be read: {error}", hint="AES-256-CBC is what eyaml uses."
            ) from error
        except ValueError as error:
            raise BadData("The block is damaged, or is for another key") from error


def read_keys(options: Mapping[str, Any], read: Callable[[str], bytes | None], environment: Mapping[str, str]) -> DecryptionKeys:
    """Return the keys that the options of a level name; raise BadData when one is missing or cannot be read."""
    contents = []
    for name, default in (("private_key", "./keys/private_key.pkcs7.pem"), ("public_key", "./keys/public_key.pkcs7.pem")):
        variable = options.get(f"pkcs7_{name}_env_var")
        path = str(options.get(f"pkcs7_{name}") or default)
        content = environment.get(str(variable), "").encode() if variable else read(path)
        if not content:
            origin = f"the environment variable {variable}" if variable else path
            raise BadData(f"There is no key in {origin}", hint=f"Set the option pkcs7_{name} of the level to the key's absolute path.")
        contents.append(content)
    return DecryptionKeys(*contents)
