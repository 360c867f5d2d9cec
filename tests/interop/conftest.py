"""A master for Debian's agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.stage import SITE
from tests.processes import MasterProcess, has_real_puppet, master


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MasterProcess]:
    """A master with the site; autosign as the test's parameter says (default: true)."""
    if not has_real_puppet():
        pytest.fail("Debian's puppet-agent is not installed: apt-get install puppet-agent")
    with master(tmp_path / "master", autosign=getattr(request, "param", "true")) as process:
        process.write(SITE)
        yield process.start()
