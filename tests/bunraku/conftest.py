from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import Puppet


@pytest.fixture
def puppet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Puppet:
    (tmp_path / "conf").mkdir()
    return Puppet(tmp_path, capsys)


@pytest.fixture(autouse=True)
def same_logging_afterwards() -> Iterator[None]:
    """Commands send the logs of the whole process where they want them."""
    root = logging.getLogger()
    handlers, level, own = list(root.handlers), root.level, logging.getLogger("puppet").level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("puppet").setLevel(own)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a file with a text below the test's folder."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make
