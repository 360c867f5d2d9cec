"""Collectors: `Type <| query |>`, `Type <<| query |>>`, and the fixed ones of `realize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.errors import EvaluationError

from ..values import comparison
from ..values.core import Value
from ..values.text import to_s
from .compilation_view import CompilationView
from .resources import DeclaredResource, Override, ResourceAttribute, ResourceScope

ResourceTest = Callable[[DeclaredResource], bool]


def test_is(name: str, value: Value, is_equal: bool) -> ResourceTest:
    """
    Return the test `name == value`, or `!=` when not `is_equal`.

    Source: language reference 4.5: an array attribute is asked for a member by `==`, compared as a whole by `!=`.
    """
    if name == "tag" and is_equal:
        tag = value.lower() if isinstance(value, str) else to_s(value).lower()
        return lambda resource: resource.is_tagged(tag)

    def test(resource: DeclaredResource) -> bool:
        actual = resource.title if name == "title" else resource.values.get(name)
        if is_equal:
            if isinstance(actual, list):
                return any(comparison.equals(item, value) for item in actual)
            return comparison.equals(actual, value)
        return not comparison.equals(actual, value)

    return test


def test_all(left: ResourceTest, right: ResourceTest) -> ResourceTest:
    return lambda resource: left(resource) and right(resource)


def test_any(left: ResourceTest, right: ResourceTest) -> ResourceTest:
    return lambda resource: left(resource) or right(resource)


class ResourceCollector:
    """Realizes the resources of a type that pass a test, again and again until nothing new comes."""

    def __init__(
        self,
        scope: ResourceScope,
        type_: str,
        test: ResourceTest | None,
        *,
        exported: bool = False,
        attributes: Mapping[str, ResourceAttribute] | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        self.scope = scope
        self.type = type_
        self.test = test
        self.exported = exported
        self.attributes = attributes
        self.file = file
        self.line = line
        self.collected: dict[tuple[str, str], DeclaredResource] = {}
        self.alternative: list[object] = []  # what stands in a chain for an empty collector

    def evaluate(self, compilation: CompilationView) -> bool:
        """Realize what passes the test by now, and return whether something of that is new."""
        if self.exported and not compilation.storeconfigs:
            return False
        test = self.test
        resources = [
            resource
            for resource in compilation.catalog.declared
            if resource.type == self.type and (not self.exported or resource.exported) and (test is None or test(resource))
        ]
        if self.exported:
            resources += import_exported(compilation, self)
        new = [resource for resource in resources if (resource.type, resource.title) not in self.collected]
        for resource in resources:
            resource.virtual = False
        if self.attributes:
            # The reference makes a resource of the override, which so gets the defaults in force at the collector.
            attributes = {**(self.scope.default_attributes(self.type) or {}), **self.attributes}
            for resource in new:
                reference = (resource.type, resource.title)
                compilation.add_override(Override(reference, attributes, self.scope.source, self.file, self.line, forced=True))
        for resource in new:
            self.collected[resource.type, resource.title] = resource
        return bool(new)

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


def import_exported(compilation: CompilationView, collector: ResourceCollector) -> list[DeclaredResource]:
    """Put the resources of other nodes that a collector takes into the catalog, and return those that are new."""
    imported: list[DeclaredResource] = []
    if compilation.storeconfigs:
        compilation.mark_uncacheable("exported resources are collected")
    for exported in compilation.host.exported(collector.type, compilation.node):
        definition = compilation.definitions.find_define(exported.type.lower())
        native = compilation.host.types.find(exported.type.lower())
        resource = DeclaredResource(
            exported.type,
            exported.title,
            scope=collector.scope,
            source=collector.scope.source,
            native=native,
            definition=None if native else definition,
            kind="compilable_type" if native else "defined_type",
        )
        for name, value in exported.parameters.items():
            resource.set(name, value)
        resource.tags.update(dict.fromkeys(exported.tags))
        if collector.test is not None and not collector.test(resource):
            continue
        existing = compilation.catalog.find(exported.type, exported.title)
        if existing is not None:
            if existing.collected_by != (exported.certname, exported.type, exported.title):
                reference = f"{exported.type}[{exported.title}]"
                raise EvaluationError(
                    f"A duplicate resource was found while collecting exported resources, with the type and title {reference}"
                )
            continue
        resource.collected_by = (exported.certname, exported.type, exported.title)
        compilation.catalog.declare(resource)
        imported.append(resource)
    return imported
