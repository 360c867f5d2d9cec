"""
base64, stdlib::sha256 and crc32, and hashes of passwords for /etc/shadow and macOS.

Source of crypt(3)'s hashes: glibc; "Unix crypt using SHA-256 and SHA-512", U. Drepper.
"""

from __future__ import annotations

import base64 as codec
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Sequence
from typing import Final

from shared.errors import EvaluationError, Unsupported

from ...values.core import Binary, Sensitive, Value
from ...values.labels import ruby_class
from ..api import Context, function, legacy_function
from ..strings import ruby_text
from .octets import encode_octets
from .sensitivity import unwrap_deeply

_LINE: Final = 45  # bytes: 60 characters


@legacy_function("base64", -1)
def base64(context: Context, *arguments: Value) -> str:
    """Return a string encoded in or decoded from base64: default (lines of 60 characters), strict (one line) or urlsafe."""
    if len(arguments) < 2:
        raise EvaluationError(f"base64(): Wrong number of arguments ({len(arguments)}; must be >= 2)")
    action, text = arguments[:2]
    if action not in ("encode", "decode"):
        raise EvaluationError("base64(): the first argument must be one of 'encode' or 'decode'")
    if not isinstance(text, str):
        raise EvaluationError("base64(): the second argument must be a string to base64")
    method = arguments[2] if len(arguments) > 2 else "default"
    if not isinstance(method, str) or method not in ("default", "strict", "urlsafe"):
        raise EvaluationError("base64(): the third argument must be one of 'default', 'strict', or 'urlsafe'")
    return _encode_base64(text, method) if action == "encode" else _decode_base64(text, method)


def _encode_base64(text: str, method: str) -> str:
    data = encode_octets(text)
    if method == "default":
        lines = [codec.b64encode(data[offset : offset + _LINE]).decode() for offset in range(0, len(data), _LINE)]
        return "".join(line + "\n" for line in lines)
    return (codec.b64encode(data) if method == "strict" else codec.urlsafe_b64encode(data)).decode()


def _decode_base64(text: str, method: str) -> str:
    try:
        if method == "default":
            digits = re.sub(r"[^A-Za-z0-9+/]", "", text.split("=", 1)[0])
            data = codec.b64decode(digits[: len(digits) - (len(digits) % 4 == 1)] + "=" * (-len(digits) % 4))
        elif method == "urlsafe":
            data = codec.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        else:
            data = codec.b64decode(text, validate=True)
    except ValueError as error:
        raise EvaluationError("invalid base64") from error
    return data.decode("utf-8", "surrogateescape")


# --- sums ---------------------------------------------------------------------------------------------------------

_DATA: Final = "Variant[ScalarData, Sensitive[ScalarData], Binary, Sensitive[Binary]] my_data"


def _text_bytes(value: Value) -> bytes:
    unwrapped_value = value.unwrap() if isinstance(value, Sensitive) else value
    return encode_octets(str(unwrapped_value) if isinstance(unwrapped_value, Binary) else ruby_text(unwrapped_value))


@function("stdlib::sha256", _DATA, returns="String")
def sha256(context: Context, my_data: Value) -> str:
    """Return the SHA-256 of a value's text, in hex."""
    return hashlib.sha256(_text_bytes(my_data)).hexdigest()


@function("stdlib::crc32", _DATA, returns="String")
def crc32(context: Context, my_data: Value) -> str:
    """Return the CRC-32 of a value's text, in hex."""
    return f"{zlib.crc32(_text_bytes(my_data)):x}"


# --- passwords ----------------------------------------------------------------------------------------------------

_HASHES: Final = {"md5": "1", "sha-256": "5", "sha-512": "6", "bcrypt": "2b", "bcrypt-a": "2a", "bcrypt-x": "2x", "bcrypt-y": "2y"}


