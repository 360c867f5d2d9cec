from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.errors import BadData, BadRequest, ConfigError, PeerAnswered, PuppetError, Unsupported
from shared.indirector import Binding, Client, Indirection, Indirector, Model, NotAuthorizedByTerminus, Request, Terminus, request_for
from shared.indirector.plugins import PluginContext, find_plugins, indirection_of, terminus_of
from shared.indirector.rest import Answer, OpenAnswer, Rest
from shared.indirector.routes import Route, read_routes
from shared.indirector.termini import CodeTerminus, ExecTerminus, Json, WriteOnlyYaml, Yaml
from shared.models.file_content import FILE_CONTENT, FileContent
from shared.models.node import NODE, Node
from shared.testing import Shelf
from shared.wire.dialects import LEGACY, MODERN, Dialect

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Thing(Model):
    colour: str = "red"


THING = Indirection(name="thing", model=Thing, ruby_class="Puppet::Node", expires=True)


def binding(terminus: Terminus[Thing], cache: Terminus[Thing] | None = None) -> Binding[Thing]:
    return Binding(THING, terminus, cache=cache, ttl=timedelta(minutes=30), now=lambda: NOON)


async def test_find_does_not_ask_the_terminus_when_the_cache_has_a_fresh_one() -> None:
    shelf: Shelf[Thing] = Shelf()
    found = await binding(shelf, Shelf(Thing(name="a"))).find("a")
    assert found is not None and found.name == "a"
    assert shelf.asked == []


async def test_find_asks_the_terminus_when_the_cached_one_has_expired() -> None:
    old = Thing(name="a", colour="old", expiration=NOON - timedelta(seconds=1))
    cache = Shelf(old)
    found = await binding(Shelf(Thing(name="a", colour="new")), cache).find("a")
    assert found is not None and found.colour == "new"
    assert cache.instances["a"].colour == "new"


async def test_find_sets_an_expiration_and_fills_the_cache() -> None:
    cache: Shelf[Thing] = Shelf()
    found = await binding(Shelf(Thing(name="a")), cache).find("a")
    assert found is not None and found.expiration == NOON + timedelta(minutes=30)
    assert cache.instances["a"] == found


async def test_a_cache_that_fails_is_a_miss() -> None:
    class Broken(Shelf[Thing]):
        async def find(self, request: Request[Thing]) -> Thing | None:
            raise OSError("disk")

    assert await binding(Shelf(Thing(name="a")), Broken()).find("a") is not None


async def test_what_a_full_cache_cannot_take_is_found_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    class Full(Shelf[Thing]):
        async def save(self, request: Request[Thing]) -> object:
            raise OSError("No space left on device")

    assert await binding(Shelf(Thing(name="a")), Full()).find("a") is not None
    assert "Could not cache thing for a: No space left on device" in caplog.text


async def test_ignore_cache_asks_the_terminus_and_still_fills_the_cache() -> None:
    cache = Shelf(Thing(name="a", colour="old"))
    found = await binding(Shelf(Thing(name="a", colour="new")), cache).find("a", ignore_cache=True)
    assert found is not None and found.colour == "new"
    assert cache.instances["a"].colour == "new"


async def test_ignore_cache_save_leaves_the_cache_alone() -> None:
    cache: Shelf[Thing] = Shelf()
    await binding(Shelf(Thing(name="a")), cache).find("a", ignore_cache_save=True)
    assert cache.instances == {}


async def test_ignore_terminus_finds_only_what_the_cache_has() -> None:
    shelf = Shelf(Thing(name="a"))
    assert await binding(shelf, Shelf()).find("a", ignore_terminus=True) is None
    assert shelf.asked == []


async def test_search_never_asks_the_cache() -> None:
    cache = Shelf(Thing(name="b"))
    found = await binding(Shelf(Thing(name="a")), cache).search("*")
    assert [each.name for each in found or []] == ["a"]


async def test_save_stores_in_terminus_and_cache() -> None:
    shelf: Shelf[Thing] = Shelf()
    cache: Shelf[Thing] = Shelf()
    await binding(shelf, cache).save(Thing(name="a"))
    assert "a" in shelf.instances and "a" in cache.instances


async def test_saving_under_another_name_is_refused() -> None:
    with pytest.raises(BadRequest, match='Instance name "b" does not match requested key "a"'):
        await binding(Shelf()).save(Thing(name="b"), key="a")


async def test_destroy_removes_from_terminus_and_cache() -> None:
    shelf, cache = Shelf(Thing(name="a")), Shelf(Thing(name="a"))
    await binding(shelf, cache).destroy("a")
    assert shelf.instances == cache.instances == {}


