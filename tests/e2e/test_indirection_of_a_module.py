"""The indirection of examples/modules/ocsp, from outside the tree: an agent asks our master about certificates, over TLS."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import shutil
from pathlib import Path

import pytest

from bunraku.puppet import main
from master.endpoints.routes import reserved_names
from tests.support.pair import NAME, Pair, client_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
MODULES = "code/environments/production/modules"
OPEN = "path /ocsp_answer\nmethod find\nallow *\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path, manifest="")
    shutil.copytree(ROOT / "examples/modules/ocsp", tmp_path / "master" / MODULES / "ocsp")
    return pair


class Agent:
    """`puppet` on the agent's machine."""

    def __init__(self, pair: Pair, capture: pytest.CaptureFixture[bytes]) -> None:
        self.pair = pair
        self.capture = capture

    async def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        agent = self.pair.root / "agent"
        options = {"confdir": agent, "vardir": agent / "var", "server": "localhost", "masterport": self.pair.port, "certname": NAME}
        code = await asyncio.to_thread(main, [words[0], *(f"--{name}={value}" for name, value in options.items()), *words[1:]])
        out, err = self.capture.readouterr()
        return code, out.decode(), err.decode()


@pytest.fixture
def agent(pair: Pair, capfdbinary: pytest.CaptureFixture[bytes]) -> Agent:
    return Agent(pair, capfdbinary)


async def test_an_agent_asks_the_ca_about_certificates(pair: Pair, agent: Agent) -> None:
    pair.write("auth.conf", OPEN)
    async with pair.mastered():
        assert (await pair.run()).code == 0
        assert await agent("ocsp", "check", NAME, "localhost") == (0, f"{NAME}  good\nlocalhost    good\n", "")
        assert (await agent("ocsp"))[:2] == (0, f"{NAME}  good\n")
        shown = json.loads((await agent("ocsp", "show", NAME, "--json"))[1])
        assert (shown["certname"], shown["status"], shown["revoked"]) == (NAME, "good", None)
        code, _, err = await agent("ocsp", "check", "nobody.test")
        assert (code, err.splitlines()[0]) == (1, "Error: Could not find ocsp_answer nobody.test")
        master = pair.root / "master"
        folders = [f"--confdir={master}", f"--codedir={master / 'code'}", f"--vardir={master / 'var'}", f"--logdir={master / 'log'}"]
        assert await asyncio.to_thread(main, ["cert", "revoke", "localhost", *folders]) == 0
        agent.capture.readouterr()
        # The CA's own machine answers from its files, without a master.
        assert await asyncio.to_thread(main, ["ocsp", "check", "localhost", "--terminus", "ca", *folders]) == 1
        assert agent.capture.readouterr().out == b"localhost  revoked\n"


async def test_without_a_rule_it_is_closed(pair: Pair, agent: Agent) -> None:
    async with pair.mastered():
        await pair.run()
        code, out, err = await agent("ocsp", "check", NAME)
    assert (code, out) == (1, "")
    assert "403" in err or "not authorized" in err.lower() or "Forbidden" in err


async def test_a_name_that_is_none_and_another_verb_are_refused(pair: Pair) -> None:
    pair.write("auth.conf", OPEN)
    async with pair.mastered():
        await pair.run()
        client = await client_of(pair)
        try:
            names = (NAME, "..%2F..%2Fca_key", "a%00b", f"{NAME}?nonce=zz")
            urls = [f"/puppet/v3/ocsp_answer/{name}{'&' if '?' in name else '?'}environment=production" for name in names]
            answers = [await client.ask("GET", url, Accept="application/json") for url in urls]
            answers.append(await client.ask("PUT", urls[0], Accept="application/json"))
        finally:
            await client.close()
    assert [answer.status for answer in answers] == [200, 400, 400, 400, 403]


async def test_an_answer_that_the_ca_has_not_signed_is_refused(pair: Pair, agent: Agent) -> None:
    pair.write("auth.conf", OPEN)
    file = pair.root / "master" / MODULES / "ocsp/lib/puppet/indirector/ocsp_answer/ca.py"
    file.write_text(file.read_text().replace("OcspAnswer.of(name, der)", "OcspAnswer.of(name, der[:-4] + bytes(4))"))
    async with pair.mastered():
        await pair.run()
        code, out, err = await agent("ocsp", "check", NAME)
    assert (code, out) == (1, "")
    assert "Error: The answer is not signed by the CA" in err


def test_no_indirection_may_have_the_name_of_an_endpoint() -> None:
    assert reserved_names() == {
        *("compile", "environment", "environment_classe", "environment_module", "environment_transport", "plan", "task")
    }


@pytest.mark.parametrize(
    ("name", "model", "error"),
    [
        ("node", "INDIRECTION = Indirection(name='node', model=M)", "that name is the master's own"),
        ("compile", "INDIRECTION = Indirection(name='compile', model=M)", "that name is the master's own"),
        ("zones", "INDIRECTION = Indirection(name='zones', model=M)", "in a URL that is the plural of zone"),
        ("zone", "INDIRECTION = Indirection(name='other', model=M)", "must be an Indirection named zone"),
        ("zone", "1 / 0", "Could not load the model zone: ZeroDivisionError"),
        ("zone", "INDIRECTION = Indirection(name='zone', model=M)", "it has no terminus for a master"),
    ],
)
async def test_an_indirection_that_cannot_be_served_is_an_error_in_the_log_and_no_more(
    pair: Pair, caplog: pytest.LogCaptureFixture, name: str, model: str, error: str
) -> None:
    caplog.set_level(logging.ERROR, "puppet")
    pair.write("auth.conf", OPEN)
    text = f"from shared.indirector import Indirection, Model\nclass M(Model): ...\n{model}\n"
    pair.write(f"{MODULES}/other/lib/puppet/model/{name}.py", text)
    async with pair.mastered():
        assert (await pair.run()).code == 0
        client = await client_of(pair)
        try:
            answer = await client.ask("GET", f"/puppet/v3/ocsp_answer/{NAME}?environment=production", Accept="application/json")
        finally:
            await client.close()
    assert answer.status == 200
    assert base64.b64decode(json.loads(answer.body)["response"])
    problems = [record.getMessage() for record in caplog.records if "of a module is not served" in record.getMessage()]
    assert len(problems) == 1
    assert error in problems[0]
