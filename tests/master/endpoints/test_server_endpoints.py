"""The endpoints that puppetserver has of its own: who is let in, and how they answer. What they answer is tested beside puppetserver."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from environments.code_commands import CodeCommands
from master.catalogs.v4_request import CatalogRequest
from master.endpoints.limits import MasterLimits
from master.endpoints.puppetserver import ServerEndpoints
from shared.errors import CompileError, NotFound, PuppetError, Unavailable
from tests.support.fakes import KnownEnvironments
from tests.support.raw_master import RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]

RULES = """authorization: { version: 1, rules: [
  { name: "tools", sort-order: 100, match-request: { path: "/puppet", type: path }, allow: "tool" } ] }
"""
CLASSES, MODULES = "/puppet/v3/environment_classes", "/puppet/v3/environment_modules"
CATALOG = "/puppet/v4/catalog"
ALL = (CATALOG, CLASSES, MODULES, "/puppet/v3/environment_transports", "/puppet/v3/plans", "/puppet/v3/plans/a/b", "/puppet/v3/compile")


class Lists:
    """Lists that are nothing but their questions; `fail` is raised when it is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.fail: PuppetError | None = None
        self.task: dict[str, Any] = {}

    async def __call__(self, what: str, environment: str = "", module: str = "", name: str = "") -> bytes:
        self.asked.append((what, environment, module, name) if module else (what, environment))
        if self.fail is not None:
            raise self.fail
        return json.dumps(self.task).encode() if what == "task" else f"{what} of {environment}".encode()


class Catalogs:
    """Catalogs that are nothing but what is wanted."""

    def __init__(self) -> None:
        self.wanted: list[CatalogRequest] = []

    async def find(self, wanted: CatalogRequest) -> bytes:
        self.wanted.append(wanted)
        return b'{"catalog":{}}'


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
def catalogs() -> Catalogs:
    return Catalogs()


@pytest.fixture
def endpoints(lists: Lists, catalogs: Catalogs) -> ServerEndpoints:
    return ServerEndpoints(KnownEnvironments(), lists, catalogs, MasterLimits(max_facts_body=5000))


@pytest.fixture
async def site(serve: Serve, endpoints: ServerEndpoints, tmp_path: Path) -> AsyncIterator[RunningMaster]:
    rules = tmp_path / "auth.conf"
    rules.write_text(RULES)
    async with serve(parts=[endpoints], auth_conf=rules) as master:
        yield master


@pytest.mark.parametrize("path", ALL)
async def test_nobody_is_let_in_without_a_rule_of_the_site(
    serve: Serve, endpoints: ServerEndpoints, lists: Lists, catalogs: Catalogs, path: str
) -> None:
    method = "POST" if path in (CATALOG, "/puppet/v3/compile") else "GET"
    async with serve(parts=[endpoints]) as master:
        for name in (None, "agent1"):
            answer = await (await master.client(name)).ask(method, f"{path}?environment=production", b"{}" if method == "POST" else b"")
            assert answer.status == 403
            assert answer.text == f"Forbidden request: {path} (method :{method.lower()}). Please see the server logs for details."
    assert lists.asked == [] and catalogs.wanted == []


async def test_a_rule_lets_in_whom_it_names(site: RunningMaster, lists: Lists) -> None:
    assert (await (await site.client("other")).ask("GET", f"{CLASSES}?environment=production")).status == 403
    assert lists.asked == []
    assert (await (await site.client("tool")).ask("GET", f"{CLASSES}?environment=production")).status == 200
    assert lists.asked == [("classes", "production")]


async def test_classes_have_the_hash_of_the_list_as_their_tag(site: RunningMaster, lists: Lists) -> None:
    tool = await site.client("tool")
    answer = await tool.ask("GET", f"{CLASSES}?environment=production")
    tag = hashlib.sha256(b"classes of production").hexdigest()
    assert (answer.body, answer.headers["content-type"], answer.headers["etag"]) == (b"classes of production", "application/json", tag)
    for known in (tag, f"{tag}--gzip"):
        same = await tool.ask("GET", f"{CLASSES}?environment=production", If_None_Match=known)
        assert (same.status, same.headers["etag"], "content-type" in same.headers) == (304, tag, False)
    for known in (f'"{tag}"', "*", "x", f"{tag}, x"):
        assert (await tool.ask("GET", f"{CLASSES}?environment=production", If_None_Match=known)).status == 200
    assert len(lists.asked) == 7  # the list is made each time: a tag is never of what was


