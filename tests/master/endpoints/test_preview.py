"""Previews over HTTP: who may ask, what is no question, how many run at the same time, and what a client sees of errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from master.endpoints.preview import PreviewEndpoint, PreviewQuestion
from shared.errors import BadName, BadRequest, NotFound
from tests.support.raw_master import RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
URL = "/puppet/v1/preview"
QUESTION = {"from": "production", "to": "feature", "all": True}
BODY = json.dumps(QUESTION).encode()
JSON = {"Content_Type": "application/json"}


def endpoint(*lines: bytes | Exception, begun: asyncio.Event | None = None, go_on: asyncio.Event | None = None) -> PreviewEndpoint:
    """An endpoint whose previews have these lines, one preview at a time; when it is `begun` they wait for `go_on`."""

    async def made(question: PreviewQuestion) -> AsyncIterator[bytes]:
        for line in lines:
            if begun is not None and go_on is not None:
                begun.set()
                await go_on.wait()
            if isinstance(line, Exception):
                raise line
            yield line

    return PreviewEndpoint(made, most=1)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "auth.conf"
    path.write_text("path /puppet/v1/preview\nauth yes\nallow agent1\n")
    return path


async def test_nobody_may_ask_until_a_rule_says_who(serve: Serve, rules: Path) -> None:
    async with serve(parts=[endpoint(b"{}\n")]) as master:
        assert (await (await master.client("agent1")).ask("POST", URL, BODY, **JSON)).status == 403
    async with serve(parts=[endpoint(b"{}\n")], auth_conf=rules) as master:
        for name, status in (("agent1", 200), ("agent2", 403), (None, 403)):
            assert (await (await master.client(name)).ask("POST", URL, BODY, **JSON)).status == status
        assert (await (await master.client("agent1")).ask("GET", URL)).status == 405


async def test_a_master_that_makes_none_has_no_such_endpoint(serve: Serve, rules: Path) -> None:
    async with serve(auth_conf=rules) as master:
        assert (await (await master.client("agent1")).ask("POST", URL, BODY, **JSON)).status == 404


async def test_lines_are_sent_as_they_are_made(serve: Serve, rules: Path) -> None:
    async with serve(parts=[endpoint(b'{"node":"a"}\n', b'{"result":{}}\n')], auth_conf=rules) as master:
        answer = await (await master.client("agent1")).ask("POST", URL, BODY, **JSON)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.body.splitlines()] == [{"node": "a"}, {"result": {}}]


async def test_an_error_before_the_first_line_is_the_answer_and_one_after_it_cuts_it(serve: Serve, rules: Path) -> None:
    async with serve(parts=[endpoint(NotFound("Could not find environment 'feature'"))], auth_conf=rules) as master:
        answer = await (await master.client("agent1")).ask("POST", URL, BODY, **JSON)
        assert answer.status == 404 and "Could not find environment 'feature'" in answer.text
    async with serve(parts=[endpoint(b"{}\n", OSError("the disk is gone"))], auth_conf=rules) as master:
        with pytest.raises((EOFError, OSError)):
            await (await master.client("agent1")).ask("POST", URL, BODY, **JSON)


async def test_beyond_the_bound_previews_are_turned_away_until_one_has_ended(serve: Serve, rules: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with serve(parts=[endpoint(b"1\n", b"2\n", begun=begun, go_on=go_on)], auth_conf=rules) as master:
        first, second = await master.client("agent1"), await master.client("agent1")
        asked = asyncio.create_task(first.ask("POST", URL, BODY, **JSON))
        await begun.wait()
        refused = await second.ask("POST", URL, BODY, **JSON)
        assert (refused.status, refused.headers["retry-after"]) == (503, "60")
        go_on.set()
        assert (await asked).body == b"1\n2\n"
        assert (await second.ask("POST", URL, BODY, **JSON)).status == 200


def test_the_environment_is_called_as_the_side_that_is_compared_unless_it_is_said() -> None:
    assert PreviewQuestion.of(QUESTION) == PreviewQuestion("production", "feature", "production", all=True)
    asked = {"from": "a", "to": "b", "environment": "c", "nodes": ["web1", "web2", "web1"]}
    assert PreviewQuestion.of(asked) == PreviewQuestion("a", "b", "c", names=("web1", "web2"))
    assert PreviewQuestion.of({**QUESTION, "classification": "current"}).classification == "current"
    assert PreviewQuestion.of({"from": "a", "to": "b", "query": "nodes {}"}).query == "nodes {}"


@pytest.mark.parametrize(
    "change",
    [
        {"all": False},
        {"all": "yes"},
        {"nodes": ["web1"]},
        {"nodes": "web1", "all": False},
        {"nodes": [1], "all": False},
        {"query": 5, "all": False},
        {"classification": "none"},
        {"classification": []},
        {"from": 5},
        {"repo": "/etc"},
        {"facts": {}},
    ],
    ids=str,
)
def test_what_is_no_question_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        PreviewQuestion.of({**QUESTION, **change})


@pytest.mark.parametrize("data", [None, [], "x"])
def test_what_is_no_object_is_refused(data: Any) -> None:
    with pytest.raises(BadRequest):
        PreviewQuestion.of(data)


@pytest.mark.parametrize(
    "change", [{"from": "/etc"}, {"to": "../x"}, {"to": ""}, {"environment": "a b"}, {"all": False, "nodes": ["../x"]}]
)
def test_folders_and_other_names_reach_no_file(change: dict[str, Any]) -> None:
    with pytest.raises(BadName):
        PreviewQuestion.of({**QUESTION, **change})
