"""Databases to be moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite", pytest.param("sqlite to sqlite", marks=pytest.mark.full)])
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of a source, with the store's tables and no rows, and of a target without any tables."""
    kinds: dict[str, Callable[[str], str]] = {
        "sqlite": lambda role: request.getfixturevalue("sqlite_url") if role == "source" else f"sqlite:///{tmp_path / 'target.sqlite'}",
        "postgresql": lambda role: request.getfixturevalue("postgresql_url" if role == "source" else "empty_postgresql_url"),
    }
    source, _, target = request.param.partition(" to ")
    return kinds[source]("source"), kinds[target]("target")


@pytest.fixture
def files(sqlite_url: str, tmp_path: Path) -> tuple[str, str]:
    """The same on SQLite, for what does not depend on the kind of database."""
    return sqlite_url, f"sqlite:///{tmp_path / 'target.sqlite'}"