async def test_expire_makes_the_cached_copy_stale() -> None:
    cache = Shelf(Thing(name="a"))
    joined = binding(Shelf(), cache)
    await joined.expire("a")
    assert cache.instances["a"].expiration == NOON - timedelta(seconds=60)
    assert await joined.find("a") is None


async def test_filter_is_for_the_caller_and_not_for_the_cache() -> None:
    class Painting(Shelf[Thing]):
        def filter(self, instance: Thing, request: Request[Thing]) -> Thing:
            return instance.model_copy(update={"colour": "filtered"})

    cache: Shelf[Thing] = Shelf()
    found = await binding(Painting(Thing(name="a")), cache).find("a")
    assert found is not None and found.colour == "filtered"
    assert cache.instances["a"].colour == "red"


async def test_head_is_true_for_what_the_cache_or_the_terminus_has() -> None:
    assert await binding(Shelf(), Shelf(Thing(name="a"))).head("a")
    assert await binding(Shelf(Thing(name="b")), Shelf()).head("b")
    assert not await binding(Shelf(), Shelf()).head("c")


async def test_a_terminus_may_refuse_a_remote_caller_but_no_local_one() -> None:
    class Closed(Shelf[Thing]):
        def authorized(self, verb: str, request: Request[Thing]) -> bool:
            return False

    closed = binding(Closed(Thing(name="a")))
    with pytest.raises(NotAuthorizedByTerminus, match="Not authorized to call find on /thing/a"):
        await closed.find(Request(key="a", client=Client("n", "127.0.0.1", True)))
    assert await closed.find("a") is not None


@pytest.mark.parametrize("verb", ["find", "search", "save", "destroy"])
async def test_a_verb_that_a_terminus_does_not_have_is_named(verb: str) -> None:
    with pytest.raises(Unsupported, match=f"cannot {verb}"):
        await getattr(Terminus(), verb)(Request(key="a"))


@pytest.mark.parametrize(
    ("key", "plain", "target"),
    [
        ("puppet:///modules/x/a%20b", "modules/x/a b", ("puppet", "", None)),
        ("puppet://host:8141/mount/x", "mount/x", ("puppet", "host", 8141)),
        ("file:///a/b", "/a/b", ("file", "", None)),
        ("https://h/x", "https://h/x", ("https", "h", None)),
    ],
)
def test_a_key_that_is_a_uri_is_taken_apart(key: str, plain: str, target: tuple[Any, ...]) -> None:
    request = request_for(key)
    assert request.key == plain
    assert request.target is not None
    assert (request.target.protocol, request.target.host, request.target.port) == target


def test_options_are_typed_where_they_are_read() -> None:
    request = request_for("a", recurse=True, recurselimit=3, ignore=["x", "y"], nothing=None)
    assert (request.flag("recurse"), request.number("recurselimit"), request.many("ignore")) == (True, 3, ["x", "y"])
    assert request.options.keys() == {"recurse", "recurselimit", "ignore"}
    for name, value in [("recurse", "maybe"), ("recurselimit", "-5"), ("recurselimit", "9" * 30), ("recurselimit", "٣")]:
        bad: Request[Thing] = Request(key="a", options={name: value})
        with pytest.raises(BadRequest):
            bad.flag(name) if name == "recurse" else bad.number(name)


def test_remote_options_pass_an_allow_list() -> None:
    indirection = Indirection(name="x", model=Thing, options=frozenset({"links", "facts.*"}))
    options: dict[str, Any] = {"links": "x", "facts.a": "1", "node": "other", "bucket_path": "/etc"}
    assert indirection.allowed(options) == {"links": "x", "facts.a": "1"}


def test_an_indirector_gives_its_bindings_by_name() -> None:
    things = binding(Shelf())
    indirector = Indirector([things])
    assert indirector["thing"] is things and indirector.thing is things and list(indirector) == ["thing"]


# --- generic termini


@pytest.mark.parametrize("cls", [Yaml, Json])
async def test_files_hold_what_was_saved(tmp_path: Path, cls: type[Yaml[Thing]]) -> None:
    things = binding(cls(THING, tmp_path / "things"))
    assert await things.find("a") is None
    assert await things.search("*") == []
    await things.save(Thing(name="a", colour="blue"))
    await things.save(Thing(name="b"))
    found = await things.find("a")
    assert found is not None and found.colour == "blue"
    assert [each.name for each in await things.search("*") or []] == ["a", "b"]
    assert await things.head("a")
    assert await things.destroy("a") is True
    assert await things.destroy("a") is False


async def test_yaml_on_disk_carries_rubys_class(tmp_path: Path) -> None:
    await binding(Yaml(THING, tmp_path)).save(Thing(name="a"))
    assert (tmp_path / "a.yaml").read_text().startswith("--- !ruby/object:Puppet::Node\nname: a\n")


