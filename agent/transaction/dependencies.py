"""Failed dependencies of nodes, and the log lines about them when a node is skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from shared.ral import Type

from .graph import ContainerAnchor, Graph, Node
from .status import EvaluationStatus


@dataclass(eq=False, repr=False)
class FailedDependencies:
    """
    Failures, propagated along the graph as far as it has been walked.

    Args:
        log: Receives level, message, node.
        container_of: Returns the class or define around a resource.
        merged: Log the failed dependencies of a class once, not for each resource in it (merge_dependency_warnings).
    """

    status_of: Callable[[Type], EvaluationStatus]
    log: Callable[[str, str, Node], None]
    container_of: Callable[[Type], Type | None]
    _: KW_ONLY
    merged: bool
    _failures: dict[Node, dict[Type, None]] = field(default_factory=dict, init=False)
    # By the reference that labels their anchors.
    _failures_of_containers: dict[str, dict[Type, None]] = field(default_factory=dict, init=False)
    _logged: set[Type] = field(default_factory=set, init=False)
    _logged_of_class: set[Type] = field(default_factory=set, init=False)

    def failures_before(self, graph: Graph, node: Node) -> Mapping[Type, None]:
        """Return the failed ones among a node's dependencies, direct or not."""
        failed: dict[Type, None] = {}
        for dependency in graph.dependencies(node):
            failed |= self._failures.get(dependency, {})
            if isinstance(dependency, Type):
                status = self.status_of(dependency)
                if status.failed or status.failed_to_restart:
                    failed[dependency] = None
        return failed

    def propagate_to(self, graph: Graph, node: Node) -> None:
        """Propagate the failures of a node's dependencies to the node, which is about to be evaluated."""
        if failed := dict(self.failures_before(graph, node)):
            self._failures[node] = failed
            if isinstance(node, ContainerAnchor):
                self._failures_of_containers[node.label] = failed

    def __contains__(self, node: Node) -> bool:
        return node in self._failures

    def log_skip(self, node: Node) -> None:
        """Log why a node is skipped."""
        if self.merged:
            self._log_failures_of_class(node)
        elif isinstance(node, Type):
            self._log_failures(node, "Dependency")
            self.log("warning", "Skipping because of failed dependencies", node)

    def _log_failures(self, node: Node, word: str) -> None:
        for dependency in self._failures[node]:
            if dependency not in self._logged:
                self._logged.add(dependency)
                failed = "true" if self.status_of(dependency).failed else "false"
                self.log("notice", f"{word} {dependency} has failures: {failed}", node)

    def _log_failures_of_class(self, node: Node) -> None:
        if isinstance(node, ContainerAnchor):
            self._log_failures(node, "Class dependency")
            return
        container = self.container_of(node)
        of_container = self._failures_of_containers.get(str(container.ref)) if container is not None else None
        if container is None or of_container is None:
            self.log("warning", "Skipping because of failed dependencies", node)
            return
        for dependency in of_container:
            if dependency not in self._logged_of_class:
                self._logged_of_class.add(dependency)
                self.log("warning", "Skipping resources in class because of failed class dependencies", container)
