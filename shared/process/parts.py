"""The optional parts of this distribution, and the packages that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from ..errors import ConfigError

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "store": ("aiosqlite", "alembic", "lark", "sqlalchemy"),
    "master": ("resolvelib", "tree_sitter", "tree_sitter_ruby"),
}
"""The import names of what an extra of pyproject.toml brings, by the extra's name; `master` brings the store's, too."""


def missing(name: str) -> ConfigError | None:
    """Return the error text for a missing module `name`; None when no optional part contains it."""
    package = name.partition(".")[0]
    part = next((part for part, packages in PARTS.items() if package in packages), None)
    if part is None:
        return None
    return ConfigError(f"The Python package {package} is not installed", hint=f"An agent does without it: pip install 'bunraku[{part}]'")


def require(*parts: str) -> None:
    """Raise ConfigError when a package of these parts is not installed."""
    for package in (each for part in parts for each in PARTS[part]):
        if find_spec(package) is None and (error := missing(package)) is not None:
            raise error
