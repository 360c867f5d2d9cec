"""Manifests with something broken in them: what comes back is a catalog or one clear error, never a fault of ours."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.runner import answer

FOLDER = Path(__file__).parent / "language"
FRAGMENTS = (
    "undef", "default", "[]", "{}", "''", "-1", "1.5", "/x/", "Integer", "File['/x']", "$x", "*", "[1,2]", "{a=>1}", "Class['c']", "true",
    "Sensitive('s')", "'Notify[a]'", "Notify", "Deferred('f')", "Binary('YWJj')", "Integer[1,3]", "[undef]", '"${x}"', "Timestamp()",
)  # fmt: skip
TOKEN = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)


def _mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 3)):
        tokens = TOKEN.findall(text)
        if not tokens:
            return text
        at, kind = chance.randrange(len(tokens)), chance.random()
        if kind < 0.3:
            del tokens[at]
        elif kind < 0.7:
            tokens[at] = chance.choice(FRAGMENTS)
        elif kind < 0.85:
            tokens.insert(at, chance.choice(tokens))
        else:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        text = "".join(tokens)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["control", "classes", "resources", "relationships", "operators", "strings_and_numbers", "epp"])
def test_a_broken_manifest_gives_a_catalog_or_an_error(name: str) -> None:
    cases: list[dict[str, Any]] = yaml.load((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    chance = random.Random(name)
    for _ in range(400):
        case = dict(chance.choice(cases))
        case["manifest"] = _mutated(case.get("manifest") or "", chance)
        got = answer(case)
        assert not got.crash, f"{case['manifest']}\n{got.crash}"
