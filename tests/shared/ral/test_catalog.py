"""From a wire catalog to connected resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.data.richdata import WireDeferred, WireSensitive
from shared.errors import BadData, PuppetError, ResourceError
from shared.models.catalog import Catalog
from shared.ral import Param, Property, Ref, Type
from shared.ral.catalog import RalCatalog, resources_of
from shared.ral.components import Component, Unmanaged


class Thing(Type, name="thing"):
    name = Param(str, namevar=True, munge=lambda text: text.rstrip("/"))
    size = Property(int)
    text = Property(object)

    @classmethod
    def title_patterns(cls) -> Any:
        return [(r"(.*?)/*", ["name"])]


class Loose(Type, name="loose", isomorphic=False):
    name = Param(str, namevar=True)


TYPES: dict[str, type[Type]] = {"thing": Thing, "loose": Loose}


def wire(*resources: dict[str, Any], edges: list[tuple[str, str]] | None = None) -> Catalog:
    links = [{"source": source, "target": target} for source, target in edges or []]
    return Catalog.from_data({"name": "n", "version": 7, "classes": ["a"], "resources": list(resources), "edges": links})


def thing(title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "Thing", "title": title, "tags": ["thing"], "file": "/site.pp", "line": 4, "parameters": parameters}


def made(*resources: dict[str, Any], edges: list[tuple[str, str]] | None = None, **options: Any) -> RalCatalog:
    return resources_of(wire(*resources, edges=edges), TYPES, known=frozenset({"package"}), **options)


def test_resources_keep_the_catalogs_order_and_containment() -> None:
    resources = made(
        {"type": "Stage", "title": "main", "kind": "class"},
        {"type": "Class", "title": "main", "kind": "class"},
        {"type": "Apache::Vhost", "title": "x", "kind": "defined_type", "parameters": {"port": 80}},
        thing("b"),
        thing("a"),
        edges=[("Stage[main]", "Class[main]"), ("Class[main]", "Apache::Vhost[x]"), ("Apache::Vhost[x]", "Thing[b]")],
    )
    assert [str(r.ref) for r in resources.order] == ["Stage[main]", "Class[Main]", "Apache::Vhost[x]", "Thing[b]", "Thing[a]"]
    assert resources.path_of(resources.order[3]) == ["Stage[main]", "Main", "Apache::Vhost[x]", "Thing[b]"]
    assert isinstance(resources.find(Ref("apache::vhost", "x")), Component)
    assert (resources.version, resources.classes) == (7, ["a"])


def test_a_resource_is_found_by_title_name_alias_and_by_what_a_title_names() -> None:
    resources = made(thing("first", name="/n", alias=["other"]), thing("/d/"))
    first, second = resources.order
    assert [resources.find(Ref("thing", title)) for title in ("first", "/n", "other", "/n/")] == [first] * 4
    assert [resources.find(Ref("thing", title)) for title in ("/d/", "/d")] == [second] * 2
    assert resources.find(Ref("thing", "/e")) is None


def test_two_resources_may_not_name_the_same_thing() -> None:
    with pytest.raises(ResourceError) as caught:
        made(thing("a"), thing("b", name="a"))
    assert caught.value.message == (
        'Cannot alias Thing[b] to ["a"] at (file: /site.pp, line: 4); resource ["Thing", "a"] already declared (file: /site.pp, line: 4)'
    )


def test_resources_of_a_type_that_is_not_isomorphic_may_share_a_name() -> None:
    loose = {"type": "Loose", "parameters": {"name": "same"}}
    assert len(made(loose | {"title": "a"}, loose | {"title": "b"}).order) == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"require": "Thing[b]"}, "Could not find dependency Thing[b] for Thing[a]"),
        ({"notify": ["Thing[b]"]}, "Could not find dependent Thing[b] for Thing[a]"),
    ],
)
def test_a_catalog_with_a_relationship_that_leads_nowhere_is_refused_whole(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(PuppetError) as caught:
        made(thing("a", **parameters))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "x"}, 'Parameter size failed on Thing[a]: Invalid value "x".'),
        ({"colour": 1}, "no parameter named 'colour'"),
        ({"text": {"__ptype": "Nonsense"}}, "Rich data of the kind 'Nonsense' cannot be applied"),
        ({"text": {"__ptype": "Pcore::IntegerType", "from": {}}}, "A type that is malformed: 'Pcore::IntegerType'"),
        ({"text": {"__ptype": "Deferred", "name": "f"}}, "Deferred values cannot be resolved by this agent"),
    ],
)
def test_a_catalog_with_a_wrong_resource_is_refused_whole(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        made(thing("a", **parameters), thing("b"))
    assert caught.value.message == message


def test_a_type_that_fails_in_an_unforeseen_way_is_one_error_without_a_secret() -> None:
    class Buggy(Type, name="buggy"):
        name = Param(str, namevar=True)
        text = Param(object)

        def validate(self) -> None:
            raise KeyError(self.text)

    catalog = wire({"type": "Buggy", "title": "a", "parameters": {"text": "canary"}, "sensitive_parameters": ["text"]}, thing("b"))
    with pytest.raises(ResourceError, match="KeyError") as caught:
        resources_of(catalog, TYPES | {"buggy": Buggy})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("kind", [{"kind": "compilable_type"}, {}])
def test_a_type_that_only_other_systems_have_becomes_a_resource_that_fails(kind: dict[str, str]) -> None:
    """AG-09: never skipped in silence, also when an old master does not say what is a type."""
    unmanaged, thing_ = made({"type": "Package", "title": "p", **kind}, thing("a")).order
    assert isinstance(unmanaged, Unmanaged) and unmanaged.fault is not None
    assert unmanaged.fault.message == "The type 'package' is not supported by this agent yet"
    assert thing_.fault is None


@pytest.mark.parametrize("kind", [{"kind": "compilable_type"}, {}])
def test_a_catalog_with_an_unknown_type_is_refused_whole(kind: dict[str, str]) -> None:
    with pytest.raises(ResourceError) as caught:
        made(thing("a"), {"type": "Firewall", "title": "p", **kind})
    assert caught.value.message == "Could not find resource type 'firewall'"


def test_a_define_of_an_old_master_is_known_by_its_name_or_contents() -> None:
    resources = made({"type": "My::Define", "title": "x"}, {"type": "Site", "title": "y"}, thing("a"), edges=[("Site[y]", "Thing[a]")])
    assert all(isinstance(r, Component) for r in resources.order[:2])


def test_virtual_resources_are_left_out() -> None:
    assert made(thing("a") | {"virtual": True}).order == []


def test_secrets_are_unwrapped_and_marked() -> None:
    (resource,) = made(thing("a", text={"k": {"__ptype": "Sensitive", "__pvalue": "s"}}) | {"sensitive_parameters": ["size"]}).order
    assert resource.value_of("text") == {"k": "s"}
    assert resource.is_sensitive("text") and resource.is_sensitive("size") and not resource.is_sensitive("name")


def test_deferred_values_are_resolved_inside_out() -> None:
    def resolve(call: WireDeferred) -> Any:
        return f"{call.name}({', '.join(map(str, call.arguments))})"

    inner = {"__ptype": "Deferred", "name": "g", "arguments": [1]}
    deferred = {"__ptype": "Sensitive", "__pvalue": {"__ptype": "Deferred", "name": "f", "arguments": [inner, "x"]}}
    (resource,) = made(thing("a", text=deferred), resolve=resolve).order
    assert resource.value_of("text") == "f(g(1), x)" and resource.is_sensitive("text")


SECRET = {"__ptype": "Sensitive", "__pvalue": "s"}


def call(name: str, *arguments: Any) -> dict[str, Any]:
    return {"__ptype": "Deferred", "name": name, "arguments": list(arguments)}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("value", "plain", "is_secret"),
    [
        (call("unwrap", SECRET), "s", True),
        (call("unwrap", call("unwrap", SECRET)), "s", True),
        (call("size", [{"k": [SECRET]}]), 1, True),
        (call("size", {"__ptype": "Hash", "__pvalue": [SECRET, 1]}), 1, True),
        ({"k": [call("unwrap", SECRET)]}, {"k": ["s"]}, True),
        (call("size", call("vault")), 1, True),
        (call("size", call("unwrap", call("vault"))), 1, True),
        (call("size", "s"), 1, False),
    ],
    ids=["an argument", "of an inner call", "deep inside", "a key", "in a hash", "a result", "of a result", "nothing"],
)
def test_what_is_made_of_something_sensitive_is_secret(value: Any, plain: Any, is_secret: bool, late: bool) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "vault": lambda: WireSensitive("v"),
        "unwrap": lambda value: value.value if isinstance(value, WireSensitive) else value,
        "size": lambda value: 1,
    }

    def resolve(call: WireDeferred) -> Any:
        return functions[call.name](*call.arguments)

    (resource,) = made(thing("a", text=value), resolve=resolve, late=late).order
    resource.resolve_pending()
    assert resource.value_of("text") == plain and resource.is_sensitive("text") is is_secret


def test_defaults_are_added_where_the_catalog_has_none() -> None:
    resources = made(thing("a"), defaults=[Thing("a", {}), Thing("z", {})])
    assert [str(r) for r in resources.order] == ["Thing[a]", "Thing[z]"]


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        (wire(thing("a"), thing("a")), "is in the catalog twice"),
        (wire(thing("a"), edges=[("Class[x]", "Thing[a]")]), "Could not find relationship source Class"),
    ],
)
def test_a_catalog_that_does_not_hang_together_is_refused(catalog: Catalog, message: str) -> None:
    with pytest.raises(BadData, match=message):
        resources_of(catalog, TYPES)


def test_containers_that_contain_each_other_do_not_hang_a_path() -> None:
    """AG-10"""
    loop = [{"type": "Class", "title": title, "kind": "class"} for title in ("a", "b")]
    resources = made(*loop, edges=[("Class[a]", "Class[b]"), ("Class[b]", "Class[a]")])
    assert resources.path_of(resources.order[0]) == ["B", "A"]


@pytest.mark.slow
def test_a_chain_of_ten_thousand_containers_has_a_path() -> None:
    """AG-10"""
    deep = [{"type": "Class", "title": f"c{n}", "kind": "class"} for n in range(10_000)]
    resources = made(*deep, edges=[(f"Class[c{n}]", f"Class[c{n + 1}]") for n in range(9_999)])
    assert len(resources.path_of(resources.order[-1])) == 10_000
