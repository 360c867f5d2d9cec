"""The differences between two catalogs of a node, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from environments.comparison.catalogs import RELATIONSHIPS, SECRET, canonical, holds_secret
from environments.comparison.textdiffs import diff_lines
from shared.models.catalog import Catalog, CatalogResource

T = TypeVar("T")
WIDTH = 70  # characters of a value that fits on a line with its attribute


@dataclass(frozen=True, slots=True)
class Change:
    """An attribute that differs; None: it is not there. `secret` values are not shown."""

    name: str
    old: Any
    new: Any
    secret: bool = False

    def data(self) -> dict[str, Any]:
        sides = {side: SECRET if self.secret and value is not None else value for side, value in (("old", self.old), ("new", self.new))}
        return {"attribute": self.name, **sides}


@dataclass(frozen=True, slots=True)
class CatalogDiff:
    """
    The differences of `new` from `old`: resources by their references, attributes, classes, edges as (source, target).

    The place of a declaration, and the order of resources, are not differences: neither changes what an agent does but the
    order of unrelated resources.
    """

    removed: tuple[CatalogResource, ...]
    added: tuple[CatalogResource, ...]
    changed: tuple[tuple[CatalogResource, tuple[Change, ...]], ...]
    classes_removed: tuple[str, ...]
    classes_added: tuple[str, ...]
    edges_removed: tuple[tuple[str, str], ...]
    edges_added: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return any((self.removed, self.added, self.changed, self.classes_removed, self.classes_added, self.edges_removed, self.edges_added))

    def data(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "resources": {
                "removed": [each.ref for each in self.removed],
                "added": [each.ref for each in self.added],
                "changed": {resource.ref: [change.data() for change in changes] for resource, changes in self.changed},
            },
            "classes": {"removed": list(self.classes_removed), "added": list(self.classes_added)},
            "edges": {"removed": [list(edge) for edge in self.edges_removed], "added": [list(edge) for edge in self.edges_added]},
        }

    def lines(self) -> Iterator[str]:
        """Return lines for people: removed, added and changed items; the last line counts them."""
        yield from _classes(self.classes_removed, self.classes_added)
        for sign, resources in (("-", self.removed), ("+", self.added)):
            for resource in resources:
                yield f"{sign} {resource.ref}{_place(resource)}"
        for resource, changes in self.changed:
            yield f"~ {resource.ref}{_place(resource)}"
            for change in changes:
                yield from _attribute(change)
        # Edges of resources that came or went say nothing more.
        one_sided = {each.ref for each in (*self.removed, *self.added)}
        for sign, edges in (("-", self.edges_removed), ("+", self.edges_added)):
            for source, target in edges:
                if not {source, target} & one_sided:
                    yield f"{sign} {source} contains {target}"
        yield self.summary()

    def summary(self) -> str:
        if not self:
            return "The catalogs are the same."
        attributes = sum(len(changes) for _, changes in self.changed)
        counted = f"{len(self.removed)} removed, {len(self.added)} added, {len(self.changed)} changed"
        return f"Resources: {counted} ({attributes} attribute{'' if attributes == 1 else 's'})."


def difference(old: Catalog, new: Catalog) -> CatalogDiff:
    """Return the differences of `new` from `old`."""
    before, after = {resource.ref: resource for resource in old.resources}, {resource.ref: resource for resource in new.resources}
    changed = [(after[ref], changes) for ref in before if ref in after and (changes := tuple(_changes(before[ref], after[ref])))]
    edges_before, edges_after = ([(edge.source, edge.target) for edge in catalog.edges] for catalog in (old, new))
    return CatalogDiff(
        removed=tuple(before[ref] for ref in _without(before, after)),
        added=tuple(after[ref] for ref in _without(after, before)),
        changed=tuple(changed),
        classes_removed=_without(old.classes, new.classes),
        classes_added=_without(new.classes, old.classes),
        edges_removed=_without(edges_before, edges_after),
        edges_added=_without(edges_after, edges_before),
    )


def _without(items: Iterable[T], others: Iterable[T]) -> tuple[T, ...]:
    known = set(others)
    return tuple(dict.fromkeys(item for item in items if item not in known))


def _changes(old: CatalogResource, new: CatalogResource) -> Iterator[Change]:
    secrets = {*old.sensitive_parameters, *new.sensitive_parameters}
    for name in dict.fromkeys([*old.parameters, *new.parameters]):
        before, after = old.parameters.get(name), new.parameters.get(name)
        if _comparable(name, before) != _comparable(name, after):
            yield Change(name, before, after, secret=name in secrets or holds_secret(before) or holds_secret(after))
    if sorted(old.sensitive_parameters) != sorted(new.sensitive_parameters):
        yield Change("(sensitive attributes)", sorted(old.sensitive_parameters), sorted(new.sensitive_parameters))
    if sorted(old.tags) != sorted(new.tags):
        yield Change("(tags)", sorted(old.tags), sorted(new.tags))
    for name in ("exported", "virtual"):
        if getattr(old, name) != getattr(new, name):
            yield Change(f"({name})", getattr(old, name), getattr(new, name))


def _comparable(name: str, value: Any) -> str:
    """Return a value in a form in which equal meanings are equal: hashes and relationships have no order."""
    if name in RELATIONSHIPS and isinstance(value, list):
        value = sorted(map(canonical, value))
    return canonical(value)


def _classes(removed: Iterable[str], added: Iterable[str]) -> Iterator[str]:
    for sign, names in (("-", removed), ("+", added)):
        for name in names:
            yield f"{sign} class {name}"


def _place(resource: CatalogResource) -> str:
    if resource.file is None:
        return ""
    return f"  ({resource.file}:{resource.line})" if resource.line is not None else f"  ({resource.file})"


def _attribute(change: Change) -> Iterator[str]:
    old, new = change.old, change.new
    if change.secret:
        text = {True: f"= {SECRET}", False: f"{SECRET} differs"}[old is None or new is None]
        yield f"    {'+' if old is None else '-' if new is None else ' '} {change.name} {text}"
    elif old is None:
        yield f"    + {change.name} = {_value_text(new)}"
    elif new is None:
        yield f"    - {change.name} = {_value_text(old)}"
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        yield f"      {change.name}:"
        yield from (f"        {line}" for line in diff_lines(old, new))
    elif len(_value_text(old)) + len(_value_text(new)) < WIDTH:
        yield f"      {change.name}: {_value_text(old)} -> {_value_text(new)}"
    else:
        yield f"      {change.name}:"
        yield f"        - {_value_text(old)}"
        yield f"        + {_value_text(new)}"


def _value_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
