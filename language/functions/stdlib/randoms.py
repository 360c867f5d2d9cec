"""Random values that stay the same for a node or a seed, and one that does not: shuffle."""

from __future__ import annotations

import hashlib
import random
import uuid
from typing import Final

from shared.errors import EvaluationError

from ...values.core import Value
from .. import digests
from ..api import Context, function, legacy_function, require_count
from ..strings import ruby_text
from .octets import encode_octets

_ALPHANUMERIC: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LOWER_FIRST: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_LENGTH: Final = 1_000_000  # characters


def _md5(text: str) -> int:
    return int(hashlib.md5(encode_octets(text), usedforsecurity=False).hexdigest(), 16)


def _check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise EvaluationError(f"A random string of {length} characters is too long; {MAX_LENGTH} are allowed")


@function("stdlib::fqdn_rand_string", "Integer[1] length", "Optional[String] charset?", "Any seed*")
def fqdn_rand_string(context: Context, length: int, charset: str | None = None, *seed: Value) -> str:
    """Return a string of random characters, always the same for a node and a seed."""
    _check_length(length)
    chars = charset or _ALPHANUMERIC
    lead = "".join(f"{ruby_text(part)}:" for part in seed)
    return "".join([chars[digests.number_of_node(context, len(chars), f"{lead}{number}")] for number in range(1, length + 1)])


def _offset(context: Context, size: int, seeds: tuple[Value, ...]) -> int:
    networking = context.fact("networking")
    fqdn = ruby_text(networking.get("fqdn", "")) if isinstance(networking, dict) else ""
    return digests.seeded_number(_md5(f"{fqdn}:{':'.join(ruby_text(seed) for seed in seeds)}"), size)


@function("stdlib::fqdn_rotate", "String input", "Variant[Integer,String] seeds*", returns="String")
def fqdn_rotate(context: Context, text: str, *seeds: Value) -> str:
    """Return a string or array, rotated by a number that is always the same for a node and a seed."""
    if len(text) <= 1:
        return text
    offset = _offset(context, len(text), seeds)
    return text[offset:] + text[:offset]


@fqdn_rotate.also("Array input", "Variant[Integer,String] seeds*", returns="Array")
def fqdn_rotate_array(context: Context, items: list[Value], *seeds: Value) -> list[Value]:
    if len(items) <= 1:
        return items
    offset = _offset(context, len(items), seeds)
    return items[offset:] + items[:offset]


@legacy_function("fqdn_uuid", -1)
def fqdn_uuid(context: Context, *arguments: Value) -> str:
    """Return the UUID (version 5) of a name in the name space of DNS."""
    if not arguments:
        raise EvaluationError("fqdn_uuid: No arguments given")
    if len(arguments) != 1:
        raise EvaluationError(f"fqdn_uuid: Too many arguments given ({len(arguments)})")
    if not isinstance(arguments[0], str):
        raise EvaluationError("fqdn_uuid: the name must be a String")
    digest = hashlib.sha1(uuid.NAMESPACE_DNS.bytes + encode_octets(arguments[0]), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


@function("stdlib::seeded_rand", "Integer[1] max", "String seed")
def seeded_rand(context: Context, max_: int, seed: str) -> int:
    """Return a number from 0 to below `max`, always the same for a seed."""
    return digests.seeded_number(_md5(seed), max_)


@function("stdlib::seeded_rand_string", "Integer[1] length", "String seed", "String[2] charset?", returns="String")
def seeded_rand_string(context: Context, length: int, seed: str, charset: str = _LOWER_FIRST) -> str:
    """Return a string of random characters, always the same for a seed."""
    _check_length(length)
    numbers = digests.seeded_numbers(int(hashlib.sha256(encode_octets(seed)).hexdigest(), 16), len(charset))
    return "".join([charset[next(numbers)] for _ in range(length)])


@legacy_function("shuffle", -1, pure=False)
def shuffle(context: Context, *arguments: Value) -> Value:
    """Return the characters or elements in random order, which differs in each compilation."""
    require_count("shuffle", arguments, 1)
    value = arguments[0]
    if not isinstance(value, str | list):
        raise EvaluationError("shuffle(): Requires either array or string to work with")
    shuffled = list(value)
    random.SystemRandom().shuffle(shuffled)
    return "".join(shuffled) if isinstance(value, str) else shuffled
