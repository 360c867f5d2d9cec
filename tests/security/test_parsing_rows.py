"""Rows of what peers and sites send as data: it costs what its size says, and what is wrong with it is one clear error."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import zlib
from collections.abc import Callable
from urllib.parse import quote_plus

import pytest

from shared.data import plainjson
from shared.errors import BadData
from shared.models.facts import Facts
from shared.models.report import Report
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.wired_site import FORM, WiredSite

pytestmark = pytest.mark.slow

REPORT = "--- \nhost: agent1\ntime: 2026-11-22T00:00:00Z\nx: "
TYPED = {
    "an empty integer": '!!int ""',
    "no boolean": "!!bool maybe",
    "octets": '!!binary "AAEC/w=="',
    "a set": "!!set {a}",
    "a float": '!!float ""',
}
GIANTS = {
    "hexadecimal": "0x" + "f" * 20_000, "decimal": "9" * 401, "tags": "!a" * 2000 + " x", "levels": "[" * 5000,
    "a map as key": "{{a: b}: c}", "an anchor that is not there": "*b",
}  # fmt: skip
TEXTS = {
    "base 60": "1" + ":59" * 100_000,
    "octal": "0" + "7" * 20_000,
    "binary": "0b" + "1" * 20_000,
    "base 60, point": "1:59" * 5000 + ".5",
}


async def facts_in_yaml(client: RawClient, value: str) -> RawAnswer:
    text = f"--- !ruby/object:Puppet::Node::Facts\nname: agent1\nvalues:\n  colour: blue\n  x: {value}\n"
    packed = base64.b64encode(zlib.compress(text.encode()))
    body = f"facts_format=b64_zlib_yaml&facts={quote_plus(quote_plus(packed))}".encode()
    return await client.ask("POST", "/production/catalog/agent1", body, Content_Type=FORM, Accept="pson")


async def report_in_yaml(client: RawClient, value: str) -> RawAnswer:
    body = gzip.compress(f"{REPORT}{value}\n".encode())
    return await client.ask("PUT", "/production/report/agent1", body, Content_Type="text/yaml", Content_Encoding="gzip")


@pytest.mark.parametrize("kind", TYPED | GIANTS)
async def test_PRS_01_yaml_that_says_what_it_is_not_is_400_for_facts_and_reports(
    wired: WiredSite, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = await wired.client("agent1")
    for send in (facts_in_yaml, report_in_yaml):
        answer = await send(client, (TYPED | GIANTS)[kind])
        assert answer.status == 400, (send, answer)
    assert "Incident" not in caplog.text and "Traceback" not in caplog.text
    assert not (wired.settings.yamldir / "facts").exists()


@pytest.mark.parametrize("value", ["[]", "{}", '""'])
async def test_PRS_13_a_report_of_millions_of_values_is_400_with_the_limit(wired: WiredSite, value: str) -> None:
    client = await wired.client("agent1")
    body = gzip.compress(f'{{"host": "agent1", "logs": [{",".join([value] * 1_000_000)}]}}'.encode())
    for _ in range(2):
        answer = await client.ask(
            "PUT", "/puppet/v3/report/agent1?environment=production", body, Content_Type="application/json", Content_Encoding="gzip"
        )
        assert answer.status == 400 and "may have" in answer.text and "one more for each 16 bytes" in answer.text, answer
    good = json.dumps({"host": "agent1", "report_format": 12, "status": "unchanged"}).encode()
    assert (await client.ask("PUT", "/puppet/v3/report/agent1?environment=production", good, Content_Type="application/json")).status == 200


@pytest.mark.parametrize("kind", TEXTS)
async def test_PRS_01_numbers_of_yaml_1_1_are_texts_that_cost_what_their_length_says(wired: WiredSite, kind: str) -> None:
    client = await wired.client("agent1")
    assert (await report_in_yaml(client, TEXTS[kind])).status == 200
    answer = await facts_in_yaml(client, TEXTS[kind])
    assert (answer.status, "agent1 blue" in answer.text) == (200, True), answer
    stored = await client.ask("POST", "/puppet/v3/catalog/agent1?environment=production", b"", Content_Type=FORM)
    assert stored.status == 200, stored


@pytest.mark.parametrize("value", [*TYPED.values(), *GIANTS.values(), "9" * 401, "0" + "7" * 20_000])
async def test_PRS_02_data_of_a_site_that_cannot_be_read_names_its_file_and_ends_no_process(wired: WiredSite, value: str) -> None:
    client = await wired.client("agent1")
    environment = wired.root / "conf/code/environments/production"
    (environment / "hiera.yaml").write_text("version: 5\nhierarchy: [{name: common, path: common.yaml}]\n")
    (environment / "data").mkdir()
    (environment / "data/common.yaml").write_text(f"a: 1\nk:  {value}\n")
    (environment / "manifests/site.pp").write_text("notify { \"${lookup('a')}\": }")
    answer = await wired.catalog(client, "agent1", {"colour": "blue"})
    if answer.status == 200:  # psych reads it, and so is it read here
        assert value in (TYPED["an empty integer"], TYPED["no boolean"])
    else:
        assert answer.status == 500 and "data/common.yaml" in answer.text, answer
        assert value in (TYPED["a set"], TYPED["octets"]) or "line 2" in answer.text or "unspecified class" in answer.text, answer
    assert not wired.master.compile_pool.processes.ended


@pytest.mark.parametrize("text", ["version: !!int abc\n", "version: " + "9" * 401, "version: 5\nhierarchy: [{name: !!float x, path: a}]\n"])
async def test_PRS_02_a_hiera_yaml_that_cannot_be_read_is_named(wired: WiredSite, text: str) -> None:
    client = await wired.client("agent1")
    environment = wired.root / "conf/code/environments/production"
    (environment / "hiera.yaml").write_text(text)
    (environment / "manifests/site.pp").write_text("notify { \"${lookup('a')}\": }")
    answer = await wired.catalog(client, "agent1", {"colour": "blue"})
    assert answer.status == 500 and "hiera.yaml" in answer.text, answer
    assert not wired.master.compile_pool.processes.ended


@pytest.mark.parametrize("number", ["9" * 401, "-" + "9" * 400])
async def test_PRS_03_what_was_accepted_compiles_and_what_is_not_is_refused_each_time(wired: WiredSite, number: str) -> None:
    client = await wired.client("agent1")
    assert (await facts_in_yaml(client, number)).status == 400
    body = f'{{"name": "agent1", "values": {{"x": {number}}}}}'.encode()
    assert (await client.ask("PUT", "/puppet/v3/facts/agent1?environment=production", body, Content_Type="application/json")).status == 400
    most = json.loads("9" * 400)
    answer = await wired.catalog(client, "agent1", {"colour": "blue", "x": most})
    assert answer.status == 200
    for _ in range(2):  # from what is stored
        again = await client.ask("POST", "/puppet/v3/catalog/agent1?environment=production", b"", Content_Type=FORM)
        assert again.status == 200, again
    assert not wired.master.compile_pool.processes.ended


async def test_PRS_07_large_facts_are_compiled_stored_and_read_back_as_they_are(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    facts: dict[str, object] = {"colour": "blue", "large": "ab:c " * 400_000, "trusted": {"certname": "agent2"}}
    facts["many"] = {f"key {n}": [n, None] for n in range(3000)}
    answer = await wired.catalog(client, "agent1", facts)
    assert (answer.status, "agent1 blue" in answer.text) == (200, True), answer.text[:500]
    node = json.loads((await client.ask("GET", "/puppet/v3/node/agent1?environment=production")).body)
    assert node["parameters"]["large"] == facts["large"] and node["parameters"]["many"] == facts["many"]
    assert "trusted" not in node["parameters"] and node["parameters"]["clientcert"] == "agent1"
    again = await client.ask("POST", "/puppet/v3/catalog/agent1?environment=production", b"", Content_Type=FORM)
    assert (again.status, "agent1 blue" in again.text) == (200, True)
    stored = await wired.master.indirector.facts.find("agent1", environment="production")
    assert stored.values == {**facts, "clientcert": "agent1"}
    file = wired.settings.yamldir / "facts/agent1.yaml"
    file.write_bytes(b"--- [" + file.read_bytes())
    assert await wired.master.indirector.facts.find("agent1", environment="production") is None


MANY_STATUSES = {f"File[{n}]": {"title": f"{n}", "resource": f"File[{n}]", "resource_type": "File", "events": []} for n in range(20_000)}
MANY_FACTS = {"name": "agent1", "values": {f"fact {n}": {"value": n} for n in range(20_000)}}
MADE: dict[str, Callable[[], object]] = {
    "PRS-08, PRS-11: many facts": lambda: Facts.from_data(plainjson.loads_trusted(json.dumps(MANY_FACTS, indent=1).encode())),
    "PRS-10: a large report": lambda: Report.from_data({"host": "agent1", "resource_statuses": MANY_STATUSES}),
    "PRS-10: many logs": lambda: Report.from_data({"host": "agent1", "logs": [{"level": "notice", "message": "m"}] * 20_000}),
    "PRS-10: many events": lambda: Report.from_data(
        {"host": "agent1", "resource_statuses": {"A[1]": {"title": "1", "resource": "A[1]", "resource_type": "A", "events": [{}] * 20_000}}}
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_PRS_08_10_11_large_facts_and_reports_are_made_in_many_steps_between_which_the_loop_goes_on(what: str) -> None:
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)  # each call between Python and a library; a library holds all threads until it returns
    try:
        MADE[what]()
    finally:
        sys.setprofile(None)
    assert steps > 20_000


def test_PRS_10_a_report_of_many_faults_names_the_first_one_and_looks_for_no_other() -> None:
    with pytest.raises(BadData, match=r"Not a Report: Field required at 'logs\.0\.level'"):
        Report.from_data({"host": "agent1", "logs": [{}] * 100_000})
    with pytest.raises(BadData, match=r"Not a Report: .* at 'resource_statuses\.A\[1\]\.events\.1\.status'"):
        status = {"title": "1", "resource": "A[1]", "resource_type": "A", "events": [{}, {"status": 1}, {"status": 2}]}
        Report.from_data({"host": "agent1", "resource_statuses": {"A[1]": status}})
