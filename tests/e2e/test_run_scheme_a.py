"""Our agent against our master in the URL scheme of 3.x: the whole conversation of a first and a second run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import pytest

from agent.servers.http import HttpClient
from shared.data import plainjson, plainyaml
from tests.support.pair import NAME, Pair

pytestmark = pytest.mark.slow

BOOTSTRAP = [
    "GET /production/certificate/ca 200",
    f"GET /production/certificate/{NAME} 404",
    f"GET /production/certificate_request/{NAME} 404",
    f"PUT /production/certificate_request/{NAME} 200",
    f"GET /production/certificate/{NAME} 200",
    "GET /production/certificate_revocation_list/ca 200",
]
FIRST = [
    f"GET /production/node/{NAME} 200",
    "GET /production/file_metadatas/pluginfacts 200",
    "GET /production/file_content/pluginfacts/outside.txt 200",
    "GET /production/file_metadatas/plugins 200",
    "GET /production/file_content/plugins/facter/from_python.py 200",
    "GET /production/file_content/plugins/facter/only_ruby.rb 200",
    f"POST /production/catalog/{NAME} 200",
    "GET /production/file_metadata/modules/stage/plain.txt 200",
    "GET /production/file_content/modules/stage/plain.txt 200",
    "GET /production/file_metadatas/modules/stage/tree 200",
    "GET /production/file_content/modules/stage/tree/one 200",
    "GET /production/file_content/modules/stage/tree/sub/two 200",
    f"PUT /production/report/{NAME} 200",
]
SECOND = [
    f"GET /production/node/{NAME} 200",
    "GET /production/file_metadatas/pluginfacts 200",
    "GET /production/file_metadatas/plugins 200",
    f"POST /production/catalog/{NAME} 200",
    "GET /production/file_metadata/modules/stage/plain.txt 200",
    "GET /production/file_metadatas/modules/stage/tree 200",
    f"PUT /production/report/{NAME} 200",
]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path, flags={"scheme": "a"})


async def test_first_and_second_run_ask_what_the_protocol_says(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    async with pair.mastered():
        first = await pair.run()
        assert first.asked == BOOTSTRAP + FIRST, caplog.text
        assert first.code == 2
        assert first.connections(verified=False) == [1]
        run = first.exchanges[len(BOOTSTRAP) :]
        assert [(each.connection, each.reused) for each in run] == [(1, False)] + [(1, True)] * (len(FIRST) - 1)
        assert pair.contents()["facts"] == f"python outside {NAME}\n"
        second = await pair.run()
        assert second.asked == SECOND, caplog.text
        assert second.code == 0
        assert set(second.connections(verified=True)) == {1}
    assert first.report is not None
    assert first.report.report_format == 4
    assert plainyaml.loads(pair.reports()[0].read_bytes(), aliases=True)["puppet_version"].startswith("3.8")


async def test_facts_travel_inside_the_catalog_request_escaped_twice_and_as_text(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[bytes] = []
    request = HttpClient.request

    async def watched(self: HttpClient, site: Any, method: str, target: str, headers: Any, body: Any = None, **more: Any) -> Any:
        if "/catalog/" in target:
            bodies.append(body)
        return await request(self, site, method, target, headers, body, **more)

    monkeypatch.setattr(HttpClient, "request", watched)
    async with pair.mastered():
        await pair.run()
    form = parse_qs(bodies[0].decode())
    assert form["facts_format"] == ["pson"]
    assert form["fail_on_404"] == ["true"]
    assert b"facts=%257B%2522name%2522%253A%2522agent1.test" in bodies[0]
    facts = plainjson.loads(unquote_plus(form["facts"][0]).encode())
    assert all(isinstance(value, str) for value in facts["values"].values())
    assert facts["values"]["clientcert"] == NAME
    assert facts["values"]["clientversion"] == "3.8.7"
    assert facts["values"]["from_python"] == "python"


async def test_a_yaml_report_is_taken_too(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(report_serialization_format="yaml")
        assert ran.asked[-1] == f"PUT /production/report/{NAME} 200"
    assert plainyaml.loads(pair.reports()[0].read_bytes(), aliases=True)["host"] == NAME


async def test_the_scheme_is_found_out_when_nothing_says_it(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    async with pair.mastered():
        first = await pair.run()
        assert first.asked[0] == "GET /puppet-ca/v1/certificate/ca 200"
        (tmp_path / "agent" / "var" / "state" / "dialects.json").unlink()
        second = await pair.run()
    assert second.asked[0] == "GET /status/v1/simple 200"
    assert second.asked[-1] == f"PUT /puppet/v3/report/{NAME} 200"


async def test_content_is_stored_by_md5_on_a_3x_master(pair: Pair) -> None:
    async with pair.mastered(digest_algorithm="md5"):
        await pair.run()
        (pair.stage / "plain").write_text("changed by hand\n")
        ran = await pair.run()
    bucket = [line for line in ran.asked if "file_bucket_file" in line]
    assert [line.split()[0] + line.split()[2] for line in bucket] == ["HEAD404", "PUT200"]
    assert "/production/file_bucket_file/md5/" in bucket[0]
