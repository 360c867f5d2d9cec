"""crypt(3)'s hashes of passwords: MD5, SHA-256 and SHA-512. Source: glibc; "Unix crypt using SHA-256 and SHA-512", U. Drepper."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

_CHARS: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS: Final = 5000
_MD5_ORDER: Final = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))


def _encode_groups(groups: Sequence[Sequence[int]]) -> str:
    """Return each group of bytes, a big-endian number, as characters of six bits each, the lowest first."""
    chars: list[str] = []
    for group in groups:
        value = int.from_bytes(bytes(group), "big")
        for _ in range((len(group) * 8 + 5) // 6):
            chars.append(_CHARS[value & 63])
            value >>= 6
    return "".join(chars)


def _stretch(digest: bytes, size: int) -> bytes:
    return (digest * (size // len(digest) + 1))[:size]


def md5_crypt(password: bytes, salt: str) -> str:
    """Return `$1$salt$…`; only the first 8 characters of the salt are used."""
    salt = salt[:8]
    salt_bytes = salt.encode()

    def md5(data: bytes) -> bytes:
        return hashlib.md5(data, usedforsecurity=False).digest()

    data = password + b"$1$" + salt_bytes + _stretch(md5(password + salt_bytes + password), len(password))
    bits = len(password)
    while bits:
        data += b"\0" if bits & 1 else password[:1]
        bits >>= 1
    digest = md5(data)
    for number in range(1000):
        data = password if number & 1 else digest
        if number % 3:
            data += salt_bytes
        if number % 7:
            data += password
        digest = md5(data + (digest if number & 1 else password))
    groups = [[digest[index] for index in order] for order in _MD5_ORDER]
    return f"$1${salt}${_encode_groups([*groups, [digest[11]]])}"


def sha_crypt(password: bytes, salt: str, prefix: str) -> str:
    """Return `$5$salt$…` (SHA-256) or `$6$salt$…` (SHA-512), with 5000 rounds; only the first 16 characters of the salt are used."""
    salt = salt[:16]
    hash_function = hashlib.sha256 if prefix == "5" else hashlib.sha512
    salt_bytes = salt.encode()
    alternate = hash_function(password + salt_bytes + password).digest()
    data = password + salt_bytes + _stretch(alternate, len(password))
    bits = len(password)
    while bits:
        data += alternate if bits & 1 else password
        bits >>= 1
    digest = hash_function(data).digest()
    long_password = _stretch(hash_function(password * len(password)).digest(), len(password))
    long_salt = _stretch(hash_function(salt_bytes * (16 + digest[0])).digest(), len(salt_bytes))
    for number in range(_ROUNDS):
        data = long_password if number & 1 else digest
        if number % 3:
            data += long_salt
        if number % 7:
            data += long_password
        digest = hash_function(data + (digest if number & 1 else long_password)).digest()
    return f"${prefix}${salt}${_encode_groups(_groups(digest))}"


def _groups(digest: bytes) -> list[list[int]]:
    """Return the bytes in the order in which they are written: one of each third of the digest, the thirds rotated."""
    third = len(digest) // 3
    groups: list[list[int]] = []
    for index in range(third):
        parts = [digest[index + third * number] for number in range(3)]
        shift = (index * 2) % 3 if len(digest) == 32 else index % 3
        groups.append(parts[shift:] + parts[:shift])
    rest = list(digest[third * 3 :])
    return [*groups, rest[::-1]]
