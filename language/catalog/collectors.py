"""Collectors: `Type <| query |>`, `Type <<| query |>>`, and the fixed ones of `realize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from shared.errors import EvaluationError, Location

from ..host import ExportedResource
from ..values import comparison
from ..values.core import Value
from ..values.labels import label, with_article
from ..values.text import to_s
from .compilation_view import CompilationView
from .resources import DeclaredResource, Override, ResourceAttribute, ResourceScope


@dataclass(frozen=True, slots=True)
class ResourceTest:
    """
    The expression of a collector.

    Attributes:
        test: Whether it is true for a resource of the catalog.
        query: The same as a syntax tree for a PuppetDB, where rich values are still such.
    """

    test: Callable[[DeclaredResource], bool]
    query: list[Value]

    def __call__(self, resource: DeclaredResource) -> bool:
        return self.test(resource)


def test_is(name: Value, value: Value | ResourceTest, is_equal: bool) -> ResourceTest:
    """
    Return the test `name == value`, or `!=` when not `is_equal`; raise EvaluationError for a name that is not a string.

    A test as the value, as in `name == (a == b)`, equals no attribute and no tag.

    Source: language reference 4.5: an array attribute is asked for a member by `==`, compared as a whole by `!=`.
    """
    if not isinstance(name, str):
        raise EvaluationError(f"The name of an attribute in a query must be a String, got {with_article(label(name))}")
    field: Value = name if name in ("tag", "title") else ["parameter", name]
    if isinstance(value, ResourceTest):
        nested: list[Value] = ["=", field, value.query]
        return ResourceTest(lambda resource: not is_equal, nested if is_equal else ["not", nested])
    tag = value.lower() if isinstance(value, str) else to_s(value).lower()
    query: list[Value] = ["=", field, tag if name == "tag" else value]
    if name == "tag" and is_equal:
        return ResourceTest(lambda resource: resource.is_tagged(tag), query)

    def test(resource: DeclaredResource) -> bool:
        actual = resource.title if name == "title" else resource.values.get(name)
        if is_equal:
            if isinstance(actual, list):
                return any(comparison.equals(item, value) for item in actual)
            return comparison.equals(actual, value)
        return not comparison.equals(actual, value)

    return ResourceTest(test, query if is_equal else ["not", query])


def test_all(left: ResourceTest, right: ResourceTest) -> ResourceTest:
    return ResourceTest(lambda resource: left(resource) and right(resource), ["and", left.query, right.query])


def test_any(left: ResourceTest, right: ResourceTest) -> ResourceTest:
    return ResourceTest(lambda resource: left(resource) or right(resource), ["or", left.query, right.query])


@dataclass(eq=False, repr=False)
class ResourceCollector:
    """Realizes the resources of a type that pass a test, again and again until nothing new comes."""

    scope: ResourceScope
    type: str
    test: ResourceTest | None
    _: KW_ONLY
    exported: bool = False
    attributes: Mapping[str, ResourceAttribute] | None = None
    file: str | None = None
    line: int | None = None
    collected: dict[tuple[str, str], DeclaredResource] = field(default_factory=dict, init=False)
    alternative: list[Value | ResourceCollector] = field(default_factory=list, init=False)  # what stands in a chain for an empty collector
    _exported: Sequence[ExportedResource] | None = field(default=None, init=False)  # by other nodes; asked for once

    def evaluate(self, compilation: CompilationView) -> bool:
        """Realize all resources that match by now, and return whether any of them is new."""
        if self.exported and not compilation.storeconfigs:
            return False
        test = self.test
        resources = [
            resource
            for resource in compilation.catalog.declared
            if resource.type == self.type and (not self.exported or resource.exported) and (test is None or test(resource))
        ]
        if self.exported:
            resources += self._import(compilation)
        new = [resource for resource in resources if (resource.type, resource.title) not in self.collected]
        for resource in resources:
            resource.virtual = False
        if self.attributes:
            # The reference makes a resource of the override, which so gets the defaults in force at the collector after its own.
            defaults = self.scope.default_attributes(self.type) or {}
            attributes = {**self.attributes, **{name: each for name, each in defaults.items() if name not in self.attributes}}
            for resource in new:
                reference = (resource.type, resource.title)
                compilation.add_override(Override(reference, attributes, self.scope.source, self.file, self.line, forced=True))
        for resource in new:
            self.collected[resource.type, resource.title] = resource
        return bool(new)

    def _import(self, compilation: CompilationView) -> list[DeclaredResource]:
        """Put the resources of other nodes into the catalog, and return the new ones; only the first call queries them."""
        if self._exported is not None:
            return []
        query = self.test.query if self.test is not None else None
        try:
            self._exported = compilation.host.exported(self.type, query, compilation.node)
        except EvaluationError as err:
            err.where = Location(self.file, self.line)  # the manifest is no longer being evaluated
            raise
        imported = [import_exported(compilation, self, resource) for resource in self._exported]
        return [resource for resource in imported if resource is not None]

    def unresolved(self) -> list[str]:
        return []


class Realizer:
    """`realize(File['/a'], …)`: waits for these resources."""

    def __init__(self, references: list[tuple[str, str]]) -> None:
        self.references = references

    def evaluate(self, compilation: CompilationView) -> bool:
        waiting: list[tuple[str, str]] = []
        has_realized = False
        for reference in self.references:
            resource = compilation.catalog.find(*reference)
            if resource is None:
                waiting.append(reference)
                continue
            resource.virtual = False
            has_realized = True
        self.references = waiting
        return has_realized

    def unresolved(self) -> list[str]:
        return [f"{type_}[{title}]" for type_, title in self.references]


def unresolved_error(references: list[str]) -> EvaluationError:
    return EvaluationError(f"Failed to realize virtual resources {', '.join(references)}")


def import_exported(compilation: CompilationView, collector: ResourceCollector, exported: ExportedResource) -> DeclaredResource | None:
    """
    Put a resource of another node into the catalog, and return it; None when it was collected already.

    Raises:
        EvaluationError: The catalog has another resource of that type and title.
    """
    existing = compilation.catalog.find(exported.type, exported.title)
    origin = (exported.certname, exported.type, exported.title)
    if existing is not None:
        if existing.collected_by == origin:
            return None
        other = f"the export of {existing.collected_by[0]}" if existing.collected_by else f"the one declared here {existing.place}".rstrip()
        raise EvaluationError(
            "A duplicate resource was found while collecting exported resources, with the type and title "
            f"{exported.type}[{exported.title}]",
            where=Location(collector.file, collector.line),
            hint=f"{exported.certname} exports it, which clashes with {other}.",
        )
    native = compilation.host.types.find(exported.type.lower())
    definition = None if native is not None else compilation.definitions.find_define(exported.type.lower())
    resource = DeclaredResource(
        exported.type,
        exported.title,
        scope=collector.scope,
        source=collector.scope.source,
        native=native,
        definition=definition,
        kind="compilable_type" if native else "defined_type",
    )
    for name, value in exported.parameters.items():
        resource.set(name, value)
    resource.collected_by = origin
    compilation.catalog.declare(resource)
    return resource
