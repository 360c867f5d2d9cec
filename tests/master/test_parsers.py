from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from master.parsers import IN_PLACE, Parsers
from shared import plainyaml
from shared.dialects import LEGACY, MODERN, Dialect
from shared.errors import BadData, PuppetError, Unavailable
from shared.models.facts import FACTS, Facts, PackedFacts
from shared.models.report import REPORT

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
async def pool(**limits: Any) -> AsyncIterator[Parsers]:
    parsers = Parsers(**{"size": 1, "seconds": 20.0, "memory": 2**31, "queue": 10, "documents": True, **limits})
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
    assert isinstance(there, PackedFacts)
    assert (there.name, there.timestamp, dict(there.values)) == (here.name, here.timestamp, here.values)
    read_back = Facts.from_data(plainyaml.loads(there.document))
    assert read_back.values == {key: value for key, value in here.values.items() if not key.startswith("_")}


async def test_facts_of_a_catalog_request_get_the_masters_values_and_say_what_is_reserved() -> None:
    body = quote(body_of({"trusted": 1, "clientcert": "forged", "x": "+ %"}, "json"), safe="").encode()
    async with pool() as parsers:
        form = MODERN.formats["json"]
        facts = await parsers.facts(body, MODERN, form, values={"clientcert": "n"}, timestamp="now", keep=False)
        nothing = await parsers.facts(b"null", MODERN, form, values={}, timestamp="now", keep=False)
    assert facts is not None and nothing is None
    assert (facts.timestamp, facts.reserved, facts.values["clientcert"], facts.values["x"]) == ("now", {"trusted"}, "n", "+ %")


async def test_a_report_in_yaml_is_parsed_there_and_is_the_same() -> None:
    body = b"--- \nhost: n\ntime: 2026-11-22 10:00:00.123456789 +00:00\nlogs: []\nmetrics: {}\nresource_statuses: {}\n"
    async with pool() as parsers:
        report = await parsers.load(REPORT, body, LEGACY, LEGACY.formats["yaml"])
    assert report == LEGACY.load(REPORT, body, LEGACY.formats["yaml"])


def test_small_json_is_parsed_where_it_is() -> None:
    parsers = Parsers(size=1, seconds=1, memory=2**30, queue=1, documents=False)
    json_form, yaml_form = MODERN.formats["json"], LEGACY.formats["yaml"]
    assert not parsers.takes(FACTS, b"x" * (IN_PLACE - 1), json_form)
    assert (
        parsers.takes(FACTS, b"x" * IN_PLACE, json_form) and parsers.takes(FACTS, b"", yaml_form) and parsers.takes(REPORT, b"", yaml_form)
    )


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


async def test_PRS_05_a_parse_over_its_memory_is_refused() -> None:
    async with pool(memory=2**24) as parsers:
        with pytest.raises(BadData, match="parse_memory"):
            await parsers.load(FACTS, b'{"name": "n", "values": {"x": [' + b"{}," * 900_000 + b"1]}}", MODERN, MODERN.formats["json"])


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
        await first


async def test_PRS_06_an_end_waits_for_no_parse() -> None:
    async with pool() as parsers:
        stuck = asyncio.create_task(parsers.load(FACTS, SLOW, LEGACY, LEGACY.formats["yaml"]))
        while not parsers._busy:  # noqa: ASYNC110  # a thread fills it
            await asyncio.sleep(0.01)
        (process,) = parsers._busy
        await parsers.close()
        with pytest.raises(Unavailable, match="stopping"):
            await stuck
        assert process._process.poll() is not None
