"""The waves of a rollout: which nodes belong to each, and how a command line or a rollout.yaml names them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import BadData

DEFAULT_WAVES: Final = "1%; 10%; 50%; 100%"
MAX_WAVES: Final = 50

_NAMED = re.compile(r"([A-Za-z][\w-]{0,40})\s*:(?!:)\s*(.*)", re.ASCII | re.DOTALL)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%", re.ASCII)
_PART = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^;"'])+""", re.DOTALL)
_HINT: Final = "For example: --waves \"canary: nodes[certname] { certname ~ '^test' }; 1%; 10%; 100%\"."


@dataclass(frozen=True, slots=True)
class Wave:
    """
    One wave: a share of all nodes, or the nodes that a query finds.

    Attributes:
        percent: The share of all nodes up to this wave; None: the wave is a query's.
        query: The query in PQL; '' for a share.
        members: The certnames that the query found when the rollout began.
    """

    name: str
    percent: float | None = None
    query: str = ""
    members: frozenset[str] = frozenset()


def place_of(certname: str) -> float:
    """Return the place of a node between 0 and 100, always the same for a name: a wave of 10 % has the nodes below 10."""
    number = int.from_bytes(hashlib.blake2b(certname.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return number / 2**64 * 100


def wave_of(waves: Sequence[Wave], certname: str) -> int:
    """Return the number of the first wave that a node belongs to; that of the last one when there is no other."""
    for number, wave in enumerate(waves):
        if certname in wave.members:
            return number
    place = place_of(certname)
    numbers = (number for number, wave in enumerate(waves) if wave.percent is not None and place < wave.percent)
    return next(numbers, len(waves) - 1)


def parse_waves(text: str) -> tuple[Wave, ...]:
    """Return the waves of an option such as `canary: nodes[certname] { … }; 10%; 100%`; raise BadData."""
    parts = _PART.findall(text)
    if _PART.sub("", text).strip(";"):
        raise BadData("A quote in the waves is not closed", hint=_HINT)
    return _checked([_parsed(part.strip()) for part in parts if part.strip()])


def waves_of(data: Any) -> tuple[Wave, ...]:
    """Return the waves of a rollout.yaml: a list of texts as in the option, or of maps from a name to one; raise BadData."""
    if not isinstance(data, list):
        raise BadData("waves is a list", hint="Write a line for each: - 10%")
    return _checked([wave for entry in data for wave in _listed(entry)])


def _listed(entry: Any) -> Iterator[Wave]:
    match entry:
        case str():
            yield _parsed(entry.strip())
        case Mapping() if len(entry) == 1 and all(isinstance(each, str) for pair in entry.items() for each in pair):
            yield from (_parsed(f"{name}: {text.strip()}") for name, text in entry.items())
        case _:
            raise BadData("A wave is a text, such as 10%, or a name with one", hint="Write: - canary: nodes[certname] { … }")


def _parsed(text: str) -> Wave:
    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2].strip()) if named else ("", text)
    if match := _PERCENT.fullmatch(rest):
        return Wave(name or f"{match[1]}%", percent=float(match[1]))
    if (not rest.startswith("nodes") and not rest.startswith("inventory")) or not rest.endswith("}"):
        raise BadData(f"'{rest[:80]}' is neither a share of the nodes, such as 10%, nor a query for nodes", hint=_HINT)
    return Wave(name or "query", query=rest)


def _checked(waves: Sequence[Wave]) -> tuple[Wave, ...]:
    shares = [wave.percent for wave in waves if wave.percent is not None]
    if not shares or shares != sorted(set(shares)) or shares[0] <= 0 or shares[-1] != 100 or waves[-1].percent is None:
        raise BadData("The shares of waves grow, and the last wave is 100%", hint=_HINT)
    if len(waves) > MAX_WAVES:
        raise BadData(f"A rollout has at most {MAX_WAVES} waves")
    return tuple(waves)
