"""md5, sha1, sha256, digest, fqdn_rand: hashes, and random numbers that stay the same for a node."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator

from shared.errors import EvaluationError

from ..types.kinds.references import ClassType, ResourceEntryType, reference_text
from ..types.notation.operands import flatten_arrays
from ..values.core import Value
from ..values.digits import parse_integer
from ..values.labels import ruby_class
from ..values.text import inspect, to_s
from .api import Context, legacy_function


def _hex(algorithm: str, text: Value) -> str:
    if not isinstance(text, str):
        raise EvaluationError(f"no implicit conversion of {ruby_class(text)} into String")
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


@legacy_function("md5", 1)
def md5(context: Context, text: Value) -> str:
    """Return the MD5 of a string, in hex."""
    return _hex("md5", text)


@legacy_function("sha1", 1)
def sha1(context: Context, text: Value) -> str:
    """Return the SHA-1 of a string, in hex."""
    return _hex("sha1", text)


@legacy_function("sha256", 1)
def sha256(context: Context, text: Value) -> str:
    """Return the SHA-256 of a string, in hex."""
    return _hex("sha256", text)


@legacy_function("digest", 1)
def digest(context: Context, text: Value) -> str:
    """Return the hash of a string by the setting `digest_algorithm`, in hex."""
    return _hex(str(context.setting("digest_algorithm") or "sha256"), text)


def _generator(seed: int) -> random.Random:
    """
    Return a Mersenne twister, seeded as Ruby does: a highest word of 1 is dropped, one word takes the older initialisation.
    """
    words = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 1), 32)]
    if len(words) > 1 and words[-1] == 1:
        words.pop()
    if words[-1] and len(words) > 1:
        return random.Random(sum(word << 32 * index for index, word in enumerate(words)))  # noqa: S311  (has to be repeatable)
    generator = random.Random()  # noqa: S311
    generator.setstate((3, (*(_state_of_word(words[0]) if len(words) == 1 else _state_of_words(words)), 624), None))
    return generator


def _state_of_word(seed: int) -> list[int]:
    state = [seed]
    for index in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + index) & 0xFFFFFFFF)
    return state


def _state_of_words(key: list[int]) -> list[int]:
    """Return the state that the authors' `init_by_array` computes, for keys that Python would shorten: those that end in zeroes."""
    state = _state_of_word(19650218)
    index = 1
    for step in range(max(624, len(key))):
        word = state[index] ^ ((state[index - 1] ^ (state[index - 1] >> 30)) * 1664525)
        state[index] = (word + key[step % len(key)] + step % len(key)) & 0xFFFFFFFF
        index = _next_index(state, index)
    for _ in range(623):
        state[index] = ((state[index] ^ ((state[index - 1] ^ (state[index - 1] >> 30)) * 1566083941)) - index) & 0xFFFFFFFF
        index = _next_index(state, index)
    state[0] = 0x80000000
    return state


def _next_index(state: list[int], index: int) -> int:
    if index + 1 < 624:
        return index + 1
    state[0] = state[623]
    return 1


def seeded_number(seed: int, limit: int) -> int:
    """Return the number from 0 to below `limit` that Ruby's `Random.new(seed).rand(limit)` returns."""
    return next(seeded_numbers(seed, limit))


def seeded_numbers(seed: int, limit: int) -> Iterator[int]:
    """
    Return numbers from 0 to below `limit`, without end, as one generator of Ruby gives them one after the other.

    Both languages have the same generator; Ruby takes as many 32-bit words as the limit needs, masked, until one fits.
    """
    if limit < 1:
        raise EvaluationError(f"invalid argument - {limit}")
    source = _generator(seed)
    highest = limit - 1
    mask = (1 << highest.bit_length()) - 1
    while True:
        number = 0
        for shift in reversed(range(0, mask.bit_length(), 32)):
            number |= source.getrandbits(32) << shift
            number &= mask
            if number > highest:
                break
        else:
            yield number


def _leading_integer(value: Value) -> int:
    if isinstance(value, float):
        return int(value)
    match = re.match(r"\s*[+-]?\d+", value) if isinstance(value, str) else None
    return value if value.__class__ is int else parse_integer(match[0].strip()) if match else 0


def _seed_text(value: Value) -> str:
    """Return a seed as the text that Ruby joins with others: of collections `inspect`, of references the form in catalogs."""
    if isinstance(value, ResourceEntryType | ClassType):
        return reference_text(value) or to_s(value)
    return inspect(value) if isinstance(value, dict) else to_s(value)


@legacy_function("fqdn_rand", -2)
def fqdn_rand(context: Context, max_: Value, seed: Value = "", downcase: Value = False, *rest: Value) -> int:
    """Return a number from 0 to below `max`, always the same for a node and seed."""
    return number_of_node(context, _leading_integer(max_), seed, downcase)


def number_of_node(context: Context, limit: int, seed: Value, downcase: Value = False) -> int:
    """Return a number from 0 to below `limit`, as `fqdn_rand` does."""
    networking = context.fact("networking")
    text = to_s(networking.get("fqdn")) if isinstance(networking, dict) else ""
    if downcase not in (False, None, ""):
        text = text.lower()
    seed_text = ":".join([text, str(limit), *(_seed_text(part) for part in flatten_arrays([seed]) or [""])])
    return seeded_number(int(hashlib.md5(seed_text.encode(), usedforsecurity=False).hexdigest(), 16), limit)
