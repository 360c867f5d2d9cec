"""Values of attributes: what is accepted, what it becomes, and how a change reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Location, ResourceError
from shared.ral import ABSENT, Ensure, Origin, Param, Property, Ref, Type, Value, displayed, ensurable
from shared.ral.attributes import text_of
from shared.types.exec import Exec
from shared.types.file import File
from shared.types.schedule import Schedule


class Zone(Type, name="zone_", features={"keys": "Can hold keys."}):
    """A type with one of everything."""

    ensure = ensurable()
    name = Param(str, namevar=True)
    email = Property(str, match=r".+@.+")
    masters = Property(str, many=True)
    state_ = Property(str, values=(Value("up", aliases=("on",), event="zone_started", invalidate_refreshes=True), "down"))
    ttl = Property(int)
    file_ = Param(Path, default=Path("/etc/zone"))
    tries = Param(int, default=lambda zone: 2 if zone.ensure == "absent" else 1)
    quick = Param(bool, default=False)
    path = Param(str, many=True)
    data = Param(object)

    def validate(self) -> None:
        if self.quick and self.ttl:
            raise ValueError("quick and ttl exclude each other")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.file_))


def zone(**given: Any) -> Zone:
    return Zone("a.example", given)


def test_attributes_stand_in_puppets_order_and_drop_a_trailing_underscore() -> None:
    names = list(Zone.declaration.attributes)
    assert names[:8] == ["name", "provider", "ensure", "email", "masters", "state", "ttl", "file"]
    assert names[-1] == "stage"


@pytest.mark.parametrize(
    ("given", "attribute", "held"),
    [
        ({}, "name", "a.example"),
        ({"name": "b"}, "name", "b"),
        ({"email": "a@b"}, "email", "a@b"),
        ({"email": ["a@b", "c@d"]}, "email", "a@b"),
        ({"masters": "one"}, "masters", ["one"]),
        ({"masters": ["one", 2]}, "masters", ["one", "2"]),
        ({"state": "on"}, "state_", "up"),
        ({"ttl": "30"}, "ttl", 30),
        ({}, "ttl", None),
        ({"quick": "yes"}, "quick", True),
        ({"quick": True}, "quick", True),
        ({}, "path", []),
        ({"path": "/a"}, "path", ["/a"]),
        ({"data": {"a": [1]}}, "data", {"a": [1]}),
        ({"email": "a@b"}, "ensure", "present"),
        ({}, "ensure", None),
        ({"ensure": "absent"}, "tries", 2),
        ({"file": "/x"}, "file_", Path("/x")),
        ({"require": ["File[/a]", ["Class[a::b]"]]}, "require", [Ref("file", "/a"), Ref("class", "A::B")]),
        ({"noop": "false"}, "noop", False),
        ({}, "loglevel", "notice"),
    ],
)
def test_a_resource_holds_the_converted_value(given: dict[str, Any], attribute: str, held: Any) -> None:
    assert getattr(zone(**given), attribute) == held


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": 1}, "no parameter named 'colour'"),
        ({"email": None}, "Got nil value for email"),
        ({"email": "x"}, 'Parameter email failed on Zone_[a.example]: Invalid value "x". Valid values match /.+@.+/.'),
        ({"state": "sideways"}, 'Parameter state failed on Zone_[a.example]: Invalid value "sideways". Valid values are up, down.'),
        ({"ttl": "soon"}, 'Parameter ttl failed on Zone_[a.example]: Invalid value "soon".'),
        ({"file": "etc"}, "Parameter file failed on Zone_[a.example]: File paths must be fully qualified, not 'etc'"),
        ({"quick": True, "ttl": 3}, "Validation of Zone_[a.example] failed: quick and ttl exclude each other"),
        ({"require": "nonsense"}, "Parameter require failed on Zone_[a.example]: Could not understand the resource reference 'nonsense'"),
        (
            {"audit": "colour"},
            "Parameter audit failed on Zone_[a.example]: Cannot audit colour: not a valid attribute for Zone_[a.example]",
        ),
        ({"name": {"a": 1}}, 'Parameter name failed on Zone_[a.example]: Invalid value {"a"=>1}.'),
    ],
)
def test_a_value_that_is_not_acceptable_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        zone(**given)
    assert caught.value.message == message


def test_the_refusal_carries_the_manifests_place() -> None:
    with pytest.raises(ResourceError, match=r"\(file: /site.pp, line: 3\)$"):
        Zone("a", {"ttl": "x"}, Origin(where=Location("/site.pp", 3)))


def test_a_refused_secret_is_not_in_the_message() -> None:
    with pytest.raises(ResourceError) as caught:
        Zone("a", {"email": "hunter2"}, Origin(sensitive=frozenset({"email"})))
    assert "hunter2" not in str(caught.value)


def test_all_properties_are_audited_when_all_is_asked_for() -> None:
    assert zone(audit="all").audit == ["ensure", "email", "masters", "state", "ttl"]


def test_an_attribute_may_not_hide_the_machinery() -> None:
    with pytest.raises(TypeError, match="declare the attribute as title_"):

        class Bad(Type, name="bad"):
            title = Param(str, namevar=True)  # type: ignore[assignment]


def test_two_namevars_need_title_patterns() -> None:
    class Pair(Type, name="pair"):
        name = Param(str, namevar=True)
        other = Param(str, namevar=True)

    with pytest.raises(ResourceError, match="several namevars"):
        Pair("x", {})


def test_title_patterns_split_a_title_and_given_values_win() -> None:
    class Key(Type, name="key"):
        user = Param(str, namevar=True)
        name = Param(str, namevar=True)

        @classmethod
        def title_patterns(cls) -> Any:
            return [(r"(\w+)/(\w+)", ["user", ("name", str.upper)]), (r"(\w+)", ["name"])]

    assert (Key("root/main", {}).user, Key("root/main", {}).name) == ("root", "MAIN")
    assert Key("root/main", {"name": "own"}).name == "own"
    with pytest.raises(ResourceError, match='No set of title patterns matched the title "a b"'):
        Key("a b", {})


@pytest.mark.parametrize(
    ("current", "wanted", "insync"),
    [
        ({"email": "a@b"}, {"email": "a@b"}, True),
        ({"email": "c@d"}, {"email": ["a@b", "c@d"]}, True),
        ({"email": "x@y"}, {"email": ["a@b", "c@d"]}, False),
        ({}, {"email": "a@b"}, False),
        ({"ttl": "30"}, {"ttl": 30}, True),
    ],
)
def test_a_property_is_in_sync_when_any_wanted_value_is_there(current: dict[str, Any], wanted: dict[str, Any], insync: bool) -> None:
    resource = zone(**wanted)
    (name,) = wanted
    declared = Zone.declaration.attributes[name]
    assert isinstance(declared, Property)
    assert declared.insync(resource, current, resource.wanted(name) or []) is insync


@pytest.mark.parametrize(("current", "insync"), [(["a", "b"], True), (["b", "a"], False), (["a"], False), ("a", False), (ABSENT, False)])
def test_an_array_property_compares_whole_arrays(current: Any, insync: bool) -> None:
    resource = zone(masters=["a", "b"])
    declared = Zone.declaration.attributes["masters"]
    assert isinstance(declared, Property)
    assert declared.insync(resource, {"masters": current}, ["a", "b"]) is insync


@pytest.mark.parametrize(
    ("name", "current", "wanted", "text"),
    [
        ("email", ABSENT, "a@b", "defined 'email' as 'a@b'"),
        ("email", "a@b", ABSENT, "undefined 'email' from 'a@b'"),
        ("email", "a@b", "c@d", "email changed 'a@b' to 'c@d'"),
        ("ttl", 3, 4, "ttl changed 3 to 4"),
        ("masters", ["a"], ["a", "b"], "masters changed ['a'] to ['a', 'b']"),
        ("ensure", ABSENT, "present", "created"),
        ("ensure", "present", ABSENT, "removed"),
        ("ensure", "stopped", "running", "ensure changed 'stopped' to 'running'"),
    ],
)
def test_a_change_reads_as_puppet_prints_it(name: str, current: Any, wanted: Any, text: str) -> None:
    declared = Zone.declaration.attributes[name]
    assert isinstance(declared, Property)
    assert declared.change_text(zone(), current, wanted) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "'x'"),
        ("it's", "'it\\'s'"),
        ("two\nlines", '"two\\nlines"'),
        (5, "5"),
        (True, "true"),
        (1.5, "1.500000"),
        (None, ""),
        ([None, "a"], "[undef, 'a']"),
        (["a", "b"], "['a', 'b']"),
        (b"vm\n", '"vm\\n"'),
        ({"b": [b"hi"]}, "{\n  'b' => ['hi']\n}"),
        (["a", ["b"], 3, 4], "['a',\n  ['b'],\n  3, 4]"),
        ([{"a": 1}, {}], "[\n  {\n    'a' => 1\n  },\n  {\n\n  }]"),
        ([], "[]"),
        ({"a": 1, "b": {"c": "d"}}, "{\n  'a' => 1,\n  'b' => {\n    'c' => 'd'\n  }\n}"),
    ],
)
def test_values_are_displayed_as_puppet_prints_them(value: Any, text: str) -> None:
    assert displayed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"vm\n", "vm\n"),
        (b"\xff", "\udcff"),
        ([b"hi", None, True], '["hi", nil, true]'),
        ({"b": [b"hi", 1.5]}, '{"b"=>["hi", 1.5]}'),
        (False, "false"),
        (None, ""),
    ],
)
def test_values_become_text_as_in_ruby(value: Any, text: str) -> None:
    assert text_of(value) == text


WRONG = {  # as Puppet 7.23 and 8.10 refuse them
    "no implicit conversion of Hash into String": lambda: File("/a", {"content": {"a": 1}}),
    "no implicit conversion of true into String": lambda: File("/a", {"content": True}),
    "no implicit conversion of Array into String": lambda: File("/a", {"content": [[True]]}),
    "The file mode specification must be a string, not 'TrueClass'": lambda: File("/a", {"mode": True}),
    "The file mode specification must be a string, not 'Hash'": lambda: File("/a", {"mode": {"a": 1}}),
    "Command must be a String or Array<String>, got value of class Hash": lambda: Exec("/bin/true", {"command": {"a": 1}}),
    "Command must be a String or Array<String>, got value of class FalseClass": lambda: Exec("/bin/true", {"command": False}),
    "Command must be a String or Array<String>, got value of class Integer": lambda: Exec("/bin/true", {"command": 1}),
    "Invalid range value 'true'": lambda: Schedule("x", {"range": True}),
    "true is not a valid day of the week": lambda: Schedule("x", {"weekday": True}),
    'Invalid backup type {"a"=>nil}': lambda: File("/a", {"backup": {"a": None}}),
    "not a resource reference: true": lambda: File("/a", {"require": True}),
}


@pytest.mark.parametrize("message", WRONG)
def test_no_refusal_shows_a_value_or_a_class_as_python_does(message: str) -> None:
    with pytest.raises(ResourceError, match=re.escape(message)):
        WRONG[message]()


def test_events_are_named_after_type_attribute_or_value() -> None:
    ensure, email, state = (Zone.declaration.attributes[name] for name in ("ensure", "email", "state"))
    assert isinstance(ensure, Ensure) and isinstance(email, Property) and isinstance(state, Property)
    assert [ensure.event_name(zone(), v) for v in ("present", "absent", "other")] == ["zone__created", "zone__removed", "zone__changed"]
    assert email.event_name(zone(), "a@b") == "email_changed"
    assert state.event_name(zone(), "up") == "zone_started"


def test_a_read_only_property_cannot_be_wanted() -> None:
    class Clock(Type, name="clock"):
        name = Param(str, namevar=True)
        ctime = Property(str, read_only=True)

    with pytest.raises(ResourceError, match="ctime is read-only"):
        Clock("x", {"ctime": "now"})
