from __future__ import annotations

from typing import Any

import pytest

from agent.facts.limits import SoftLimits

NONE = SoftLimits(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("limits", "facts", "said"),
    [
        (SoftLimits(), {"a": "b", "c": {"d": ["e", {"f": None}]}}, []),
        (NONE, {"a" * 5000: "b" * 5000}, []),
        (SoftLimits(top=1), {"a": 1, "b": 2}, ["The current number of top level facts: 2 exceeds the top facts limit: 1"]),
        # As Puppet counts: keys of maps on all levels, but no elements of lists.
        (SoftLimits(total=4), {"a": {"b": 1, "c": [1, 2, 3]}, "d": [{"e": 1}]}, ["total number of facts: 5 exceeds the number of facts"]),
        (SoftLimits(total=5), {"a": {"b": 1, "c": [1, 2, 3]}, "d": [{"e": 1}]}, []),
        # 8 bytes of an index, 2 for each level, and the names themselves.
        (SoftLimits(name=15), {"ab": {"cd": 1}}, ["Fact 'ab.cd' with length: '4' exceeds the length limit: 15"]),
        (SoftLimits(name=16), {"ab": {"cd": 1}}, []),
        (SoftLimits(name=15), {"ab": {"é": 1}}, ["with length: '4'"]),
        (SoftLimits(value=3), {"a": ["xxxx"]}, ["Fact value of 'a.0' with the value length: '4' exceeds the value length limit: 3"]),
        (SoftLimits(value=3), {"a": True, "b": None, "c": 12345}, ["'a' with the value length: '4'", "'c' with the value length: '5'"]),
    ],
)
def test_what_is_over_a_limit_is_named(limits: SoftLimits, facts: dict[str, Any], said: list[str]) -> None:
    messages = list(limits.excesses(facts))
    assert len(messages) == len(said) and all(part in sentence for part, sentence in zip(said, messages, strict=True)), messages


def test_deep_facts_need_no_stack() -> None:
    facts: dict[str, Any] = {}
    for _ in range(5000):
        facts = {"a": facts}
    assert len(list(SoftLimits(total=10, name=0).excesses(facts))) == 1


def test_the_payload_counts_as_it_is_sent() -> None:
    assert list(SoftLimits(payload=10).of_payload(10)) == []
    (message,) = SoftLimits(payload=10).of_payload(11)
    assert message == "Payload with the current size of: '11' exceeds the payload size limit: 10"