async def test_modules_are_those_of_one_environment_or_of_all(site: RunningMaster, lists: Lists) -> None:
    tool = await site.client("tool")
    answer = await tool.ask("GET", f"{MODULES}?environment=production")
    assert (answer.body, answer.headers["content-type"]) == (b"modules of production", "application/json;charset=utf-8")
    assert (await tool.ask("GET", MODULES)).body == b"modules of "


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        (CLASSES, 400, "An environment parameter must be specified"),
        (f"{CLASSES}?environment=", 400, "The environment must be purely alphanumeric, not ''"),
        (f"{CLASSES}?environment=a-b", 400, "The environment must be purely alphanumeric, not 'a-b'"),
        (f"{MODULES}?environment=..%2F..", 400, "The environment must be purely alphanumeric, not '../..'"),
        (f"{CLASSES}?environment=production&environment=x", 400, "The parameter environment appears more than once"),
        (f"{CLASSES}?environment=nowhere", 404, "Could not find environment 'nowhere'"),
        (f"{MODULES}?environment=nowhere", 404, "Could not find environment 'nowhere'"),
    ],
)
async def test_errors_are_bare_text(site: RunningMaster, lists: Lists, target: str, status: int, message: str) -> None:
    answer = await (await site.client("tool")).ask("GET", target)
    assert (answer.status, answer.text) == (status, message)
    assert answer.headers.get("content-type") == (None if status == 404 else "text/plain;charset=utf-8")
    assert lists.asked == []


@pytest.mark.parametrize("name", ["environment_transports", "environment_transports/x", "compile"])
async def test_what_is_not_there_is_named(site: RunningMaster, name: str) -> None:
    answer = await (await site.client("tool")).ask("POST" if name == "compile" else "GET", f"/puppet/v3/{name}?environment=production")
    assert answer.status == 404 and answer.text.startswith(f"/puppet/v3/{name} is not served here: ")


async def test_other_methods_are_not_allowed(site: RunningMaster, lists: Lists) -> None:
    answer = await (await site.client("tool")).ask("POST", f"{CLASSES}?environment=production")
    assert (answer.status, answer.text) == (405, "Only GET is allowed here")
    assert lists.asked == []


async def test_what_goes_wrong_behind_it_is_told_as_text(site: RunningMaster, lists: Lists) -> None:
    tool = await site.client("tool")
    lists.fail = Unavailable("5 catalogs wait to be compiled", retry_after=7)
    busy = await tool.ask("GET", MODULES)
    assert (busy.status, busy.headers["retry-after"], busy.text) == (503, "7", "5 catalogs wait to be compiled")
    lists.fail = CompileError("The list took longer than compile_timeout")
    broken = await tool.ask("GET", MODULES)
    assert (broken.status, broken.text) == (500, "Internal Server Error: The list took longer than compile_timeout")
    lists.fail = NotFound("Could not find environment 'production'")
    gone = await tool.ask("GET", f"{MODULES}?environment=production")
    assert (gone.status, gone.text) == (404, "Could not find environment 'production'")


@pytest.mark.parametrize(
    "path", ["/puppet/v3/environment_classesx", "/puppet/v3/%65nvironment_classes", "/puppet/v3/x/environment_classes"]
)
async def test_no_other_spelling_is_an_endpoint(site: RunningMaster, lists: Lists, path: str) -> None:
    assert (await (await site.client("tool")).ask("GET", f"{path}?environment=production")).status == 404
    assert lists.asked == []


async def test_tasks_are_for_every_node_and_no_stranger(serve: Serve, endpoints: ServerEndpoints, lists: Lists) -> None:
    async with serve(parts=[endpoints]) as master:
        assert (await (await master.client(None)).ask("GET", "/puppet/v3/tasks?environment=production")).status == 403
        assert lists.asked == []
        assert (await (await master.client("agent1")).ask("GET", "/puppet/v3/tasks?environment=production")).status == 200


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("tasks", ("tasks", "production")),
        ("tasks/m/t", ("task", "production", "m", "t")),
        ("plans", ("plans", "production")),
        ("plans/m/p", ("plan", "production", "m", "p")),
    ],
)
async def test_tasks_and_plans_are_listed_and_described(site: RunningMaster, lists: Lists, path: str, asked: tuple[str, ...]) -> None:
    lists.task = {"files": []}
    answer = await (await site.client("tool")).ask("GET", f"/puppet/v3/{path}?environment=production")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json;charset=utf-8")
    assert lists.asked == [asked]


@pytest.mark.parametrize("path", ["tasks/", "tasks/m", "tasks/m/", "tasks/m/t/x", "plans//p"])
async def test_there_is_nothing_else_below_tasks_and_plans(site: RunningMaster, lists: Lists, path: str) -> None:
    assert (await (await site.client("tool")).ask("GET", f"/puppet/v3/{path}?environment=production")).status == 404
    assert lists.asked == []


