"""crypt(3)'s hashes of passwords: MD5, SHA-256 and SHA-512. Source: glibc; "Unix crypt using SHA-256 and SHA-512", U. Drepper."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

__all__ = ["md5_crypt", "sha_crypt"]

_CHARS: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS: Final = 5000
_MD5_ORDER: Final = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))


def _text(groups: Sequence[Sequence[int]]) -> str:
    """Return each group of octets, the last one lowest, as characters of six bits, the lowest first."""
    out: list[str] = []
    for group in groups:
        value = int.from_bytes(bytes(group), "big")
        for _ in range((len(group) * 8 + 5) // 6):
            out.append(_CHARS[value & 63])
            value >>= 6
    return "".join(out)


def _stretched(digest: bytes, size: int) -> bytes:
    return (digest * (size // len(digest) + 1))[:size]


def md5_crypt(password: bytes, salt: str) -> str:
    """`$1$salt$…`; of the salt 8 characters count."""
    salt = salt[:8]
    pepper = salt.encode()

    def md5(data: bytes) -> bytes:
        return hashlib.md5(data, usedforsecurity=False).digest()

    data = password + b"$1$" + pepper + _stretched(md5(password + pepper + password), len(password))
    bits = len(password)
    while bits:
        data += b"\0" if bits & 1 else password[:1]
        bits >>= 1
    digest = md5(data)
    for number in range(1000):
        data = password if number & 1 else digest
        if number % 3:
            data += pepper
        if number % 7:
            data += password
        digest = md5(data + (digest if number & 1 else password))
    groups = [[digest[index] for index in order] for order in _MD5_ORDER]
    return f"$1${salt}${_text([*groups, [digest[11]]])}"


def sha_crypt(password: bytes, salt: str, mark: str) -> str:
    """`$5$salt$…` (SHA-256) or `$6$salt$…` (SHA-512), 5000 rounds; of the salt 16 characters count."""
    salt = salt[:16]
    make = hashlib.sha256 if mark == "5" else hashlib.sha512
    pepper = salt.encode()
    other = make(password + pepper + password).digest()
    data = password + pepper + _stretched(other, len(password))
    bits = len(password)
    while bits:
        data += other if bits & 1 else password
        bits >>= 1
    digest = make(data).digest()
    long_password = _stretched(make(password * len(password)).digest(), len(password))
    long_salt = _stretched(make(pepper * (16 + digest[0])).digest(), len(pepper))
    for number in range(_ROUNDS):
        data = long_password if number & 1 else digest
        if number % 3:
            data += long_salt
        if number % 7:
            data += long_password
        digest = make(data + (digest if number & 1 else long_password)).digest()
    return f"${mark}${salt}${_text(_groups(digest))}"


def _groups(digest: bytes) -> list[list[int]]:
    """Return the octets in the order in which they are written: thirds of the digest, taken in turn."""
    third = len(digest) // 3
    groups: list[list[int]] = []
    for index in range(third):
        parts = [digest[index + third * each] for each in range(3)]
        shift = (index * 2) % 3 if len(digest) == 32 else index % 3
        groups.append(parts[shift:] + parts[:shift])
    rest = list(digest[third * 3 :])
    return [*groups, rest[::-1]]
