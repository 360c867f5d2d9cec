"""
SQLAlchemy's engine for asyncio without its unused ORM, which takes 7 MB and 50 ms.

`sqlalchemy.ext.asyncio` loads the ORM for its sessions. A package of that name that has not been executed leads to its other modules all
the same; whoever imports the package afterwards gets all of it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

_PACKAGE = "sqlalchemy.ext.asyncio"


def _import_from_package(name: str) -> ModuleType:
    """Return a module of the package, which is not executed."""
    if _PACKAGE in sys.modules:
        return import_module(f"{_PACKAGE}.{name}")
    spec = find_spec(_PACKAGE)
    assert spec is not None
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return import_module(f"{_PACKAGE}.{name}")
    finally:
        del sys.modules[_PACKAGE]


if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncResult, create_async_engine
else:
    _engine = _import_from_package("engine")
    AsyncConnection, AsyncEngine, AsyncResult = _engine.AsyncConnection, _engine.AsyncEngine, _engine.AsyncResult
    create_async_engine = _engine.create_async_engine

__all__ = ["AsyncConnection", "AsyncEngine", "AsyncResult", "create_async_engine"]
