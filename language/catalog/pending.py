"""Pending work of a compilation: overrides, collectors and relationships that apply to resources declared later."""

from __future__ import annotations

from shared.errors import EvaluationError

from ..errors.locations import FINAL
from .collectors import Realizer, ResourceCollector, unresolved_error
from .compilation_view import CompilationView
from .overrides import apply_override
from .relationships import RelationshipEdge
from .resources import DeclaredResource, Override


class PendingWork:
    """
    The pending work of one compilation.

    Attributes:
        overrides: by type and title of the resource, which is not declared yet.
        collectors: all of them, because each finds more when further resources are declared.
        relationships: the links of chains, which are written into the resources at the end.
    """

    def __init__(self) -> None:
        self.overrides: dict[tuple[str, str], list[Override]] = {}
        self.collectors: list[ResourceCollector | Realizer] = []
        self.relationships: list[RelationshipEdge] = []

    def add_override(self, compilation: CompilationView, override: Override) -> None:
        """Apply an override now, or store it until its resource is declared."""
        resource = compilation.catalog.find(*override.reference)
        if resource is not None:
            apply_override(compilation, resource, override)
        else:
            self.overrides.setdefault(override.reference, []).append(override)

    def apply_overrides(self, compilation: CompilationView, resource: DeclaredResource) -> None:
        """Apply the overrides that waited for `resource`."""
        for override in self.overrides.pop((resource.type, resource.title), ()):
            apply_override(compilation, resource, override)

    def run_collectors(self, compilation: CompilationView) -> bool:
        """Evaluate all collectors once; return whether one found something new."""
        has_new = False
        for collector in list(self.collectors):
            if collector.evaluate(compilation):
                has_new = True
        return has_new

    def check_done(self) -> None:
        """
        Check that nothing waits any more.

        Raises:
            EvaluationError: an override, or a `realize`, names a resource that was never declared; the error has no place.
        """
        if self.overrides:
            references = [f"{type_}[{title}]" for (type_, title), overrides in self.overrides.items() for _ in overrides]
            raise EvaluationError(f"Could not find resource(s) {', '.join(references)} for overriding", where=FINAL)
        unresolved = [reference for collector in self.collectors for reference in collector.unresolved()]
        if unresolved:
            error = unresolved_error(unresolved)
            error.where = FINAL
            raise error
