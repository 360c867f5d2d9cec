"""The endpoints that puppetserver has of its own: who is let in, and how they answer. What they answer is tested beside puppetserver."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from master.http.server_endpoints import ServerEndpoints
from master.testing import RunningMaster
from shared.errors import CompileError, NotFound, PuppetError, Unavailable
from shared.testing import KnownEnvironments

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]

RULES = """authorization: { version: 1, rules: [
  { name: "tools", sort-order: 100, match-request: { path: "/puppet", type: path }, allow: "tool" } ] }
"""
CLASSES, MODULES = "/puppet/v3/environment_classes", "/puppet/v3/environment_modules"
ALL = (CLASSES, MODULES, "/puppet/v3/environment_transports", "/puppet/v3/tasks", "/puppet/v3/plans/a/b", "/puppet/v3/compile")


class Lists:
    """Lists that are nothing but their questions; `fail` is raised when it is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fail: PuppetError | None = None

    async def __call__(self, what: str, environment: str = "") -> bytes:
        self.asked.append((what, environment))
        if self.fail is not None:
            raise self.fail
        return f"{what} of {environment}".encode()


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
async def site(serve: Serve, lists: Lists, tmp_path: Path) -> AsyncIterator[RunningMaster]:
    rules = tmp_path / "auth.conf"
    rules.write_text(RULES)
    async with serve(server_endpoints=ServerEndpoints(KnownEnvironments(), lists), auth_conf=rules) as master:
        yield master


@pytest.mark.parametrize("path", ALL)
async def test_nobody_is_let_in_without_a_rule_of_the_site(serve: Serve, lists: Lists, path: str) -> None:
    async with serve(server_endpoints=ServerEndpoints(KnownEnvironments(), lists)) as master:
        for name in (None, "agent1"):
            answer = await (await master.client(name)).ask("GET", f"{path}?environment=production")
            assert answer.status == 403
            assert answer.text == f"Forbidden request: {path} (method :get). Please see the server logs for details."
    assert lists.asked == []


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
        (f"{CLASSES}?environment=production&environment=x", 400, "The parameter environment stands more than once"),
        (f"{CLASSES}?environment=nowhere", 404, "Could not find environment 'nowhere'"),
        (f"{MODULES}?environment=nowhere", 404, "Could not find environment 'nowhere'"),
    ],
)
async def test_errors_are_bare_text(site: RunningMaster, lists: Lists, target: str, status: int, message: str) -> None:
    answer = await (await site.client("tool")).ask("GET", target)
    assert (answer.status, answer.text) == (status, message)
    assert answer.headers.get("content-type") == (None if status == 404 else "text/plain;charset=utf-8")
    assert lists.asked == []


@pytest.mark.parametrize("name", ["environment_transports", "tasks", "tasks/a/b", "plans", "plans/a/b", "compile"])
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