async def test_what_is_wrong_with_a_task_is_an_error_of_its_kind(site: RunningMaster, lists: Lists) -> None:
    lists.task = {"error": {"kind": "puppet.tasks/invalid-file", "msg": "m", "details": {}}}
    answer = await (await site.client("tool")).ask("GET", "/puppet/v3/tasks/m/t?environment=production")
    assert (answer.status, answer.headers["content-type"]) == (500, "application/json;charset=utf-8")
    assert json.loads(answer.body) == {"kind": "puppet.tasks/invalid-file", "msg": "m", "details": {}}


TASK = b"echo task\n"
PLACES = {
    "t.sh": ["modules", "m", "tasks", "t.sh"],
    "m/files/a/b": ["modules", "m", "files", "a/b"],
    "m/lib/c.rb": ["modules", "m", "lib", "c.rb"],
    "m/scripts/d": ["modules", "m", "scripts", "d"],
}
SERVED = {"t.sh": "tasks/m/t.sh", "m/files/a/b": "modules/m/a/b", "m/lib/c.rb": "plugins/c.rb", "m/scripts/d": "scripts/m/d"}


@pytest.mark.parametrize("version", ["", "as it was", "another", "none"])
async def test_files_of_a_task_are_had_by_version_where_they_are_as_at_that(
    serve: Serve, lists: Lists, catalogs: Catalogs, tmp_path: Path, version: str
) -> None:
    printed = {"as it was": f"printf '{TASK.decode()}'", "another": "echo other", "none": "exit 1"}
    program = tmp_path / "content"
    program.write_text(f"#!/bin/sh\n{printed.get(version, '')}\n")
    program.chmod(0o755)
    identify = tmp_path / "id"
    identify.write_text("#!/bin/sh\necho v1\n")
    identify.chmod(0o755)
    code = CodeCommands.of(str(identify), str(program), timeout=10, most=1000) if version else None
    digest = hashlib.sha256(TASK).hexdigest()
    lists.task = {
        "metadata": {},
        "name": "m::t",
        "files": [{"filename": name, "sha256": digest, "size_bytes": 10, "place": place} for name, place in PLACES.items()],
    }
    endpoints = ServerEndpoints(KnownEnvironments(), lists, catalogs, MasterLimits(), code)
    async with serve(parts=[endpoints]) as master:
        answer = await (await master.client("agent1")).ask("GET", "/puppet/v3/tasks/m/t?environment=production")
    found = json.loads(answer.body)["files"]
    assert [list(each) for each in found] == [["filename", "sha256", "size_bytes", "uri"]] * 4
    if version == "as it was":
        params = {"environment": "production", "code_id": "v1"}
        assert [each["uri"]["path"] for each in found] == [f"/puppet/v3/static_file_content/{'/'.join(each)}" for each in PLACES.values()]
    else:
        params = {"environment": "production"}
        assert {each["filename"]: each["uri"]["path"] for each in found} == {
            name: f"/puppet/v3/file_content/{path}" for name, path in SERVED.items()
        }
    assert all(each["uri"]["params"] == params for each in found)


ASKED: dict[str, Any] = {"certname": "web1", "persistence": {"facts": False, "catalog": False}, "environment": "production"}


async def test_a_catalog_is_asked_for_with_nothing_but_what_must_be(site: RunningMaster, catalogs: Catalogs) -> None:
    answer = await (await site.client("tool")).ask("POST", CATALOG, json.dumps(ASKED).encode())
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/json", b'{"catalog":{}}')
    assert catalogs.wanted == [CatalogRequest("web1", "production")]


async def test_a_catalog_is_asked_for_with_everything_there_is(site: RunningMaster, catalogs: Catalogs) -> None:
    asked = {
        **ASKED,
        "persistence": {"facts": True, "catalog": True},
        "facts": {"values": {"role": "web"}},
        "trusted_facts": {"values": {"certname": "t"}},
        "job_id": "7",
        "transaction_uuid": "u",
        "options": {"capture_logs": True, "log_level": "err", "prefer_requested_environment": True},
    }
    answer = await (await site.client("tool")).ask("POST", CATALOG, json.dumps(asked).encode(), Content_Type="application/json")
    assert answer.status == 200
    assert catalogs.wanted == [
        CatalogRequest(
            "web1", "production", {"role": "web"}, {"certname": "t"}, save_facts=True, save_catalog=True, prefer_environment=True,
            log_level="err", transaction_uuid="u", job_id="7",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "level"),
    [({"capture_logs": True}, "info"), ({"capture_logs": False, "log_level": "debug"}, ""), ({"log_level": "debug"}, ""), ({}, "")],
)
async def test_the_log_comes_along_only_for_who_wants_it(
    site: RunningMaster, catalogs: Catalogs, options: dict[str, Any], level: str
) -> None:
    assert (await (await site.client("tool")).ask("POST", CATALOG, json.dumps({**ASKED, "options": options}).encode())).status == 200
    assert catalogs.wanted[0].log_level == level


