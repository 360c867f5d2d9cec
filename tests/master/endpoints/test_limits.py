"""The limits of requests to a master."""

from __future__ import annotations

import pytest

from master.endpoints.limits import MasterLimits
from shared.errors import ConfigError
from shared.settings import MasterSettings


def test_limits_come_from_settings_of_the_same_name() -> None:
    names = set(MasterLimits.__dataclass_fields__) - {"trust_poll_interval"}
    assert names <= set(MasterSettings.model_fields)


def test_an_unknown_limit_is_an_error_that_names_it() -> None:
    assert MasterLimits().body("max_facts_body") == 16 * 2**20
    with pytest.raises(ConfigError, match="max_nothing"):
        MasterLimits().body("max_nothing")
