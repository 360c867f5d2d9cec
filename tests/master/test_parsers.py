from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from master.catalogs.v4_request import CatalogRequest, catalog_request_of
from master.pools.body_parser import IN_PLACE, REPORT_IN_PROCESS, BodyParser
from master.pools.parse_pool import ParsePool
from master.pools.parse_worker import seconds_for
from master.termini.node import NodeFiles
from shared.data import plainyaml
from shared.errors import BadData, BadRequest, PuppetError, Unavailable
from shared.indirector import Request
from shared.indirector.termini import Json, WriteOnlyYaml
from shared.models.facts import FACTS
from shared.models.node import NODE, Node
from shared.models.report import REPORT
from shared.wire.dialects import LEGACY, MODERN, Dialect
from tests.support.waiting import until

pytestmark = pytest.mark.slow

VALUES = {
    "kernel": "Linux",
    "os": {"name": "Debian", "release": [12, 4.5, None, True]},
    "big": 10**399,
    "odd": "\x00ü😀\n: yes",
    "_hidden": 1,
}
SLOW = b"name: n\nvalues: {" + b"? a :b, " * 300_000 + b"}"  # some seconds of work


@asynccontextmanager
async def pool(**limits: Any) -> AsyncIterator[ParsePool]:
    parsers = ParsePool(**{"size": 1, "seconds": 20.0, "memory": 2**31, "queue": 10, **limits})
    try:
        yield parsers
    finally:
        await parsers.close()


def body_of(values: dict[str, Any], form: str) -> bytes:
    data = {"name": "n", "timestamp": "2026-11-22T00:00:00+00:00", "values": values}
    text = plainyaml.dumps(data) if "yaml" in form else json.dumps(data).encode()
    return base64.b64encode(zlib.compress(text)) if form == "b64_zlib_yaml" else text


@pytest.mark.parametrize(
    ("dialect", "form"), [(MODERN, "json"), (MODERN, "pson"), (LEGACY, "pson"), (LEGACY, "yaml"), (LEGACY, "b64_zlib_yaml")]
)
async def test_facts_are_the_same_wherever_they_are_parsed(dialect: Dialect, form: str) -> None:
    body = body_of(VALUES, form)
    here = dialect.load(FACTS, body, dialect.formats[form])
    async with pool() as parsers:
        there = await parsers.load(FACTS, body, dialect, dialect.formats[form])
    assert there == here


async def test_facts_that_are_escaped_are_the_same_and_null_is_none() -> None:
    body = quote(body_of({"x": "+ %"}, "json"), safe="").encode()
    async with pool() as parsers:
        facts = await parsers.load_escaped(FACTS, body, MODERN, MODERN.formats["json"])
        nothing = await parsers.load_escaped(FACTS, b"null", MODERN, MODERN.formats["json"])
    assert facts is not None and nothing is None
    assert facts.values == {"x": "+ %"}


async def test_a_report_in_yaml_is_parsed_there_and_is_the_same() -> None:
    body = b"--- \nhost: n\ntime: 2026-11-22 10:00:00.123456789 +00:00\nlogs: []\nmetrics: {}\nresource_statuses: {}\n"
    async with pool() as parsers:
        report = await parsers.load(REPORT, body, LEGACY, LEGACY.formats["yaml"])
    here = LEGACY.load(REPORT, body, LEGACY.formats["yaml"])
    assert (report.to_ruby_yaml(), report.to_ruby_yaml(legacy=True)) == (here.to_ruby_yaml(), here.to_ruby_yaml(legacy=True))
    assert report == here


@pytest.mark.parametrize("kind", [WriteOnlyYaml, Json])
async def test_a_node_of_the_last_run_is_the_same_wherever_its_file_is_read(tmp_path: Path, kind: Callable[..., Any]) -> None:
    async with pool() as parsers:
        nodes = NodeFiles(kind(NODE, tmp_path), BodyParser(parsers))
        for size in (10, IN_PLACE):
            node = Node(name="web1", environment="staging", classes={"a": {"x": [1, None]}}, parameters={"fact": "x" * size, "n": 1.5})
            await nodes.save(Request("web1", body=node))
            assert await nodes.last("web1") == node
        (tmp_path / f"web2{nodes.files.suffix}").write_text("[" * IN_PLACE)
        assert await nodes.last("web2") is None and await nodes.last("web3") is None


