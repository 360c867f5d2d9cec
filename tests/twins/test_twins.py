"""
Uses of Debian's modules, each applied to two identical booted Debians: by Debian's `puppet apply` and by ours; see `run.py`.

`make twins-image` builds what they boot from.
"""

from __future__ import annotations

import pytest

from tests.twins.run import compare_twins
from tests.twins.twin import why_not
from tests.twins.use import Use, read_uses

pytestmark = [
    pytest.mark.works_with(
        "Ruby in modules, without Puppet", "35 uses of 68 of Debian's modules on two booted Debians, beside the real puppet apply"
    ),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.alone,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.mark.parametrize("use", [pytest.param(use, id=use.name) for use in read_uses()])
def test_both_twins_are_the_same_afterwards(use: Use) -> None:
    assert not compare_twins(use).differences
