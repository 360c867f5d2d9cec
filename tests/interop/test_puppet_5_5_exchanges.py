"""What the agent of Puppet 5.5.22 and a master say to each other, word for word: its own master's answers beside ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.interop.pairs import NAME, Pair, pair, stage_of
from tests.interop.peers import PUPPET_5
from tests.interop.recorder import Exchange, Recorder
from tests.interop.stage import SITE
from tests.support.codings import decode
from tests.support.processes import RealAgent

pytestmark = [
    pytest.mark.works_with("HTTP exchanges, compared message by message", "5.5.22"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_5.why_not()), reason=PUPPET_5.why_not()),
]

# Of the moment, or of the machine.
PASSING = {"version", "catalog_uuid", "transaction_uuid", "value"}
# What later servers say besides, as ours does, and this release's agents do not look at.
LATER = {"kind", "catalog_format"}


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange without what changes from run to run."""

    asked: str
    query: tuple[str, ...]
    status: int
    kind: str
    body: Any


def plain(exchange: Exchange, root: Path) -> Said:
    answered = exchange.answer.headers
    body = decode(exchange.answer.body, answered)
    kind = answered.get("content-type", "").partition(";")[0].replace("text/pson", "application/json")
    found: Any = body.replace(str(root).encode(), b"ROOT")
    if kind == "application/json" and found:
        found = json.loads(found)
        if "/puppet/v3/node/" in exchange.path and "name" in found:
            found["parameters"] = list(found.get("parameters", {}))  # facts, many of them of the moment
        found = of_data(found)
    elif found.startswith(b"-----BEGIN"):
        found = found.split(b"\n")[0].decode()
    asked = f"{exchange.method} {exchange.path}".replace(str(root), "ROOT")
    return Said(asked, tuple(sorted(name for name, _ in exchange.query)), exchange.status, kind, found)


def of_data(data: Any) -> Any:
    """Data without the order of what has none, and without what is of the moment."""
    if isinstance(data, dict):
        return {key: of_data(value) for key, value in data.items() if key not in PASSING | LATER}
    if isinstance(data, list):
        return sorted((of_data(each) for each in data), key=lambda each: json.dumps(each, sort_keys=True))
    return data


def runs(agent: RealAgent, here: Pair) -> None:
    assert agent.test().code == 2
    assert agent.test().code == 0


def fails(agent: RealAgent, here: Pair) -> None:
    here.write({"manifests/site.pp": "notice('so far')\nfail('not today')\n"})
    assert agent.test().code == 1
    here.write({"manifests/site.pp": "notify { 'x': }\nnotify { 'x': }\n"})
    assert agent.test().code == 1
    here.write({"manifests/site.pp": "notify { 'x'\n"})
    assert agent.test().code == 1
    here.write({"manifests/site.pp": "include nothing::there\n"})
    assert agent.test().code == 1


def goes_elsewhere(agent: RealAgent, here: Pair) -> None:
    agent.test("--environment", "nowhere")


def asks_for_others(agent: RealAgent, here: Pair) -> None:
    for subject in ("node", "catalog"):
        assert agent.puppet(subject, "find", "web2.example.com", "--terminus", "rest").code == 1


def uses_the_bucket(agent: RealAgent, here: Pair) -> None:
    path = agent.root / "precious"
    path.write_text("precious\n")
    for _ in range(2):
        stored = agent.puppet("filebucket", "backup", str(path), "--remote")
        assert stored.code == 0, stored.text
    assert agent.puppet("filebucket", "get", stored.text.split()[-1], "--remote").text == "precious\n"
    assert agent.puppet("filebucket", "get", "0" * 32, "--remote").code == 1


def conversation(kind: str, root: Path, happens: Callable[[RealAgent, Pair], None]) -> list[Said]:
    """What an agent that has its certificate, unless `happens` is its first run, and that master say."""
    root.mkdir()
    with pair(kind, root / "master") as here:
        here.write(SITE)
        here.master.start()
        agent = here.agent()
        assert isinstance(agent, RealAgent)
        if happens is not runs:
            assert agent.test().code == 2
        with Recorder(here.master.port, here.master.ca.parent, agent).running() as between:
            agent.port = between.port
            happens(agent, here)
            assert stage_of(agent).exists()
        found = [plain(each, root) for each in between.exchanges()]
    if happens is goes_elsewhere:  # up to the catalog, for which servers since 7.10 send the agent to an environment that there is
        return found[: [each.asked for each in found].index(f"POST /puppet/v3/catalog/{NAME}")]
    return found


FORBIDDEN = re.compile(r"Forbidden request: (\S+)")


def as_later(said: Said) -> Said:
    """An answer of this release's master as servers since 6 give it, which have other words in these places; ours follows them."""
    message = said.body.get("message", "") if isinstance(said.body, dict) else ""
    if said.asked.startswith("PUT /puppet-ca/v1/certificate_request/"):
        return replace(said, body=b"")  # no certificate comes with it
    if said.status == 404 and "/puppet-ca/" in said.asked:
        return replace(said, kind="text/plain", body=message.removeprefix("Not Found: ").encode())
    if denied := FORBIDDEN.search(message):
        text = f"Forbidden request: {denied[1]} (method :get). Please see the server logs for details."
        return replace(said, kind="", body=text.encode())
    return said


@pytest.mark.parametrize("happens", [runs, fails, goes_elsewhere, asks_for_others, uses_the_bucket])
def test_ours_is_asked_the_same_and_answers_the_same(tmp_path: Path, happens: Callable[[RealAgent, Pair], None]) -> None:
    """Only that ours says with an error what to try (`hint`)."""
    theirs = [as_later(each) for each in conversation("5.5 with 5.5", tmp_path / "theirs", happens)]
    ours = conversation("5.5 with ours", tmp_path / "ours", happens)
    assert [each.asked for each in ours] == [each.asked for each in theirs]
    for mine, its in zip(ours, theirs, strict=True):
        if isinstance(mine.body, dict) and mine.status >= 400:
            mine = replace(mine, body={key: value for key, value in mine.body.items() if key != "hint"})
        assert mine == its
    assert len(ours) >= 2
