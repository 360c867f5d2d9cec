"""Whether two answers are equal, and to which class a difference belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.runner import differs

__all__ = ["Difference", "Wording", "Wordings", "compare"]

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]")
_PLACE = re.compile(r" \((?:file|line): [^()]*\)(?: on node \S+)?\Z")
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_PATH = re.compile(r"(?s)\A(.*?\])\[.*\](?= contains an? .* It will be converted to the String | contains the special value )")
_NAMES = re.compile(r"\b[A-Z]\w*(?:::[A-Z]\w*)*\b")


@dataclass(frozen=True)
class Difference:
    """
    How our answer differs.

    Attributes:
        kind: `refused`, `accepted`, `catalog`, `log`, `words`, `place` or `crash`.
        signature: equal for differences that probably have one cause.
        explanation: both answers, for a reader.
    """

    kind: str
    signature: str
    explanation: str


@dataclass(frozen=True)
class Wording:
    """
    A rule that lists a difference to an error of the reference, with the reason for it.

    Attributes:
        reference: has to match the reference's whole message.
        ours: has to match our whole message, groups of one name equal in both; where we compile there is none, and nothing is listed.
    """

    reason: str
    reference: re.Pattern[str]
    ours: re.Pattern[str]

    def covers(self, reference: str, ours: str | None) -> bool:
        """Whether it lists these errors; `ours` is None for a catalog."""
        one = self.reference.fullmatch(reference)
        if one is None or ours is None:
            return False
        other = self.ours.fullmatch(ours)
        if other is None:
            return False
        shared = one.groupdict().keys() & other.groupdict().keys()
        return all(one[name] == other[name] for name in shared)


class Wordings:
    """All rules of wordings.yaml."""

    def __init__(self, rules: Sequence[Wording]) -> None:
        self.rules = rules

    @classmethod
    def load(cls, path: Path = Path(__file__).parent / "wordings.yaml") -> Wordings:
        entries = yaml.load(path.read_text(), yaml.CSafeLoader) or []
        return cls([Wording(entry["reason"], _pattern(entry["reference"]), _pattern(entry["ours"])) for entry in entries])

    def rule_for(self, reference: Mapping[str, Any], ours: Mapping[str, Any]) -> Wording | None:
        """The rule that lists this pair of answers; never one for a question that the reference compiles, or for a crash of ours."""
        if "error" not in reference or ours.get("error", "").startswith("CRASH"):
            return None
        return next((rule for rule in self.rules if rule.covers(reference["error"], ours.get("error"))), None)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


def compare(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> Difference | None:
    """How our answer differs from the reference's; None when catalog and log, or the whole error, are equal."""
    reference, ours = _without_paths(reference), _without_paths(ours)
    explanation = differs({}, reference, ours)
    if not explanation:
        return None
    kind = _kind(reference, ours)
    if kind in ("words", "place", "refused", "accepted", "crash"):
        signature = " | ".join(_skeleton(answer.get("error", "-")) for answer in (reference, ours))
    else:
        signature = _skeleton(explanation)
    return Difference(kind, signature[:240], explanation)


def _without_paths(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without rich data the reference adds up the path of one value to that of the next (deviations.yaml, rich-values-in-parameters-…)."""
    return {**answer, "logs": [[level, _PATH.sub(r"\1", text)] for level, text in answer["logs"]]}


def _kind(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    if ours.get("error", "").startswith("CRASH"):
        return "crash"
    if "error" not in reference and "error" not in ours:
        return "log" if reference["logs"] != ours["logs"] and _plain(reference) == _plain(ours) else "catalog"
    if "error" not in reference:
        return "refused"
    if "error" not in ours:
        return "accepted"
    return "place" if _PLACE.sub("", reference["error"]) == _PLACE.sub("", ours["error"]) else "words"


def _plain(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in answer.items() if key != "logs"}


def _skeleton(text: str) -> str:
    """The message without what varies from question to question: quotes, numbers, names of types, the place."""
    text = _PLACE.sub("", text)
    before = None
    while before != text:
        before, text = text, _QUOTED.sub("…", text)
    return _NAMES.sub("N", _NUMBERS.sub("0", text))
