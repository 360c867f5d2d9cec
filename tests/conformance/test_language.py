"""
The recorded cases of the language: a site manifest with modules, data and facts, then the catalog or the error.

What is compared: resources in order with all their parameters, tags and places, edges, classes, logs, whole error messages.
The cases are in `language/`; deviations.yaml names those where we knowingly answer otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.runner import RUBY, answer, deviations, differs, recorded, words_of_ruby_3

pytestmark = pytest.mark.works_with("Commands and answers of Puppet 7.23", "manifests with recorded catalogs and logs")

FOLDER = Path(__file__).parent / "language"
DEVIATIONS = deviations()
WITH_RUBY = "ruby:"
NEEDS_RUBY = pytest.mark.skipif(not words_of_ruby_3(), reason="the Ruby that is installed, if any, does not word errors as Ruby 3.1 does")


def cases() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        expected = recorded(path)
        for case in yaml.load(path.read_text(), yaml.CSafeLoader):
            name = f"{path.stem}:{case['id']}"
            marks = [NEEDS_RUBY] if name.startswith(WITH_RUBY) else []
            found.append(pytest.param(name, case, expected.get(case["id"]), id=name, marks=marks))
    return found


@pytest.mark.parametrize(("name", "case", "wanted"), cases())
def test_the_compiler_answers_as_recorded(name: str, case: dict[str, Any], wanted: dict[str, Any] | None) -> None:
    assert wanted is not None, f"{name} has no recorded answer: python -m tests.conformance --record FILE, with Debian's puppet-agent"
    # Others have no Ruby, so that a machine without one gives the same answers.
    got = answer(case, ruby=RUBY if name.startswith(WITH_RUBY) else None)
    why = differs(case, wanted, got.data)
    if name in DEVIATIONS:
        assert not got.crash, got.crash
        assert why, f"{name} is answered as recorded now: take it out of deviations.yaml"
    else:
        assert not why, f"{why}\n{got.crash}"


@pytest.mark.slow
def test_every_deviation_is_a_case() -> None:
    assert set(DEVIATIONS) <= {case.id for case in cases()}