REPORT_DATA = {
    "host": "n", "time": "2026-11-22T10:00:00.123456789+00:00", "status": "changed", "puppet_version": "7.23.0",
    "logs": [{"level": "err", "message": f"line\n{n} ü", "source": "Puppet", "tags": [], "time": ""} for n in range(3)],
    "metrics": {"changes": {"name": "changes", "label": "Changes", "values": [["total", "Total", 1]]}},
    "resource_statuses": {"File[a]": {"title": "a", "resource": "File[a]", "resource_type": "File", "changed": True}},
}  # fmt: skip


@pytest.mark.parametrize("report_format", [4, 12])
async def test_a_report_in_json_is_the_same_wherever_it_is_parsed(report_format: int) -> None:
    body = json.dumps(REPORT_DATA | {"report_format": report_format}).encode()
    wrapped = b'{"document_type": "Report", "data": %b}' % body
    async with pool() as parsers:
        for dialect, form, sent in ((MODERN, "json", body), (LEGACY, "pson", body), (LEGACY, "pson", wrapped)):
            there = await parsers.load(REPORT, sent, dialect, dialect.formats[form])
            assert there == dialect.load(REPORT, sent, dialect.formats[form])


WANTED = {"certname": "n", "environment": "production", "persistence": {"facts": True, "catalog": False}}


@pytest.mark.parametrize("trusted", [None, {"certname": "m"}])
async def test_PRS_12_what_a_given_catalog_is_asked_for_is_the_same_wherever_it_is_read(trusted: dict[str, str] | None) -> None:
    data: dict[str, Any] = WANTED | {"facts": {"values": {**VALUES, "trusted": {"certname": "own"}}}}
    if trusted is not None:
        data["trusted_facts"] = {"values": trusted}
    async with pool() as parsers:

        async def read(body: dict[str, Any]) -> CatalogRequest:
            return catalog_request_of(await parsers.catalog_request(json.dumps(body).encode()))

        wanted, without = await read(data), await read(WANTED)
        for wrong, message in ((WANTED | {"x": 1}, "disallowed-key"), (data | {"job_id": "x" * 70_000}, "besides the facts")):
            with pytest.raises(BadRequest, match=message):
                await read(wrong)
    assert (wanted.certname, wanted.save_facts, wanted.trusted) == ("n", True, trusted)
    assert wanted.facts == {**VALUES, "trusted": {"certname": "own"}}
    assert (without.facts, without.trusted) == (None, None)


async def test_yaml_of_any_other_thing_is_plain_data_there() -> None:
    form = LEGACY.formats["yaml"]
    async with pool() as parsers:
        node = await parsers.load(NODE, b"name: n\nclasses: [a]\n", LEGACY, form)
    assert node == LEGACY.load(NODE, b"name: n\nclasses: [a]\n", form)


class CountedPool(ParsePool):
    """A pool that has no process, and counts what comes to it."""

    def __init__(self) -> None:
        super().__init__(size=1, seconds=1, memory=2**30, queue=1)
        self.bodies = 0

    async def _ask(self, question: Mapping[str, Any], body: bytes, make: Callable[[Any], Any]) -> Any:
        self.bodies += 1
        return make({"name": "n", "host": "n"})


async def test_yaml_and_large_bodies_are_for_a_process_and_small_json_is_not() -> None:
    pool = CountedPool()
    parser, json_form, yaml_form = BodyParser(pool), MODERN.formats["json"], LEGACY.formats["yaml"]
    for indirection, named, most in ((FACTS, b'{"name": "n"}', IN_PLACE), (REPORT, b'{"host": "n"}', REPORT_IN_PROCESS)):
        pool.bodies = 0
        await parser.load(indirection, named.ljust(most - 1), MODERN, json_form)
        assert pool.bodies == 0
        await parser.load(indirection, named.ljust(most), MODERN, json_form)
        await parser.load(indirection, b"", LEGACY, yaml_form)
        assert pool.bodies == 2
    await parser.load(NODE, b'{"name": "n"}'.ljust(REPORT_IN_PROCESS), MODERN, json_form)
    await parser.load_escaped_facts('{"name": "n"}', MODERN, json_form)
    assert pool.bodies == 2
    await parser.load_escaped_facts('{"name": "n"}'.ljust(IN_PLACE), MODERN, json_form)
    await parser.load_escaped_facts("", LEGACY, yaml_form)
    assert pool.bodies == 4
    await pool.close()


