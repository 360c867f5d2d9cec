"""What is known of Puppet's own types, held against what Puppet 7.23 and Debian's modules with its former types declare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from language.loading.nativetypes import NativeTypes

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "types-of-puppet-7.23.json").read_text())


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_type_has_the_attributes_that_puppet_gives_it(name: str) -> None:
    recorded, known = RECORDED[name], NativeTypes().find(name)

    assert known is not None
    assert set(known.attributes) == {*recorded["properties"], *recorded["parameters"], "provider"}
    assert sorted(known.namevars) == sorted(recorded["namevars"])
    assert known.isomorphic == recorded["isomorphic"]


def test_types_that_left_puppet_are_not_taken_for_its_own() -> None:
    types = NativeTypes()

    assert {name for name in RECORDED if types.is_core(name)} == {name for name, each in RECORDED.items() if not each["module"]}
