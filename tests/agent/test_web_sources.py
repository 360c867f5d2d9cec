"""Files of web servers: what decides that they are fetched, and that nothing is put in place that was not promised."""

import asyncio
import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from agent.servers.sources import SourceRouter
from agent.servers.websources import DownloadCache, WebSources, announced_checksum, web_sources, without_password
from shared.errors import PeerAnswered
from shared.file_serving.metadata import MetadataOptions
from shared.indirector import Binding, Terminus
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.settings import AgentSettings, Conf, load
from shared.types.file import File
from tests.support.fake_commands import apply
from tests.support.throwaway_ca import ThrowAwayCa

DATA = b"0123456789" * 5000
SHA256 = hashlib.sha256(DATA).hexdigest()


@dataclass
class Site:
    """A web server with one file; `asked` lists (method, path, range)."""

    data: bytes = DATA
    headers: dict[str, str] = field(default_factory=dict)
    without_head: bool = False
    ranges: bool = True
    cut: int | None = None  # the first whole answer breaks off after so many bytes
    to: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    askers: set[str | None] = field(default_factory=set)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        wanted = request.headers.get("Range", "")
        self.askers.add(request.remote)
        self.asked.append((request.method, request.path, wanted))
        self.secrets.append(request.headers.get("Authorization", ""))
        if request.path == "/moved":
            return web.Response(status=302, headers={"Location": self.to})
        if request.path != "/f":
            return web.Response(status=404)
        if request.method == "HEAD" and self.without_head:
            return web.Response(status=405)
        if self.headers.get("ETag") and request.headers.get("If-None-Match") == self.headers["ETag"]:
            return web.Response(status=304, headers={"ETag": self.headers["ETag"]})
        if wanted and self.ranges and wanted.endswith("-"):
            start = int(wanted[6:-1])
            more = {"Content-Range": f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"}
            return web.Response(status=206, body=self.data[start:], headers={**self.headers, **more})
        if self.cut is not None and request.method == "GET" and wanted != "bytes=0-0":
            response = web.StreamResponse(headers=self.headers)
            response.content_length = len(self.data)
            await response.prepare(request)
            await response.write(self.data[: self.cut])
            self.cut = None
            assert request.transport is not None
            request.transport.close()
            return response
        return web.Response(body=b"" if request.method == "HEAD" else self.data, headers=self.headers)


@asynccontextmanager
async def serving(site, context=None):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await listening.start()
    port = listening._server.sockets[0].getsockname()[1]
    try:
        yield f"https://localhost:{port}" if context else f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class Nothing(Terminus):
    """No file server."""


async def at_once(seconds):
    await asyncio.sleep(0)


def sources(memory=None):
    web = WebSources(cache=memory or DownloadCache(), sleep=at_once)
    return SourceRouter(Binding(FILE_METADATA, Nothing()), Binding(FILE_CONTENT, Nothing()), environment="production", web=lambda: web)


async def applied(url, tmp_path, memory=None, **more):
    return await apply(File(str(tmp_path / "got"), {"source": url, **more}), sources=sources(memory))


def gets(site):
    return [each for each in site.asked if each[0] == "GET"]


SAID = [
    ({"x-checksum-sha256": SHA256, "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "sha256", "{sha256}" + SHA256),
    ({"x-checksum-sha256": SHA256, "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "md5", "{md5}d41d8cd98f00b204e9800998ecf8427e"),
    ({"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg==", "x-checksum-md5": "0" * 32}, "sha256", "{md5}" + "0" * 32),
    ({"content-md5": "not base64", "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT"}, "sha256", "{mtime}2015-10-21 07:28:00"),
    ({"x-checksum-sha256": "../../etc", "etag": '"abc"'}, "sha256", None),
]


@pytest.mark.parametrize(("headers", "wanted", "expected"), SAID)
def test_the_best_sum_of_the_headers_counts_and_an_entity_tag_is_none(headers, wanted, expected):
    found = announced_checksum(headers, wanted, None)
    assert expected is None if found is None else (found.value or "").startswith(expected or "?")


def test_passwords_are_not_shown():
    assert without_password("https://me:secret@example.com/f?x=1") == "https://example.com/f?x=1"


async def test_a_file_is_fetched_once_and_not_again_while_its_sum_is_the_same(tmp_path):
    site = Site(headers={"X-Checksum-Sha256": SHA256})
    async with serving(site) as url:
        first = await applied(f"{url}/f", tmp_path)
        again = await applied(f"{url}/f", tmp_path)
    assert (tmp_path / "got").read_bytes() == DATA
    assert [event[1] for event in first.events] == ["success"]
    assert again.events == []
    assert len(gets(site)) == 1


async def test_an_entity_tag_spares_the_download_in_the_next_run_too(tmp_path):
    site = Site(headers={"ETag": '"v1"'})
    async with serving(site) as url:
        await applied(f"{url}/f", tmp_path, DownloadCache(tmp_path / "memory.json"))
        before = len(gets(site))
        again = await applied(f"{url}/f", tmp_path, DownloadCache(tmp_path / "memory.json"))
        assert again.events == []
        assert len(gets(site)) == before
        (tmp_path / "got").write_bytes(b"tampered")
        repaired = await applied(f"{url}/f", tmp_path, DownloadCache(tmp_path / "memory.json"))
    assert [event[1] for event in repaired.events] == ["success"]
    assert (tmp_path / "got").read_bytes() == DATA


async def test_a_time_alone_spares_the_download_and_still_tells_drift(tmp_path):
    site = Site(headers={"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"})
    memory = DownloadCache()
    async with serving(site) as url:
        await applied(f"{url}/f", tmp_path, memory)
        before = len(gets(site))
        assert (await applied(f"{url}/f", tmp_path, memory)).events == []
        assert len(gets(site)) == before
        (tmp_path / "got").write_bytes(b"tampered")  # newer than what the server has
        assert [event[1] for event in (await applied(f"{url}/f", tmp_path, memory)).events] == ["success"]


async def test_a_server_that_says_nothing_causes_no_change_while_the_content_is_the_same(tmp_path):
    site = Site()
    async with serving(site) as url:
        await applied(f"{url}/f", tmp_path)
        again = await applied(f"{url}/f", tmp_path)
    assert again.events == []


async def test_servers_without_head_are_asked_for_one_byte(tmp_path):
    site = Site(headers={"X-Checksum-Sha256": SHA256}, without_head=True)
    async with serving(site) as url:
        await applied(f"{url}/f", tmp_path)
    assert ("GET", "/f", "bytes=0-0") in site.asked
    assert (tmp_path / "got").read_bytes() == DATA


@pytest.mark.parametrize("ranges", [True, False])
async def test_a_broken_download_goes_on_where_it_stopped(tmp_path, ranges):
    site = Site(headers={"ETag": '"v1"', "X-Checksum-Sha256": SHA256}, cut=20_000, ranges=ranges)
    async with serving(site) as url:
        done = await applied(f"{url}/f", tmp_path)
    assert [event[1] for event in done.events] == ["success"]
    assert (tmp_path / "got").read_bytes() == DATA
    assert gets(site)[-1][2].startswith("bytes=")


async def test_AG_14_a_body_that_is_not_what_the_headers_promise_is_not_put_in_place(tmp_path):
    (tmp_path / "got").write_bytes(b"old")
    site = Site(headers={"X-Checksum-Sha256": "0" * 64})
    async with serving(site) as url:
        done = await applied(f"{url}/f", tmp_path)
    assert [event[1] for event in done.events] == ["failure"]
    assert (tmp_path / "got").read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["got"]


async def test_AG_14_a_short_body_leaves_the_old_file(tmp_path):
    (tmp_path / "got").write_bytes(b"old")
    site = Site(headers={"X-Checksum-Sha256": SHA256}, cut=100)
    async with serving(site) as url:
        done = await applied(f"{url}/f", tmp_path, show_diff=False)
    assert [event[1] for event in done.events] == ["failure"]
    assert (tmp_path / "got").read_bytes() == b"old"


@pytest.mark.parametrize("target", ["file:///etc/shadow", "ftp://127.0.0.1/x", "gopher://x/"])
async def test_AG_14_redirects_to_other_schemes_are_not_followed(tmp_path, target):
    site = Site(to=target)
    async with serving(site) as url:
        with pytest.raises(PeerAnswered, match="not followed"):
            await WebSources().metadata(f"{url}/moved", MetadataOptions())


async def test_connections_start_from_the_address_that_is_wanted(tmp_path):
    site = Site(headers={"X-Checksum-Sha256": SHA256})
    where = {"confdir": str(tmp_path), "vardir": str(tmp_path), "sourceaddress": "127.0.0.9"}
    async with serving(site) as url:
        web = web_sources(load(AgentSettings, section="agent", flags=where, conf=Conf()))
        assert await web.metadata(f"{url}/f", MetadataOptions()) is not None
    assert site.askers == {"127.0.0.9"}


async def test_redirects_are_followed_and_passwords_stay_with_the_server_they_are_for(tmp_path):
    there = Site(headers={"X-Checksum-Sha256": SHA256})
    async with serving(there) as target:
        here = Site(to=f"{target}/f")
        async with serving(here) as url:
            await applied(f"{url.replace('//', '//me:secret@')}/moved", tmp_path)
    assert (tmp_path / "got").read_bytes() == DATA
    assert all(each.startswith("Basic ") for each in here.secrets)
    assert set(there.secrets) == {""}


async def test_a_file_that_is_not_there_is_told_in_puppets_words(tmp_path):
    async with serving(Site()) as url:
        done = await applied(f"{url}/none", tmp_path)
    assert any(f"Could not retrieve information from environment production source(s) {url}/none" in each for each in done.messages)


def test_AG_14_there_is_no_client_certificate_to_show():
    assert not hasattr(WebSources(), "certificate")
    context = WebSources()._trust()
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"


@pytest.mark.parametrize(("setting", "got"), [("the store", True), ("", False), ("no such file", False), ("nonsense", False)])
async def test_a_server_of_a_ca_in_ssl_trust_store_is_trusted(setting, got, tmp_path, caplog):
    ca = ThrowAwayCa.new()
    (tmp_path / "the store").write_bytes(ca.pem)
    (tmp_path / "nonsense").write_text("no certificate")
    site = Site()
    async with serving(site, ca.serving(tmp_path)) as url:
        flags = {"vardir": str(tmp_path), "statedir": str(tmp_path), "ssl_trust_store": str(tmp_path / setting) if setting else ""}
        web_only = web_sources(load(AgentSettings, section="agent", flags=flags, conf=Conf()))
        found = SourceRouter(
            Binding(FILE_METADATA, Nothing()), Binding(FILE_CONTENT, Nothing()), environment="production", web=lambda: web_only
        )
        await apply(File(str(tmp_path / "got"), {"source": f"{url}/f"}), sources=found)
    assert (tmp_path / "got").exists() is got
    assert ("'ssl_trust_store' setting names no file" in caplog.text) is (setting in ("no such file", "nonsense"))
