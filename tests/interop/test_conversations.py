"""What puppet agent 8.10 and puppetserver 8.7 say to each other, beside what our agent and our master say to them: recorded, compared."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import pytest

from tests.interop.peers import PUPPET_8, OtherAgent
from tests.interop.puppetserver import PUPPETSERVER_8, started
from tests.interop.recorder import Exchange, Message, Recorder
from tests.support.codings import decode
from tests.support.processes import OurAgent, RealAgent, master

pytestmark = [
    pytest.mark.works_with("HTTP exchanges, compared message by message", "7.23 and 8.10 with puppetserver"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPETSERVER_8.why_not()), reason=PUPPETSERVER_8.why_not()),
]

OF_ALL_ANSWERS = {"date", "x-puppet-version"}  # the one moment, the other what each claims to be
OF_TRANSPORT = {"content-encoding", "content-length", "transfer-encoding", "vary", "connection", "last-modified"}
OF_A_MOMENT = ("version", "catalog_uuid")
OF_A_DISK = ("owner", "group", "path")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Two runs of an agent. `words` stands for what has another name with each."""

    exchanges: Sequence[Exchange]
    words: dict[str, str]

    def first(self, method: str, part: str) -> Exchange:
        return next(each for each in self.exchanges if each.method == method and part in each.path)

    def same(self, text: str) -> str:
        """A text with the words that all have in common."""
        for word, common in self.words.items():
            text = text.replace(word, common)
        return text

    def json(self, message: Message) -> Any:
        return json.loads(self.same(decode(message.body, message.headers).decode()))


