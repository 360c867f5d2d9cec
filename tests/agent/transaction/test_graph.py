"""The order of a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from agent.transaction.graph import ALL_EVENTS, EVENTS, NONE, ContainerAnchor, Graph, Note, Walk, describe_cycles, expand, relationships
from shared.ral import Param, Ref, Type
from shared.ral.catalog import RalCatalog
from shared.ral.components import Component


class Step(Type, name="step"):
    name = Param(str, namevar=True)
    near = Param(str, many=True)
    ahead = Param(str, many=True)

    def autorequire(self) -> Iterator[Ref]:
        return (Ref("step", name) for name in self.near)

    def autobefore(self) -> Iterator[Ref]:
        return (Ref("step", name) for name in self.ahead)


def steps(**given: dict[str, object]) -> RalCatalog:
    resources = RalCatalog({"step": Step})
    for title, attributes in given.items():
        resources.add(Step(title, attributes))
    return resources


def quiet(resource: Type, message: str) -> None:
    pass


def build(resources: RalCatalog, note: Note) -> Graph:
    """Return the graph of a catalog as a transaction walks it, with anchors for containers."""
    graph = relationships(resources, note)
    expand(graph, resources)
    return graph


def order(resources: RalCatalog) -> str:
    """The titles in the order in which they come; containers as `(name` and `name)`."""
    walk = Walk(build(resources, quiet))
    found = []
    while (node := walk.next()) is not None:
        found.append(node.title if isinstance(node, Type) else f"{node.label}>" if node.completed else f"<{node.label}")
        walk.finish(node)
    return " ".join(found)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"c": {}, "a": {}, "b": {}}, "c a b"),
        ({"a": {"require": "Step[b]"}, "b": {}}, "b a"),
        ({"a": {}, "b": {"before": "Step[a]"}}, "b a"),
        ({"a": {"subscribe": "Step[c]"}, "b": {}, "c": {}}, "b c a"),
        ({"a": {"near": "b"}, "b": {}}, "b a"),
        ({"a": {}, "b": {"ahead": "a"}}, "b a"),
        ({"a": {"near": "b"}, "b": {"require": "Step[a]"}}, "a b"),
        ({"a": {"near": "a"}}, "a"),
        ({"a": {"near": "nosuch"}}, "a"),
        ({"last": {"require": ["Step[x]", "Step[y]"]}, "x": {"require": "Step[y]"}, "y": {}}, "y x last"),
    ],
)
def test_the_first_ready_resource_in_the_manifests_order_comes_next(given: dict[str, dict[str, object]], expected: str) -> None:
    assert order(steps(**given)) == expected


def test_an_automatic_edge_against_an_explicit_one_is_dropped_with_a_note() -> None:
    notes: list[str] = []
    build(steps(a={"near": "b"}, b={"require": "Step[a]", "near": "a"}), lambda resource, message: notes.append(f"{resource}: {message}"))
    assert notes == ["Step[a]: Skipping automatic relationship with Step[b]"]


def contained() -> RalCatalog:
    resources = steps(first={"before": "Class[A]"}, x={}, y={}, last={"require": "Class[A]"})
    outer, inner = Component(Ref("class", "a"), {}), Component(Ref("class", "b"), {})
    resources.add(outer)
    resources.add(inner)
    resources.contain(outer, inner)
    for title, container in (("x", outer), ("y", inner)):
        found = resources.find(Ref("step", title))
        assert found is not None
        resources.contain(container, found)
    return resources


def test_a_container_is_a_pair_of_anchors_around_its_contents() -> None:
    assert order(contained()) == "first <Class[A] x <Class[B] y Class[B]> Class[A]> last"


def test_events_flow_through_containers_but_plain_order_carries_none() -> None:
    graph = build(contained(), quiet)
    labels = {(str(source), str(target)): label for source in graph.nodes for target, label in graph.edges_from(source)}
    assert labels["Step[y]", "Class[B]"] == EVENTS
    assert labels["Class[A]", "Step[last]"].event == NONE
    assert EVENTS.carries("anything") and EVENTS.event == ALL_EVENTS and not labels["Class[A]", "Step[last]"].carries("anything")


def test_an_empty_container_passes_the_order_on() -> None:
    resources = steps(last={"require": "Class[E]"}, first={"before": "Class[E]"})
    resources.add(Component(Ref("class", "e"), {}))
    assert order(resources) == "first <Class[E] Class[E]> last"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": {"require": "Step[b]"}, "b": {"require": "Step[a]"}}, "Found 1 dependency cycle:\n(Step[a] => Step[b] => Step[a])\\n"),
        ({"a": {"require": "Step[a]"}}, "Found 1 dependency cycle:\n(Step[a] => Step[a])\\n"),
        (
            {
                "a": {"require": "Step[b]"},
                "b": {"require": "Step[a]"},
                "x": {"require": "Step[z]"},
                "y": {"require": "Step[x]"},
                "z": {"require": "Step[y]"},
            },
            "Found 2 dependency cycles:\n(Step[a] => Step[b] => Step[a])\\n(Step[x] => Step[y] => Step[z] => Step[x])\\n",
        ),
    ],
)
def test_cycles_are_described_with_a_path(given: dict[str, dict[str, object]], expected: str) -> None:
    graph = build(steps(**given), quiet)
    assert describe_cycles(graph, graph.cycles()).startswith(expected)


def test_a_dense_cycle_is_described_in_time() -> None:
    """AG-10: a hostile catalog must not make the search for a path explode."""
    every = [f"s{n}" for n in range(40)]
    graph = build(steps(**{one: {"require": [f"Step[{other}]" for other in every if other != one]} for one in every}), quiet)
    (cycle,) = graph.cycles()
    assert len(cycle) == 40 and len(graph.path_in(cycle)) == 3


def test_a_chain_of_ten_thousand_needs_no_recursion() -> None:
    graph = Graph()
    nodes = [ContainerAnchor(str(n), False) for n in range(10_000)]
    for node in nodes:
        graph.add(node)
    for one, other in pairwise(nodes):
        graph.link(one, other)
    assert graph.cycles() == []
    graph.link(nodes[-1], nodes[0])
    (cycle,) = graph.cycles()
    assert len(graph.path_in(cycle)) == 10_001


def test_what_is_added_while_walking_comes_right_behind_its_parent() -> None:
    resources = steps(a={}, b={})
    graph = build(resources, quiet)
    walk = Walk(graph)
    first = walk.next()
    assert isinstance(first, Type)
    children = [Step(title, {}) for title in ("a1", "a2")]
    for child in children:
        graph.add(child, graph.priority_within(first))
        graph.link(first, child)
    walk.recount()
    walk.finish(first)
    found = []
    while (node := walk.next()) is not None:
        assert isinstance(node, Type)
        found.append(node.title)
        walk.finish(node)
    assert found == ["a1", "a2", "b"]


FOLLOWING = [
    ({"a": {}, "b": {}, "c": {}}, "a", "b c"),
    ({"a": {}, "b": {}, "other": {}, "c": {}}, "a", "b"),
    ({"a": {}, "b": {"require": "Step[a]"}, "c": {}}, "a", ""),
    ({"a": {}, "b": {}, "c": {"require": "Step[a]"}, "d": {}}, "a", "b"),
    ({"a": {}, "b": {}, "c": {"require": "Step[b]"}, "d": {}}, "a", "b"),
    ({"a": {}, "b": {}, "c": {"require": ["Step[a]", "Step[z]"]}, "d": {}, "z": {}}, "a", "b d z"),
    ({"a": {}, "b": {}, "z": {"require": ["Step[a]", "Step[b]"]}}, "a", "b"),
    ({"z": {"require": "Step[a]"}, "a": {}, "b": {}}, "a", ""),
]


@pytest.mark.parametrize(("given", "first", "expected"), FOLLOWING)
def test_what_follows_is_what_comes_next_with_nothing_that_is_freed_meanwhile(
    given: dict[str, dict[str, object]], first: str, expected: str
) -> None:
    walk = Walk(build(steps(**given), quiet))
    node = walk.next()
    assert isinstance(node, Type) and node.title == first
    row = walk.successors(node, lambda each: isinstance(each, Type) and len(each.title) == 1, limit=9)
    assert walk.successors(node, lambda each: True, limit=0) == []
    assert " ".join(each.title for each in row if isinstance(each, Type)) == expected
    # Looking has changed nothing: the row is what then comes.
    walk.finish(node)
    for each in row:
        assert walk.next() is each
        walk.finish(each)
