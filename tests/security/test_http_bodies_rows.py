"""The rows of request bodies, as raw bytes over TLS: their size, packing, type and what they say."""

from __future__ import annotations

import base64
import gzip
import os
import zlib
from typing import Any

import pytest

from tests.support.master_site import still_alive
from tests.support.raw_master import RawClient, RunningMaster

V3 = "/puppet/v3"
ENV = "?environment=production"
Shelves = Any
Start = Any


CAPS = {"max_request_body": 2048, "max_facts_body": 4096, "max_report_body": 8192, "max_bucket_body": 16384}


@pytest.mark.parametrize(
    ("target", "kind", "cap"),
    [
        (f"{V3}/facts/agent1{ENV}", "application/json", 4096),
        (f"{V3}/report/agent1{ENV}", "application/json", 8192),
        (f"{V3}/file_bucket_file/md5/900150983cd24fb0d6963f7d28e17f72{ENV}", "application/octet-stream", 16384),
    ],
)
async def test_HTTP_10_a_byte_over_the_cap_is_413(start: Start, shelves: Shelves, target: str, kind: str, cap: int) -> None:
    async with start(CAPS) as master:
        announced = await master.client("agent1")
        await announced.send(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {cap + 1}\r\n\r\n".encode())
        assert (await announced.answer()).status == 413
        chunked = await master.client("agent1")
        head = f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        await chunked.send(head + b"400\r\n" + b"x" * 1024 + b"\r\n")
        for _ in range(cap // 1024):
            await chunked.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
        assert (await chunked.answer()).status == 413
        assert shelves["file_bucket_file"].streams == {}
        assert shelves["facts"].instances == {}
        await still_alive(master)


async def test_HTTP_10_bytes_behind_a_false_length_are_no_request(agent1: RawClient, master: RunningMaster, shelves: Shelves) -> None:
    head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n"
    await agent1.send(head.encode() + b'{"name":"agent1","values":{}}')
    assert (await agent1.answer()).status == 400
    assert await agent1.ended()
    assert shelves["facts"].instances == {}


PACK = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coding", "size"),
    [("gzip", 100_000_000), ("deflate", 100_000_000), ("gzip", 4097)],
    ids=["gzip", "deflate", "one byte over"],
)
async def test_HTTP_11_bodies_that_expand_over_the_cap_are_413(start: Start, shelves: Shelves, coding: str, size: int) -> None:
    body = PACK[coding](b"\0" * size)
    async with start({**CAPS, "max_facts_body": max(4096, 0 if len(body) < 4096 else 200_000)}) as master:
        client = await master.client("agent1")
        before = resident()
        answer = await client.ask("PUT", f"{V3}/facts/agent1{ENV}", body, Content_Type="application/json", Content_Encoding=coding)
        assert answer.status == 413
        assert resident() - before < 64 * 2**20
        assert shelves["facts"].asked == []


async def test_HTTP_11_a_nested_bomb_is_unpacked_once(agent1: RawClient, shelves: Shelves) -> None:
    body = gzip.compress(gzip.compress(b"\0" * 1_000_000))
    answer = await agent1.ask("PUT", f"{V3}/facts/agent1{ENV}", body, Content_Type="application/json", Content_Encoding="gzip")
    assert answer.status == 400
    assert shelves["facts"].asked == []


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


GOOD = b'{"name":"agent1","values":{}}'


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        ("compress", GOOD, 415),
        ("br", GOOD, 415),
        ("gzip, gzip", gzip.compress(gzip.compress(GOOD, mtime=0), mtime=0), 415),
        ("identity, gzip", gzip.compress(GOOD, mtime=0), 415),
        ("GZIP", gzip.compress(GOOD, mtime=0), 200),
        ("identity", GOOD, 200),
        ("deflate", zlib.compress(GOOD), 200),
        ("gzip", b"\x1f\x8b\x08 not really", 400),
        ("gzip", gzip.compress(GOOD, mtime=0)[:-6], 400),
        ("gzip", gzip.compress(GOOD, mtime=0) + b"more", 400),
        ("gzip", GOOD, 400),
    ],
)
async def test_HTTP_12_only_what_can_be_unpacked_is_taken(
    agent1: RawClient, shelves: Shelves, coding: str, body: bytes, status: int
) -> None:
    answer = await agent1.ask("PUT", f"{V3}/facts/agent1{ENV}", body, Content_Type="application/json", Content_Encoding=coding)
    assert answer.status == status, answer
    assert len(shelves["facts"].asked) == (1 if status == 200 else 0)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"name":"agent1","values":{"a":NaN}}',
        b'{"name":"agent1","values":{"a":Infinity}}',
        b'{"name":"agent1","values":{"a":1e999}}',
        b'{"name":"agent1","name":"agent2","values":{}}',
        GOOD.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + GOOD,
        GOOD + b"x",
        b"[1]",
        b'"x"',
        b'{"name":["agent1"],"values":{}}',
        b'{"name":"agent1","values":"x"}',
    ],
)
async def test_HTTP_13_doubtful_json_is_400(agent1: RawClient, shelves: Shelves, body: bytes) -> None:
    assert (await agent1.ask("PUT", f"{V3}/facts/agent1{ENV}", body, Content_Type="application/json")).status == 400
    assert shelves["facts"].instances == {}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/marshal", 415),
        ("application/x-python-pickle", 415),
        ("application/x-msgpack", 415),
        ("text/yaml", 415),
        ("yaml", 415),
        ("application/json; charset=utf-7", 415),
        ("", 400),
    ],
)
async def test_HTTP_16_unknown_types_of_bodies_are_refused(agent1: RawClient, shelves: Shelves, kind: str, status: int) -> None:
    assert (await agent1.ask("PUT", f"{V3}/facts/agent1{ENV}", GOOD, Content_Type=kind)).status == status
    assert shelves["facts"].asked == []


RUBY = [
    b"--- !ruby/object:ERB\nsrc: `id`\n",
    b"--- !ruby/hash:ActionController::Base\na: 1\n",
    b'--- !!python/object/apply:os.system ["touch /tmp/owned"]\n',
    b"--- !!python/name:os.system\n",
    b"--- !ruby/object:Puppet::Transaction::Report\nhost: agent2\n",
]


@pytest.mark.parametrize("body", RUBY)
async def test_HTTP_14_tags_make_no_objects(agent1: RawClient, shelves: Shelves, body: bytes) -> None:
    for kind in ("text/yaml", "text/b64_zlib_yaml"):
        packed = body if kind == "text/yaml" else base64.b64encode(zlib.compress(body))
        answer = await agent1.ask("PUT", "/production/report/agent1", packed, Content_Type=kind)
        assert answer.status == 400, answer
    assert shelves["report"].instances == {}


BOMBS = {
    "aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)),
    "depth": b"[" * 3000,
    "indented depth": b"".join(b" " * n + b"a:\n" for n in range(1500)),
    "merge onto itself": b"a: &a\n  <<: *a\n",
    "one scalar": b"a: " + b"x" * 50_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS.keys())
async def test_HTTP_17_costly_yaml_is_400(agent1: RawClient, master: RunningMaster, shelves: Shelves, body: bytes) -> None:
    before = resident()
    answer = await agent1.ask("PUT", "/production/report/agent1", body, Content_Type="text/yaml")
    assert answer.status == 400, answer
    assert resident() - before < 64 * 2**20 + 4 * len(body)
    assert shelves["report"].instances == {}
    await still_alive(master)