@dataclass(frozen=True, slots=True)
class Side:
    """Somebody who serves: the real one or ours."""

    port: int
    ssl: Path
    environments: Path


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, Side]]:
    """puppetserver, and our master with the same environments and the same programs for their versions."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-"))) for name in ("server", "master")]
        server = stack.enter_context(started(folders[0], PUPPETSERVER_8))
        programs = {"code_id_command": str(server.root / "id"), "code_content_command": str(server.root / "content")}
        process = stack.enter_context(master(folders[1] / "master", autosign="true", **programs))
        environments = server.root / "code" / "environments"
        shutil.copytree(environments, process.site.parent)
        process.start()
        yield {
            "theirs": Side(server.port, server.root / "ssl", environments),
            "ours": Side(process.port, process.ca.parent, process.site.parent),
        }


Record = Callable[[str, str], Recorded]


@pytest.fixture(scope="module", params=["plain", "production"], ids=["catalogs", "static catalogs"])
def record(sides: dict[str, Side], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Record:
    """Lets an agent (theirs, ours) run twice against a side (theirs, ours) in the environment; what was said is remembered."""
    environment: str = request.param
    base = tmp_path_factory.mktemp(environment)

    @cache
    def recorded(whose_agent: str, whose_server: str) -> Recorded:
        side, root = sides[whose_server], base / f"{whose_agent}-{whose_server}"
        root.mkdir()
        name, facts = f"{whose_agent}-{environment}.example.com", {"stage_root": str(root / "stage")}
        agent: RealAgent | OurAgent = OurAgent(root, 0, name, facts=facts)
        if whose_agent == "theirs":
            agent = OtherAgent(root, 0, name, facts, PUPPET_8)
        with Recorder(side.port, side.ssl, agent).running() as relay:
            agent.port = relay.port
            first, second = (agent.test("--environment", environment) for _ in range(2))
            assert (first.code, second.code) == (2, 0), first.text + second.text
            words = {str(root): "ROOT", str(side.environments): "CODE", name: "NAME", f"localhost:{relay.port}": "SERVER"}
            return Recorded(relay.exchanges(), words)

    return recorded


def lines(recorded: Recorded) -> list[str]:
    """Each exchange: method, path, the names in its query, status, and the types of both bodies."""
    return [
        recorded.same(f"{each.method} {each.path}?{'&'.join(sorted({name for name, _ in each.query}))} {each.status} ")
        + " ".join(message.headers.get("content-type", "-").replace(" ", "") for message in (each.request, each.answer))
        for each in recorded.exchanges
    ]


def test_our_master_is_asked_the_same_and_gives_the_same_kind_of_answer(record: Record) -> None:
    theirs, ours = record("theirs", "theirs"), record("theirs", "ours")
    assert len(theirs.exchanges) > 15
    assert lines(ours) == lines(theirs)
    for one, other in zip(theirs.exchanges, ours.exchanges, strict=True):
        assert set(other.request.headers) == set(one.request.headers), one.path
        more = {"etag"} if one.path.startswith("/puppet-ca/") else set()  # of what may be asked for again if it has changed
        assert set(other.answer.headers) - OF_TRANSPORT - more == set(one.answer.headers) - OF_TRANSPORT, one.path
        for name in set(one.answer.headers) - OF_TRANSPORT - OF_ALL_ANSWERS:
            assert other.answer.headers[name].replace(" ", "") == one.answer.headers[name].replace(" ", ""), (one.path, name)


def test_our_catalog_is_theirs(record: Record) -> None:
    def catalog(recorded: Recorded) -> Any:
        found = recorded.json(recorded.first("POST", "/catalog/").answer)
        assert {type(found.pop(name)) for name in OF_A_MOMENT} == {int, str}
        for each in [found, *found["resources"]]:
            each["tags"] = sorted(each.get("tags", []))
        for metadata in entries(found):
            of_no_disk(metadata)
        return found

    def entries(found: Any) -> list[Any]:
        trees = [each for sources in found.get("recursive_metadata", {}).values() for each in sources.values()]
        return [*found.get("metadata", {}).values(), *(entry for tree in trees for entry in tree)]

    theirs, ours = catalog(record("theirs", "theirs")), catalog(record("theirs", "ours"))
    for found in (theirs, ours):
        for sources in found.get("recursive_metadata", {}).values():
            for tree in sources.values():
                tree.sort(key=lambda entry: entry["relative_path"])
    assert ours == theirs


def of_no_disk(metadata: Any) -> None:
    """Takes away what differs between two copies of a file."""
    for name in OF_A_DISK:
        metadata.pop(name, None)
    if metadata["checksum"]["type"] in ("ctime", "mtime"):
        metadata["checksum"]["value"] = "a time"


def test_our_metadata_is_theirs(record: Record) -> None:
    def metadatas(recorded: Recorded) -> list[Any]:
        found = [recorded.json(each.answer) for each in recorded.exchanges if "/file_metadata" in each.path]
        for each in found:
            for metadata in each if isinstance(each, list) else [each]:
                of_no_disk(metadata)
            if isinstance(each, list):
                each.sort(key=lambda metadata: metadata["relative_path"])
        return found

    assert metadatas(record("theirs", "ours")) == metadatas(record("theirs", "theirs")) != []


def test_our_agent_asks_what_theirs_asks(record: Record) -> None:
    """
    Beside theirs it names its environment to the CA also, as masters before 6 want it, and takes PSON, as masters before 5 speak it.
    Whether its environment is there it asks only when plugins do not come. Of listings it wants to know what was left out (`unserved`).
    """
    theirs, ours = record("theirs", "theirs"), record("ours", "theirs")
    theirs = replace(theirs, exchanges=[each for each in theirs.exchanges if ("recurse", "false") not in each.query])
    plain = [line.replace("&unserved ", " ") for line in lines(ours)]
    assert [line.replace("?environment 200", "? 200") if "/puppet-ca/" in line else line for line in plain] == lines(theirs)
    for one, other in zip(theirs.exchanges, ours.exchanges, strict=True):
        assert set(one.request.headers) - set(other.request.headers) == set(), one.path
        assert set(other.request.headers) - set(one.request.headers) <= {"connection"}, one.path
        assert other.request.headers["accept"].replace(", text/pson", "") == one.request.headers["accept"], one.path


def test_our_agent_says_about_itself_what_theirs_says(record: Record) -> None:
    def form(recorded: Recorded) -> dict[str, str]:
        asked = recorded.first("POST", "/catalog/").request.body.decode()
        return {name: recorded.same(values[0]) for name, values in parse_qs(asked).items()}

    theirs, ours = form(record("theirs", "theirs")), form(record("ours", "theirs"))
    assert set(ours) - set(theirs) == {"inline_metadata"} and set(theirs) - set(ours) == set()
    for name in set(theirs) - {"facts", "transaction_uuid"}:
        assert ours[name] == theirs[name], name
    facts = [json.loads(unquote_plus(each["facts"])) for each in (theirs, ours)]
    assert set(facts[0]) == set(facts[1])
    assert set(facts[0]["values"]) - set(facts[1]["values"]) <= {"ruby"}


def test_our_agents_report_has_the_form_of_theirs(record: Record) -> None:
    """Beside theirs it always says which server it used, and which resources needed nothing, as agents of 7 do."""

    def report(recorded: Recorded) -> Any:
        return recorded.json(recorded.first("PUT", "/report/").request)

    theirs, ours = report(record("theirs", "theirs")), report(record("ours", "theirs"))
    assert set(ours) - set(theirs) == {"server_used"} and set(theirs) - set(ours) == set()
    assert set(theirs["resource_statuses"]) - set(ours["resource_statuses"]) == set()
    for title, one in theirs["resource_statuses"].items():
        other = ours["resource_statuses"][title]
        assert keys(other) == keys(one), title
        assert [each["status"] for each in other["events"]] == [each["status"] for each in one["events"]], title
    assert keys(ours["logs"][0]) == keys(theirs["logs"][0])
    for name in ("resources", "events", "changes"):
        assert ours["metrics"][name]["label"] == theirs["metrics"][name]["label"]
        assert ours["metrics"][name]["values"] == theirs["metrics"][name]["values"]
    assert {name for name, _, _ in theirs["metrics"]["time"]["values"]} <= {name for name, _, _ in ours["metrics"]["time"]["values"]}


def keys(value: Any) -> Any:
    """The names in a body and the kinds of their values."""
    if isinstance(value, dict):
        return {name: keys(each) for name, each in value.items()}
    return [keys(each) for each in value] if isinstance(value, list) and value and isinstance(value[0], dict) else type(value).__name__