async def test_write_only_yaml_finds_nothing(tmp_path: Path) -> None:
    things = binding(WriteOnlyYaml(THING, tmp_path))
    await things.save(Thing(name="a"))
    assert (tmp_path / "a.yaml").exists() and await things.find("a") is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"name": 5}', b"\x00" * 10])
async def test_a_file_that_does_not_parse_counts_as_missing(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "a.json").write_bytes(body)
    assert await binding(Json(THING, tmp_path)).find("a") is None


@pytest.mark.parametrize("key", ["../a", "/etc/passwd", "a/b", "..", "a\x00"])
async def test_a_key_cannot_leave_the_folder(tmp_path: Path, key: str) -> None:
    for terminus in (Yaml(THING, tmp_path), Json(THING, tmp_path)):
        with pytest.raises(BadRequest):
            await binding(terminus).find(key)


async def test_code_makes_instances() -> None:
    assert await binding(CodeTerminus(lambda request: Thing(name=request.key, colour="made"))).find("x") == Thing(
        name="x", colour="made", expiration=NOON + timedelta(minutes=30)
    )


class Printed(ExecTerminus[Thing]):
    def instance(self, request: Request[Thing], output: bytes) -> Thing | None:
        return Thing(name=request.key, colour=output.decode().strip())


async def test_exec_hands_the_key_over_as_one_argument() -> None:
    found = await binding(Printed(["/bin/echo", "colour:"])).find("a; id")
    assert found is not None and found.colour == "colour: a; id"


async def test_exec_that_prints_nothing_finds_nothing() -> None:
    assert await binding(Printed(["/bin/true"])).find("a") is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((), "You must set the 'external_nodes' parameter"),
        (("echo",), "You must set the 'external_nodes' parameter"),
        (("/bin/false",), "Failed to find a via exec: Execution of '/bin/false a' returned 1"),
        (("/bin/sh", "-c", "yes"), "printed more than"),
        (("/bin/sh", "-c", "sleep 20"), "did not end within"),
        (("/no/such/program",), "No such file"),
    ],
)
async def test_exec_that_fails_is_an_error_and_not_an_empty_answer(command: tuple[str, ...], message: str) -> None:
    with pytest.raises(PuppetError, match=message):
        await binding(Printed(command, timeout=0.2, most=1000)).find("a")


async def test_exec_refuses_a_key_that_looks_like_an_option() -> None:
    with pytest.raises(PuppetError, match="option"):
        await binding(Printed(["/bin/echo"])).find("--help")


# --- REST


@dataclass
class Wire:
    """A transport that answers from a list and keeps what was asked."""

    answers: list[Answer]
    speaks: Dialect = MODERN
    asked: list[tuple[str, str, dict[str, str], bytes | None]] = field(default_factory=list)

    async def dialect(self) -> Dialect:
        return self.speaks

    async def send(self, outgoing: Any, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        self.asked.append((outgoing.method, outgoing.target, dict(headers), body))
        return self.answers.pop(0)

    async def open(self, outgoing: Any, headers: Mapping[str, str], body: AsyncIterator[bytes] | None = None) -> OpenAnswer:
        return Opened(await self.send(outgoing, headers, None))


class Opened:
    def __init__(self, answer: Answer) -> None:
        self.status, self.headers, self.body = answer.status, answer.headers, answer.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def read(self) -> bytes:
        return self.body


def answer(body: bytes, *, status: int = 200, kind: str = "application/json;charset=utf-8") -> Answer:
    return Answer(status, {"content-type": kind}, body)


async def test_the_same_find_asks_a_peer_in_scheme_b() -> None:
    wire = Wire([answer(b'{"name":"web1","environment":"test","parameters":{"a":1}}')])
    found = await Binding(NODE, Rest(NODE, wire)).find("web1", environment="test")
    assert found is not None and found.parameters == {"a": 1}
    method, target, headers, body = wire.asked[0]
    assert (method, target, body) == ("GET", "/puppet/v3/node/web1?environment=test", None)
    assert headers == {"Accept": "application/json, text/pson"}


async def test_the_same_find_asks_a_peer_in_scheme_a() -> None:
    wire = Wire([answer(b'{"document_type":"Node","data":{"name":"web1","parameters":{}}}', kind="text/pson")], speaks=LEGACY)
    found = await Binding(NODE, Rest(NODE, wire)).find("web1", environment="test")
    assert found is not None and found.name == "web1"
    assert wire.asked[0][1] == "/test/node/web1"
    assert wire.asked[0][2]["Accept"].startswith("pson, ")


async def test_a_404_is_none_unless_asked_to_fail() -> None:
    gone = answer(b'{"message":"Not Found: Could not find node x","issue_kind":"RESOURCE_NOT_FOUND"}', status=404)
    nodes = Binding(NODE, Rest(NODE, Wire([gone, gone])))
    assert await nodes.find("x") is None
    with pytest.raises(PeerAnswered, match="resulted in 404 with the message: Not Found: Could not find node x"):
        await nodes.find("x", fail_on_404=True)


async def test_an_error_says_what_the_server_said() -> None:
    nodes = Binding(
        NODE, Rest(NODE, Wire([answer(b'{"message":"Server Error: boom"}', status=500), answer(b"boom", status=400, kind="text/plain")]))
    )
    for expected in ("Error 500 on SERVER: Server Error: boom", "Error 400 on SERVER: boom"):
        with pytest.raises(PeerAnswered) as caught:
            await nodes.find("x")
        assert str(caught.value) == expected


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"name":1}', b"{" * 1000])
async def test_an_answer_that_is_no_node_is_bad_data(body: bytes) -> None:
    with pytest.raises(BadData):
        await Binding(NODE, Rest(NODE, Wire([answer(body)]))).find("x")


