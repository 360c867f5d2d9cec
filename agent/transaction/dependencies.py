"""Failed dependencies of nodes, and the log lines about them when a node is skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.ral import Type

from .graph import ContainerAnchor, Graph, Node
from .status import EvaluationStatus


class FailedDependencies:
    """
    Failures, propagated along the graph as far as it has been walked.

    Args:
        log: Receives level, message, node.
        container_of: Returns the class or define around a resource.
        merged: Log the failed dependencies of a class once, not for each resource in it (merge_dependency_warnings).
    """

    def __init__(
        self,
        status_of: Callable[[Type], EvaluationStatus],
        log: Callable[[str, str, Node], None],
        container_of: Callable[[Type], Type | None],
        *,
        merged: bool,
    ) -> None:
        self._status_of = status_of
        self._log = log
        self._container_of = container_of
        self._merged = merged
        self._failures: dict[Node, dict[Type, None]] = {}
        self._failures_of_containers: dict[str, dict[Type, None]] = {}  # by the reference that labels their anchors
        self._logged: set[Type] = set()
        self._logged_of_class: set[Type] = set()

    def failures_before(self, graph: Graph, node: Node) -> Mapping[Type, None]:
        """Return the failed ones among a node's dependencies, direct or not."""
        failed: dict[Type, None] = {}
        for dependency in graph.dependencies(node):
            failed |= self._failures.get(dependency, {})
            if isinstance(dependency, Type):
                status = self._status_of(dependency)
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
        if self._merged:
            self._log_failures_of_class(node)
        elif isinstance(node, Type):
            self._log_failures(node, "Dependency")
            self._log("warning", "Skipping because of failed dependencies", node)

    def _log_failures(self, node: Node, word: str) -> None:
        for dependency in self._failures[node]:
            if dependency not in self._logged:
                self._logged.add(dependency)
                failed = "true" if self._status_of(dependency).failed else "false"
                self._log("notice", f"{word} {dependency} has failures: {failed}", node)

    def _log_failures_of_class(self, node: Node) -> None:
        if isinstance(node, ContainerAnchor):
            self._log_failures(node, "Class dependency")
            return
        container = self._container_of(node)
        of_container = self._failures_of_containers.get(str(container.ref)) if container is not None else None
        if container is None or of_container is None:
            self._log("warning", "Skipping because of failed dependencies", node)
            return
        for dependency in of_container:
            if dependency not in self._logged_of_class:
                self._logged_of_class.add(dependency)
                self._log("warning", "Skipping resources in class because of failed class dependencies", container)
