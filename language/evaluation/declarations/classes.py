"""Classes that enter the catalog: by include, from the node's list, and the parents of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...catalog.definitions import HostClass, class_title
from ...catalog.resources import DeclaredResource
from ...values.core import Value
from ..compilation import Compilation, Scope, declaring_scope
from .definitions import evaluate


def include_classes(scope: Scope, names: Sequence[str]) -> list[DeclaredResource]:
    """
    Declare and evaluate the classes of these absolute names that are not declared yet; return the resources of all of them.

    All are declared before the first is evaluated. Classes that were declared before come first. Source: language reference 5.2.

    Raises:
        EvaluationError: there is no class of a name; then none is declared.
    """
    compilation = scope.compilation
    # All names are resolved first, so that an unknown class declares none of them.
    host_classes = [compilation.definitions.class_for(name, compilation.node.certname) for name in names]
    present: list[DeclaredResource] = []
    new: list[DeclaredResource] = []
    for host_class in host_classes:
        class_scope = compilation.scopes.by_class.get(host_class.name)
        if class_scope is not None and class_scope.resource is not None:
            present.append(class_scope.resource)
        else:
            new.append(declare_class(compilation, host_class, scope, None))
    for resource in new:
        evaluate(compilation, resource)
    return present + new


def declare_class(compilation: Compilation, host_class: HostClass, scope: Scope, values: Mapping[str, Value] | None) -> DeclaredResource:
    """
    Declare a class and those that it inherits from; return its resource.

    Args:
        values: its parameters by name, as a resource expression gives them; None: the class may be declared already.
    """
    title = class_title(host_class.name)
    # With parameters a second declaration is an error, which `declare` below raises.
    if values is None:
        existing = compilation.catalog.find("Class", title)
        if existing is not None:
            return existing
    resource = DeclaredResource("Class", title, scope=scope, source=host_class, definition=host_class, kind="unknown")
    for name, value in (values or {}).items():
        resource.set(name, value)
    # The parent enters the catalog before its child; their order is visible to agents.
    declare_parent(compilation, resource)
    compilation.catalog.declare(resource)
    return resource


def declare_parent(compilation: Compilation, resource: DeclaredResource) -> None:
    """Declare the class that the class of `resource` inherits from, and tag the catalog with the tags of `resource`."""
    host_class = resource.definition
    if isinstance(host_class, HostClass):
        scope = declaring_scope(resource)
        if host_class.parent is not None and scope is not None:
            declare_class(compilation, host_class.parent, scope, None)
        compilation.catalog.tags.update(resource.tags)