async def test_save_puts_the_default_form() -> None:
    wire = Wire([answer(b'["store"]')])
    assert await Binding(NODE, Rest(NODE, wire)).save(Node(name="a")) == ["store"]
    assert wire.asked[0][0] == "PUT" and wire.asked[0][2]["Content-Type"] == "application/json"


async def test_a_stream_comes_in_chunks_with_its_size() -> None:
    wire = Wire([Answer(200, {"content-type": "application/octet-stream", "content-length": "3"}, b"abc")])
    found = await Binding(FILE_CONTENT, Rest(FILE_CONTENT, wire)).find("modules/a/b")
    assert isinstance(found, FileContent) and found.size == 3
    assert b"".join([chunk async for chunk in found.chunks()]) == b"abc"


# --- routes and plugins


def test_routes_are_read_per_application(tmp_path: Path) -> None:
    path = tmp_path / "routes.yaml"
    path.write_text("master:\n  facts: {terminus: yaml, cache: json}\nserver:\n  node: {cache: }\nagent:\n  catalog: {terminus: rest}\n")
    assert read_routes(path, "master") == {"facts": Route("yaml", "json"), "node": Route(None, "")}
    assert read_routes(path, "agent") == {"catalog": Route("rest", None)}
    assert read_routes(path, "apply") == {}
    assert read_routes(tmp_path / "none", "agent") == {}


@pytest.mark.parametrize(
    "text", ["- a", "agent: [1]", "agent: {facts: x}", "agent: {facts: {terminus: 5}}", "agent: {facts: {foo: x}}", "a: ["]
)
def test_a_broken_routes_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "routes.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"Could not configure routes from .*routes\.yaml"):
        read_routes(path, "agent")


PLUGIN = """
from shared.indirector import Indirection, Model, Terminus

class Weather(Model):
    sky: str = "blue"

INDIRECTION = Indirection(name="weather", model=Weather)

class Window(Terminus[Weather]):
    def __init__(self, context):
        self.place = context.settings["place"]
    async def find(self, request):
        return Weather(name=request.key, sky=f"grey over {self.place}")
"""


async def test_a_module_brings_an_indirection_and_its_terminus(tmp_path: Path) -> None:
    folder = tmp_path / "puppet" / "indirector" / "weather"
    folder.mkdir(parents=True)
    (folder / "window.py").write_text(PLUGIN)
    plugins = find_plugins([tmp_path])
    plugin = plugins["weather", "window"]
    indirection = indirection_of(plugin)
    assert indirection is not None
    found = await Binding(indirection, terminus_of(plugin, PluginContext({"place": "town"}))).find("now")
    assert found is not None and found.to_data(MODERN) == {"name": "now", "sky": "grey over town"}


def test_a_folder_of_plugins_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, pattern: str) -> None:  # root may read everything
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "glob", refused)
    with pytest.raises(ConfigError, match=rf"plugins in {tmp_path}: Permission denied") as caught:
        find_plugins([tmp_path])
    assert f"chmod 0755 {tmp_path}" in caught.value.hint


@pytest.mark.parametrize("text", ["1/0", "x = 1", "import no_such_module_at_all"])
def test_a_plugin_that_does_not_load_is_named(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "puppet" / "indirector" / "node"
    folder.mkdir(parents=True)
    (folder / "broken.py").write_text(text)
    with pytest.raises(ConfigError, match=r"broken\.py"):
        terminus_of(find_plugins([tmp_path])["node", "broken"], PluginContext({}))
