from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from master.reports.processors import Http, Logged, Processed, Store, processors_for
from shared.data import plainyaml
from shared.errors import BadRequest, ConfigError
from shared.indirector import Binding, Request
from shared.models.report import REPORT, Log, Report
from shared.settings import Conf, MasterSettings, load
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import advance


def clock() -> datetime:
    return datetime(2026, 11, 20, 21, 48, 31, tzinfo=UTC)


def report(host: str = "n", *logs: Log) -> Report:
    return Report(name=host, time="2026-11-20T21:48:31Z", status="unchanged", logs=list(logs))


async def test_a_report_is_stored_by_host_and_minute(tmp_path: Path) -> None:
    answer = await Binding(REPORT, Processed({"store": Store(tmp_path, now=clock)})).save(report())
    path = tmp_path / "n" / "202611202148.yaml"
    assert answer == ["store"]
    assert path.read_text().startswith("--- !ruby/object:Puppet::Transaction::Report\n")
    assert plainyaml.loads(path.read_bytes())["host"] == "n"
    assert path.stat().st_mode & 0o777 == 0o640 and path.parent.stat().st_mode & 0o777 == 0o750


async def test_a_report_of_3x_is_stored_as_3x_wrote_it(tmp_path: Path) -> None:
    old = report().model_copy(update={"report_format": 4})
    await Store(tmp_path, now=clock).process(old)
    stored = plainyaml.loads((tmp_path / "n" / "202611202148.yaml").read_bytes(), aliases=True)
    assert (stored["report_format"], stored["kind"]) == (4, "apply")


async def test_a_report_of_an_older_agent_keeps_the_number_of_its_format(tmp_path: Path) -> None:
    await Store(tmp_path, now=clock).process(report().model_copy(update={"report_format": 10}))
    stored = plainyaml.loads((tmp_path / "n" / "202611202148.yaml").read_bytes())
    assert stored["report_format"] == 10 and "kind" not in stored


async def test_RPT_05_two_reports_of_one_minute_are_both_kept(tmp_path: Path) -> None:
    reports = Binding(REPORT, Processed({"store": Store(tmp_path, now=clock)}))
    await asyncio.gather(*(reports.save(report()) for _ in range(5)))
    names = sorted(path.name for path in (tmp_path / "n").iterdir())
    assert names == ["202611202148-1.yaml", "202611202148-2.yaml", "202611202148-3.yaml", "202611202148-4.yaml", "202611202148.yaml"]


async def test_the_reports_of_a_host_in_a_loop_are_all_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, now=clock)
    for _ in range(40):
        await store.process(report())
    names = {path.name for path in (tmp_path / "n").iterdir()}
    assert names == {"202611202148.yaml", *(f"202611202148-{number}.yaml" for number in range(1, 40))}
    (tmp_path / "n" / "202611202148-7.yaml").unlink()
    await store.process(report())
    assert len(list((tmp_path / "n").iterdir())) == 40


@pytest.mark.parametrize("host", ["..", ".", "a/b", "/x", "hello/..", ".hello", "hi..", "A"])
async def test_RPT_01_a_host_that_is_no_certname_is_not_stored(tmp_path: Path, host: str) -> None:
    store = Store(tmp_path / "reports", now=clock)
    with pytest.raises(BadRequest):
        await store.process(report(host))
    with pytest.raises(BadRequest):
        await store.forget(host)
    assert list(tmp_path.iterdir()) == []


async def test_a_hosts_reports_can_be_forgotten(tmp_path: Path) -> None:
    reports = Binding(REPORT, Processed({"store": Store(tmp_path, now=clock)}))
    await reports.save(report())
    assert await reports.destroy("n") == ["store"]
    assert await reports.destroy("n") == []


class Failing(Logged):
    async def process(self, report: Report) -> None:
        raise OSError(28, "No space left on device")


class Hanging(Logged):
    """Takes longer than any processor may."""

    async def process(self, report: Report) -> None:
        advance(300)
        await asyncio.Event().wait()


async def test_R_27_a_processor_that_fails_or_hangs_does_not_stop_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    processors = {"bad": Failing(), "slow": Hanging(), "store": Store(tmp_path, now=clock)}
    assert await Binding(REPORT, Processed(processors, timeout=300)).save(report()) == ["bad", "slow", "store"]
    assert (tmp_path / "n" / "202611202148.yaml").exists()
    assert "Report processor failed: bad of n" in caplog.text and "Report processor failed: slow of n" in caplog.text


async def test_the_log_processor_says_what_the_agent_said(caplog: pytest.LogCaptureFixture) -> None:
    line = Log(level="notice", message="created", source="/Stage[main]/File[/x]", tags=["notice"], time="2026-11-20T21:48:31Z")
    with caplog.at_level(logging.INFO, "puppet.report"):
        await Logged().process(report("n", line))
    assert [record.source for record in caplog.records] == ["//n//Stage[main]/File[/x]"]  # type: ignore[attr-defined]


def test_a_processor_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="No report named 'puppetdb'"):
        processors_for(["store", "puppetdb"], {"store": lambda: Store(Path("/x"))})
    assert processors_for(["none"], {}) == {}
    with pytest.raises(ConfigError, match="reporturl"):
        Http("ftp://x")


@asynccontextmanager
async def taking_reports(context: ssl.SSLContext, status: int = 200) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A web server over TLS, its port, and the bodies it got."""
    got: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        got.append(await request.read())
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/upload", take)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await listening.start()
    assert listening._server is not None
    try:
        yield listening._server.sockets[0].getsockname()[1], got  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("trusted", "settings", "taken"),
    [
        ("localcacert", {}, True),  # as Puppet has it: this site's CA and no other
        ("ssl_trust_store", {"report_include_system_store": "true"}, True),
        ("ssl_trust_store", {}, False),
        ("nobody", {"report_include_system_store": "true"}, False),
    ],
)
async def test_reports_go_to_a_server_of_a_ca_that_the_settings_trust(
    tmp_path: Path, trusted: str, settings: dict[str, str], taken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ca = ThrowAwayCa.new()
    pem = tmp_path / "ca.pem"
    pem.write_bytes(ca.pem)
    if trusted != "nobody":
        settings = {**settings, trusted: str(pem)}
    async with taking_reports(ca.serving(tmp_path)) as (port, got):
        flags = {"confdir": str(tmp_path / "conf"), "reporturl": f"https://localhost:{port}/upload", **settings}
        http = Http.of(load(MasterSettings, section="master", flags=flags, conf=Conf()))
        await Processed({"http": http}).save(Request("n", body=report()))
    assert len(got) == taken
    assert ("certificate verify failed" in caplog.text) is not taken


async def test_a_password_in_reporturl_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ca = ThrowAwayCa.new()
    (tmp_path / "ca.pem").write_bytes(ca.pem)
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    async with taking_reports(ca.serving(tmp_path), status=500) as (port, _):
        await Http(f"https://me:canary@localhost:{port}/upload", trust=lambda: trust).process(report())
    assert "Unable to submit report to https://localhost" in caplog.text and "canary" not in caplog.text