async def test_what_is_wrong_is_the_same_error_and_the_process_goes_on() -> None:
    async with pool() as parsers:
        for body in (b"a: [", b"name: n\nvalues: {x: !!int ''}", b"[1]", b"\xff"):
            with pytest.raises(BadData):
                await parsers.load(FACTS, body, LEGACY, LEGACY.formats["yaml"])
        await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, LEGACY.formats["yaml"])
        assert parsers.ended.total() == 0


async def test_PRS_05_a_parse_over_its_budget_of_processor_time_is_ended_and_others_go_on() -> None:
    async with pool(seconds=0.2) as parsers:
        for count in (1, 2):
            with pytest.raises(BadData, match=r"more than 0\.2 seconds to be parsed"):
                await parsers.load(FACTS, SLOW, LEGACY, LEGACY.formats["yaml"])
            assert parsers.ended["time"] == count
        await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, LEGACY.formats["yaml"])


@pytest.mark.parametrize(
    ("question", "size", "seconds"),
    [
        ({"format": "json"}, 1000, 2.0),
        ({"catalog_request": True}, 2**20, 2.5),
        ({"format": "json"}, 16 * 2**20, 10.0),
        ({"format": "json"}, 64 * 2**20, 20.0),
        ({"stored": ".yaml", "name": "n"}, 1000, 20.0),
    ],
)
def test_PRS_05_a_message_of_a_peer_has_two_seconds_and_more_for_its_size(question: dict[str, Any], size: int, seconds: float) -> None:
    assert seconds_for(question, size, 20.0) == pytest.approx(seconds, abs=0.01)


async def test_PRS_05_a_parse_over_its_memory_is_refused() -> None:
    async with pool(memory=2**24) as parsers:
        with pytest.raises(BadData, match="parse_memory"):
            await parsers.load(FACTS, b'{"name": "n", "values": {"x": [' + b"{}," * 90_000 + b"1]}}", MODERN, MODERN.formats["json"])


async def test_PRS_13_a_message_of_a_peer_takes_memory_by_its_size_in_any_format() -> None:
    async with pool() as parsers:
        lists = b"name: n\nvalues: {x: [" + b"[]," * 900_000 + b"1]}"
        for dialect, form, body in (
            (LEGACY, "yaml", lists),
            (LEGACY, "b64_zlib_yaml", base64.b64encode(zlib.compress(lists))),
            (LEGACY, "pson", b'{"name": "n", "values": {"x": [' + b"[]," * 900_000 + b"1]}}"),
            (MODERN, "json", b'{"name": "n", "values": {"x": [' + b"1," * 900_000 + b"1]}}"),
        ):
            with pytest.raises(BadData, match=r"20 times its size|one more for each 16 bytes|seconds to be parsed"):
                await parsers.load(FACTS, body, dialect, dialect.formats[form])
        await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, LEGACY.formats["yaml"])


async def test_a_process_that_dies_fails_one_message() -> None:
    async with pool() as parsers:
        form = LEGACY.formats["yaml"]
        await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, form)
        (process,) = parsers._idle
        os.kill(process._process.pid, signal.SIGTERM)
        with pytest.raises(PuppetError, match="its process ended"):
            await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, form)
        await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, form)


async def test_too_many_messages_are_put_off() -> None:
    async with pool(queue=1) as parsers:
        first = asyncio.create_task(parsers.load(FACTS, SLOW, LEGACY, LEGACY.formats["yaml"]))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await parsers.load(FACTS, body_of(VALUES, "yaml"), LEGACY, LEGACY.formats["yaml"])
        await asyncio.gather(first, return_exceptions=True)


async def test_PRS_06_an_end_waits_for_no_parse() -> None:
    async with pool() as parsers:
        stuck = asyncio.create_task(parsers.load(FACTS, SLOW, LEGACY, LEGACY.formats["yaml"]))
        await until(lambda: parsers._busy)
        (process,) = parsers._busy
        await parsers.close()
        with pytest.raises(Unavailable, match="stopping"):
            await stuck
        assert process._process.poll() is not None
