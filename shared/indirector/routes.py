"""`routes.yaml`: which terminus and cache an application uses for an indirection. Source: protocol reference 1.8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..data import plainyaml
from ..errors import BadData, ConfigError


@dataclass(frozen=True, slots=True)
class Route:
    """Names of termini; None: the application's own choice stays. `cache` '' switches caching off."""

    terminus: str | None = None
    cache: str | None = None


def read_routes(path: Path, application: str) -> dict[str, Route]:
    """
    Return the routes of one application by indirection; {} when there is no file. `server` and `master` mean the same.

    Raises:
        ConfigError: the file is not YAML, or not of the shape application → indirection → terminus, cache.
    """
    try:
        data = plainyaml.loads(path.read_bytes(), aliases=True)
    except FileNotFoundError:
        return {}
    except BadData as err:
        raise ConfigError(f"Could not configure routes from {path}: {err}") from err
    names = ("master", "server") if application in ("master", "server") else (application,)
    routes: dict[str, Route] = {}
    if data is None:
        return routes
    if not isinstance(data, dict):
        raise ConfigError(f"Could not configure routes from {path}: expected a map of applications")
    for name in names:
        chosen = data.get(name) or {}
        if not isinstance(chosen, dict):
            raise ConfigError(f"Could not configure routes from {path}: {name} is not a map of indirections")
        for indirection, entry in chosen.items():
            routes[str(indirection)] = _route(path, f"{name}.{indirection}", entry)
    return routes


def _route(path: Path, where: str, entry: object) -> Route:
    if not isinstance(entry, Mapping) or not set(entry) <= {"terminus", "cache"}:
        raise ConfigError(f"Could not configure routes from {path}: {where} must be a map with terminus and cache")
    for value in entry.values():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"Could not configure routes from {path}: {where} names a terminus with something else than text")
    return Route(entry.get("terminus"), (entry["cache"] or "") if "cache" in entry else None)