LONG = "longer than nineteen characters"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"certname": 5}, '{"certname" (not (instance? java.lang.String 5))}'),
    ({"certname": None}, '{"certname" (not (instance? java.lang.String nil))}'),
    ({"certname": ["a", 1]}, '{"certname" (not (instance? java.lang.String ["a" 1]))}'),
    ({"certname": {"a": True}}, '{"certname" (not (instance? java.lang.String {"a" true}))}'),
    ({"certname": [[]]}, '{"certname" (not (instance? java.lang.String a-clojure.lang.PersistentVector))}'),
    ({"environment": "a-b"}, '{"environment" (not (puppetlabs.services.master.master-core/valid-env-name? "a-b"))}'),
    ({"environment": LONG}, '{"environment" (not (puppetlabs.services.master.master-core/valid-env-name? a-java.lang.String))}'),
    ({"persistence": 5}, '{"persistence" (not (map? 5))}'),
    (
        {"persistence": {"facts": "yes"}},
        '{"persistence" {"facts" (not (instance? java.lang.Boolean "yes")), "catalog" missing-required-key}}',
    ),
    ({"facts": {"values": []}}, '{"facts" {"values" (not (map? []))}}'),
    ({"facts": {"values": {}, "name": "x"}}, '{"facts" {"name" disallowed-key}}'),
    ({"trusted_facts": None}, '{"trusted_facts" (not (map? nil))}'),
    ({"options": {"log_level": "notice"}}, '{"options" {"log_level" (not (#{"warning" "err" "info" "debug"} "notice"))}}'),
    ({"options": {"log_level": []}}, '{"options" {"log_level" (not (#{"warning" "err" "info" "debug"} []))}}'),
    ({"extra": 1, "more": 2}, '{"extra" disallowed-key, "more" disallowed-key}'),
]


@pytest.mark.parametrize(("change", "wrong"), WRONG, ids=lambda each: str(each) if isinstance(each, dict) else "")
async def test_a_body_of_another_shape_is_refused_in_puppetservers_words(
    site: RunningMaster, catalogs: Catalogs, change: dict[str, Any], wrong: str
) -> None:
    answer = await (await site.client("tool")).ask("POST", CATALOG, json.dumps(ASKED | change).encode())
    assert (answer.status, answer.text) == (400, f"Invalid input: {wrong}")
    assert catalogs.wanted == []


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 400, "Invalid input: (not (map? nil))"),
        (b"[]", 400, "Invalid input: (not (map? []))"),
        (b"{", 400, "Error parsing JSON: Not JSON: "),
        (b'{"certname": "a", "certname": "b"}', 400, "Error parsing JSON: The key 'certname' appears twice in one object"),
        (b"\xff", 400, "Error parsing JSON: Not JSON: byte 0 is not UTF-8"),
        (b'{"certname": "\\ud800"}', 400, "Error parsing JSON: Not JSON: a string holds half of a pair of escapes"),
        (b"[" * 4000, 400, "Error parsing JSON: Not JSON"),
        (b"{%s}" % b",".join(b'"%04d":1' % n for n in range(500)), 400, 'Invalid input: {"certname" missing-required-key'),
        (b" " * 5001, 413, "The body is larger than 5000 bytes"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(site: RunningMaster, catalogs: Catalogs, body: bytes, status: int, text: str) -> None:
    answer = await (await site.client("tool")).ask("POST", CATALOG, body)
    assert answer.status == status and answer.text.startswith(text) and len(answer.body) < 2100
    assert catalogs.wanted == []


async def test_who_may_not_ask_for_a_catalog_is_told_so_before_the_body_is_read(site: RunningMaster, catalogs: Catalogs) -> None:
    answer = await (await site.client("other")).ask("POST", CATALOG, b"{")
    assert answer.status == 403 and catalogs.wanted == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
async def test_catalogs_of_given_facts_are_for_post_only(site: RunningMaster, catalogs: Catalogs, method: str) -> None:
    assert (await (await site.client("tool")).ask(method, CATALOG)).status == 405
    assert catalogs.wanted == []
