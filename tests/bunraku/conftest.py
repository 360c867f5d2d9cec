from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Puppet
from tests.support.ruby_apply import apply, started

__all__ = ["apply", "file", "puppet", "started"]


@pytest.fixture
def puppet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Puppet:
    (tmp_path / "conf").mkdir()
    return Puppet(tmp_path, capsys)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a file with a text below the test's folder."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make