@legacy_function("pw_hash", 3)
def pw_hash(context: Context, password: Value, hash_type: Value, salt: Value) -> str | None:
    """Return a password as crypt(3) hashes it, for /etc/shadow; undef for an empty one."""
    password, hash_type, salt = (unwrap_deeply(argument)[0] for argument in (password, hash_type, salt))
    if not isinstance(password, str) and password is not None:
        raise EvaluationError("pw_hash(): first argument must be a string")
    if not isinstance(hash_type, str):
        raise EvaluationError("pw_hash(): second argument must be a string")
    prefix = _HASHES.get(hash_type.lower())
    if prefix is None:
        raise EvaluationError(f"pw_hash(): {hash_type} is not a valid hash type")
    if not isinstance(salt, str):
        raise EvaluationError("pw_hash(): third argument must be a string")
    if not salt:
        raise EvaluationError("pw_hash(): third argument must not be empty")
    _check_salt(prefix, salt)
    if not password:
        return None
    secret = encode_octets(password)
    if b"\0" in secret:
        raise EvaluationError("string contains null byte")
    if prefix == "1":
        return md5_crypt(secret, salt)
    if prefix in ("5", "6"):
        return sha_crypt(secret, salt, prefix)
    raise Unsupported(f"pw_hash() cannot make {hash_type} hashes here", hint="Use 'SHA-512', or store the finished hash in the data.")


def _check_salt(prefix: str, salt: str) -> None:
    if prefix.startswith("2"):
        if re.search(r"^[0-9]{2}\$[./A-Za-z0-9]{22}", salt, re.MULTILINE) is None:
            raise EvaluationError("pw_hash(): characters in salt must match (?-mix:^[0-9]{2}\\$[.\\/A-Za-z0-9]{22})")
    elif re.fullmatch(r"[a-zA-Z0-9./]+", salt) is None:
        raise EvaluationError("pw_hash(): characters in salt must be in the set [a-zA-Z0-9./]")


@legacy_function("str2saltedpbkdf2", -1)
def str2saltedpbkdf2(context: Context, *arguments: Value) -> dict[str, Value]:
    """Return the hash, salt and iterations of PBKDF2 that the type user takes on macOS."""
    if len(arguments) != 3:
        raise EvaluationError(f"str2saltedpbkdf2(): wrong number of arguments ({len(arguments)} for 3)")
    password, salt, iterations = (argument.unwrap() if isinstance(argument, Sensitive) else argument for argument in arguments)
    if not isinstance(password, str):
        raise EvaluationError("str2saltedpbkdf2(): first argument must be a string")
    if not isinstance(salt, str):
        raise EvaluationError("str2saltedpbkdf2(): second argument must be a string")
    salt_bytes = encode_octets(salt)
    if len(salt_bytes) < 8:
        raise EvaluationError("str2saltedpbkdf2(): second argument must be at least 8 bytes long")
    if iterations.__class__ is not int:
        raise EvaluationError("str2saltedpbkdf2(): third argument must be an integer")
    if not 40_000 < iterations < 70_000:
        raise EvaluationError("str2saltedpbkdf2(): third argument must be between 40,000 and 70,000")
    derived_key = hashlib.pbkdf2_hmac("sha512", encode_octets(password), salt_bytes, iterations, 128)
    return {"password_hex": derived_key.hex(), "salt_hex": salt_bytes.hex(), "iterations": iterations}


@legacy_function("str2saltedsha512", -1, pure=False)
def str2saltedsha512(context: Context, *arguments: Value) -> str:
    """Return a password with a random salt as macOS 10.7 stores it; it differs in each compilation."""
    if len(arguments) != 1:
        raise EvaluationError(f"str2saltedsha512(): Wrong number of arguments passed ({len(arguments)} but we require 1)")
    if not isinstance(arguments[0], str):
        raise EvaluationError(f"str2saltedsha512(): Requires a String argument, you passed: {ruby_class(arguments[0])}")
    salt = struct.pack("<L", int.from_bytes(os.urandom(4), "little") & 0x7FFFFFFF)
    return (salt + hashlib.sha512(salt + encode_octets(arguments[0])).digest()).hex()


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
