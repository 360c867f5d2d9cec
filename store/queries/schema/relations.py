"""The relations of entities: the fields by which an implicit subquery joins two of them."""

from __future__ import annotations

from typing import TypeAlias

from .entities import ENTITIES

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Fields of the outer entity and of the inner one that must be equal."""

_OF_NODES = tuple(entity.name for entity in ENTITIES.values() if entity.has_node)

_INNER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_NODES, _OF_NODES),
    **dict.fromkeys(("facts", "fact_contents", "events"), (*_OF_NODES, "environments")),
    **dict.fromkeys(("factsets", "catalogs", "reports"), (*_OF_NODES, "environments", "producers")),
    "resources": ("nodes", "catalogs", "environments", "package_inventory"),
    "environments": ("facts", "fact_contents", "factsets", "inventory", "catalogs", "resources", "reports", "events"),
    "producers": ("factsets", "catalogs", "reports"),
    "fact_paths": ("facts", "fact_contents"),
}
"""Which entities can be asked for inside which: as PuppetDB 7.12.1 does, and package_inventory wherever there are nodes."""

_SPECIAL: dict[tuple[str, str], Pairs] = {
    ("facts", "fact_contents"): (("certname", "certname"), ("name", "name")),
    ("fact_contents", "facts"): (("certname", "certname"), ("name", "name")),
    ("reports", "events"): (("hash", "report"),),
    ("events", "reports"): (("report", "hash"),),
    ("fact_paths", "facts"): (("name", "name"),),
    ("fact_paths", "fact_contents"): (("path", "path"),),
}


def relation(outer: str, inner: str) -> Pairs | None:
    """Return the fields that join two entities in an implicit subquery, or None where nothing does."""
    if inner not in _INNER.get(outer, ()):
        return None
    if inner in ("environments", "producers"):
        return ((inner.removesuffix("s"), "name"),)
    if outer in ("environments", "producers"):
        return (("name", outer.removesuffix("s")),)
    return _SPECIAL.get((outer, inner), (("certname", "certname"),))
