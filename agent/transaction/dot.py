"""A run's graphs as Graphviz files, for `--graph`: resources.dot, relationships.dot, expanded_relationships.dot, cycles.dot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from shared.filesystem.files import make_directory
from shared.ral.catalog import RalCatalog
from shared.settings import AgentSettings

from .graph import Graph, Node, sort_key


def graph_directory(settings: AgentSettings) -> Path | None:
    """Return the directory for graphs, created if need be; None without the setting `graph`. Blocks."""
    if not settings.graph:
        return None
    make_directory(settings.graphdir, mode=0o750)
    return settings.graphdir


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


def _document(name: str, nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> str:
    parts = [f"digraph {name} {{", f'    label = "{name}"']
    for node in nodes:
        parts += [f"    {_quoted(node)} [", "        fontsize = 8,", f"        label = {_quoted(node)}", "    ]", ""]
    for source, target in edges:
        parts += [f"    {_quoted(source)} -> {_quoted(target)} [", "        fontsize = 8", "    ]", ""]
    return "\n".join([*parts, "}"]) + "\n"


def containment(resources: RalCatalog) -> str:
    """Return a graph of the containment of resources."""

    def edges() -> Iterator[tuple[str, str]]:
        for container in resources.order:
            for child in resources.children(container):
                yield str(container.ref), str(child.ref)

    return _document("Resources", (str(resource.ref) for resource in resources.order), edges())


def ordering(graph: Graph, name: str) -> str:
    """Return a graph of the order of resources; `name` is Relationships, or Expanded_relationships once containers are anchors."""
    edges = ((sort_key(source), sort_key(target)) for source in graph.nodes for target in graph.dependents(source))
    return _document(name, map(sort_key, graph.nodes), edges)


def cycles(graph: Graph, components: Sequence[Sequence[Node]]) -> str:
    """Return a graph with one path through each cycle."""
    ways = [" -> ".join(_quoted(str(node)) for node in graph.path_in(cycle)) for cycle in components]
    return "\n".join(["digraph Resource_Cycles {", '  label = "Resource Cycles"', *ways, "}"]) + "\n"
