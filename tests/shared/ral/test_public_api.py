"""What module authors import: a change here breaks their modules."""

from __future__ import annotations

import shared.ral

PUBLIC = """
ABSENT Command Confine Ensure Origin Output Param Platform Property Provider Providers Ref State Surroundings TitlePatterns Type
Value displayed ensurable execute fact feature program which
"""


def test_the_public_names_stay() -> None:
    assert sorted(shared.ral.__all__) == sorted(PUBLIC.split())
    assert all(hasattr(shared.ral, name) for name in shared.ral.__all__)
