"""Private keys: generating, reading and writing them as PEM; the strength of public keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from shared.errors import BadData, ConfigError
from shared.filesystem.files import write_atomic
from shared.names import quoted_for_log

KeyType = Literal["rsa", "ec"]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Generator = Callable[[], PrivateKey]

PRIVATE_MODE = 0o640  # the group is the service's own; nobody else, not for an instant
MIN_RSA_BITS = 2048
MIN_EC_BITS = 256
_CURVES: dict[str, type[ec.EllipticCurve]] = {
    "prime256v1": ec.SECP256R1,
    "secp256r1": ec.SECP256R1,
    "P-256": ec.SECP256R1,
    "secp384r1": ec.SECP384R1,
    "P-384": ec.SECP384R1,
    "secp521r1": ec.SECP521R1,
    "P-521": ec.SECP521R1,
}


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The kind of a new key: the settings key_type, keylength (bits) and named_curve."""

    type: KeyType = "rsa"
    bits: int = 4096
    curve: str = "prime256v1"

    def generate(self) -> PrivateKey:
        """Return a new key; raise ConfigError for an unsupported length or curve. RSA takes seconds: call it in a thread."""
        if self.type == "ec":
            if self.curve not in _CURVES:
                raise ConfigError(f"named_curve {quoted_for_log(self.curve)} is not supported", hint=f"Choose one of {', '.join(_CURVES)}.")
            return ec.generate_private_key(_CURVES[self.curve]())
        if not MIN_RSA_BITS <= self.bits <= 16384:
            raise ConfigError(f"keylength {self.bits} is not supported", hint=f"Choose {MIN_RSA_BITS} to 16384 bits; 4096 is usual.")
        return rsa.generate_private_key(65537, self.bits)


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of a key: `kind` is rsa, ec, ed25519 or another name; `bits` of modulus or curve; `exponent` of RSA."""

    kind: str
    bits: int
    exponent: int = 0

    @property
    def weakness(self) -> str:
        """Return the rule that the key breaks, or ''. The minimum is RSA 2048 with an odd exponent of at least 3, P-256, or Ed25519."""
        if self.kind == "rsa":
            if self.bits < MIN_RSA_BITS:
                return f"an RSA key of {self.bits} bits is shorter than {MIN_RSA_BITS}"
            if self.bits > 16384:
                return f"an RSA key of {self.bits} bits is longer than 16384"
            return "" if self.exponent >= 3 and self.exponent % 2 else f"an RSA key with the exponent {self.exponent} is not safe"
        if self.kind == "ec":
            return "" if self.bits >= MIN_EC_BITS else f"an EC key of {self.bits} bits is shorter than {MIN_EC_BITS}"
        return "" if self.kind == "ed25519" else f"keys of the kind {self.kind} are not supported"


def strength(key: PublicKeyTypes) -> Strength:
    """Return the strength of a public key."""
    if isinstance(key, rsa.RSAPublicKey):
        return Strength("rsa", key.key_size, key.public_numbers().e)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return Strength("ec", key.key_size)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return Strength("ed25519", 256)
    return Strength(type(key).__name__.removesuffix("PublicKey"), getattr(key, "key_size", 0))


def digest_for(key: PrivateKey) -> SHA256 | None:
    """Return the digest to sign with: SHA-256, or None for Ed25519, which has its own."""
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()


def public_der(key: PublicKeyTypes) -> bytes:
    """Return the SubjectPublicKeyInfo, by which keys are compared."""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def public_pem(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(key: PrivateKey, password: bytes | None = None) -> bytes:
    """Return PEM in the traditional form that Puppet writes; with a `password` encrypted (PKCS#8, AES)."""
    encryption: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
    traditional = not password and not isinstance(key, ed25519.Ed25519PrivateKey)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL if traditional else PrivateFormat.PKCS8, encryption)


def private_key(pem: bytes, password: bytes | None = None, *, what: str = "the text") -> PrivateKey:
    """
    Return the key in a PEM text, which may be encrypted (3DES as Puppet 3.8 writes it, or AES); `what` names the text in errors.

    Raises:
        BadData: not a key, of an unsupported kind, or the password is missing or wrong. The message never quotes the text.
    """
    try:
        # Its own check tests the factors for primality, which holds the interpreter for a fifth of a second.
        key = load_pem_private_key(pem, password, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        if password:  # the key is not encrypted
            return private_key(pem, None, what=what)
        raise BadData(
            f"The private key in {what} is encrypted and there is no password", hint="Puppet 3.8 stores it in ca/private/ca.pass."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        reason = "or the password is wrong" if password else "or it is damaged"
        raise BadData(f"There is no private key in {what}, {reason}") from None
    if not isinstance(key, PrivateKey):
        raise BadData(f"The private key in {what} is of a kind that is not supported ({type(key).__name__.strip('_')})")
    if isinstance(key, rsa.RSAPrivateKey) and not _numbers_fit(key):
        raise BadData(f"The private key in {what} is damaged: its signatures are not valid")
    return key


def _numbers_fit(key: rsa.RSAPrivateKey) -> bool:
    """Return whether the numbers of a key belong together: a signature by it verifies."""
    try:
        key.public_key().verify(key.sign(b"", padding.PKCS1v15(), SHA256()), b"", padding.PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


def load(path: Path, password: bytes | None = None) -> PrivateKey:
    """Return the private key in a file; raise BadData, which names the file, or FileNotFoundError."""
    return private_key(path.read_bytes(), password, what=str(path))


def save(path: Path, key: PrivateKey, *, password: bytes | None = None, owner: tuple[int, int] | None = None) -> None:
    """Write a key atomically. Others can never read it, not even while it is being written."""
    write_atomic(path, private_pem(key, password), mode=PRIVATE_MODE, owner=owner)


def belongs(key: PrivateKey, public: PublicKeyTypes) -> bool:
    """Return whether `public` is the public half of `key`."""
    return public_der(key.public_key()) == public_der(public)
