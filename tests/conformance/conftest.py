from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conformance.booted import Booted
from tests.conformance.test_sandbox import IMAGE


@pytest.fixture(scope="module")
def machine() -> Iterator[Booted]:
    """A machine under systemd for all tests of a module; they are skipped, with what was said, where none boots."""
    with ExitStack() as ending:
        try:
            booted = ending.enter_context(Booted(IMAGE))
        except RuntimeError as err:
            pytest.skip(str(err))
        yield booted
