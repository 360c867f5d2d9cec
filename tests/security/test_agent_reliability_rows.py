"""Rows of the reliability table about the agent: lost replies, clocks, kills, two at once, masters that are away or lie."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from agent.bootstrap import Bootstrap, BootstrapOptions
from agent.bootstrap.texts import NoCertificate
from agent.run.lock import RunLock
from agent.servers.http import HttpClient
from agent.servers.server import DialectCache
from agent.servers.sites import Site
from certs.certificates import BACKDATED
from certs.files.ssldir import SslDir
from certs.keys import KeyKind
from shared.data import plainyaml
from shared.errors import ConfigError, PeerUnreachable
from shared.process.processes import Process
from shared.wire.dialects import LEGACY, MODERN
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.pair import Pair
from tests.support.scripted_master import JSON, NAME, Scripted, catalog, file, reply, root_entry
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import until, wait_until


@pytest.mark.parametrize("legacy", [True, False])
async def test_R_11_a_request_whose_reply_was_lost_is_not_made_again_by_hand(tmp_path: Path, legacy: bool) -> None:
    ca = ThrowAwayCa.new()
    stored: dict[str, bytes] = {}

    def answer(ask: Ask) -> Reply:
        if ask.path.endswith("/certificate/ca"):
            return Reply(body=ca.pem)
        if "revocation" in ask.path:
            return Reply(body=ca.crl_pem())
        if ask.method == "PUT":
            if NAME in stored:
                return Reply(400, f"{NAME} already has a requested certificate; ignoring certificate request".encode())
            stored[NAME] = ask.body
            return Reply(cut=0, headers={"Content-Length": "10"})  # stored, and the reply is lost
        if "/certificate_request/" in ask.path:
            return Reply(body=stored[NAME]) if NAME in stored else Reply(404)
        return Reply(404)

    master = FakeMaster(ca.serving(tmp_path), answer)
    layout = SslDir.at(tmp_path / "ssl", NAME)

    async def run() -> None:
        options = BootstrapOptions(key=KeyKind("ec"), waitforcert=0)
        dialects = DialectCache(fixed=LEGACY if legacy else MODERN)
        site = Site("localhost", master.port)
        await Bootstrap(layout, site, options, HttpClient, dialects, now=lambda: datetime.now(UTC), tell=lambda text: None).run()

    async with master.running():
        with pytest.raises(PeerUnreachable):
            await run()
        with pytest.raises(NoCertificate):
            await run()
    assert sum(ask.method == "PUT" for ask in master.asked) == (1 if legacy else 2)
    ours = x509.load_pem_x509_csr(layout.request() or b"").public_key()
    assert x509.load_pem_x509_csr(stored[NAME]).public_key() == ours


@pytest.mark.parametrize(("minutes", "fine"), [(4, True), (6, False)])
async def test_R_28_a_crl_from_a_little_in_the_future_is_taken(
    tmp_path: Path, minutes: int, fine: bool, caplog: pytest.LogCaptureFixture
) -> None:
    site = Scripted(tmp_path)
    ahead = BACKDATED + timedelta(minutes=minutes)
    (site.agent_root / "ssl" / "crl.pem").write_bytes(site.ca.crl_pem(now=datetime.now(UTC) + ahead))
    assert await site.run() == (0 if fine else 1)
    assert ("not yet valid, verify time is synchronized" in caplog.text) is not fine


@pytest.mark.slow
async def test_R_29_a_master_that_falls_silent_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/catalog/": Reply(hang=True)})
    assert await site.run(http_read_timeout=1, usecacheonfailure=False) == 1
    assert "did not answer in time" in caplog.text
    assert not (site.state / "agent_catalog_run.lock").exists()


@pytest.mark.slow
async def test_R_29_a_run_that_takes_too_long_is_ended_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/catalog/": Reply(hang=True)})
    assert await site.run(runtimeout=1) == 1
    assert "did not complete within 1 seconds and was terminated" in caplog.text
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"name": "other.test"}', b"\0" * 100, json.dumps(catalog(name="other.test")).encode()]
)
async def test_R_33_a_cached_catalog_that_is_bad_is_moved_aside(tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/catalog/": Reply(500, b"down")})
    site.cached.parent.mkdir(parents=True)
    site.cached.write_bytes(body)
    assert await site.run() == 1
    assert not site.cached.exists()
    assert site.cached.with_name(site.cached.name + ".bad").read_bytes() == body
    assert "Could not retrieve catalog; skipping run" in caplog.text


async def test_R_32_a_cached_catalog_of_another_environment_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "file"
    site = Scripted(
        tmp_path,
        {"/catalog/": reply(catalog(file(path, "x"))), "/node/": reply({"name": NAME, "environment": "production", "parameters": {}})},
    )
    assert await site.run() == 2
    path.unlink()
    site.answers["/catalog/"] = Reply(503, b"down")
    site.answers["/node/"] = reply({"name": NAME, "environment": "other", "parameters": {}})
    assert await site.run(use_last_environment=False) == 1
    assert not path.exists()
    assert "Not using cached catalog because its environment 'production' does not match 'other'" in caplog.text


@pytest.mark.parametrize(
    "answer", [Reply(503, b"down"), Reply(413, b"too large"), Reply(hang=True), Reply(cut=0, headers={"Content-Length": "9"})]
)
@pytest.mark.slow
async def test_R_34_a_report_that_cannot_be_sent_changes_nothing_about_the_run(
    tmp_path: Path, answer: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(file(path, "x"))), "/report/": answer})
    assert await site.run(report_timeout=1) == 2
    assert "Could not send report" in caplog.text
    assert plainyaml.loads((site.public / "last_run_summary.yaml").read_bytes())["changes"]["total"] == 1
    assert (site.state / "last_run_report.yaml").exists()


@pytest.mark.parametrize(
    "name", ["last_run_summary.yaml", "state.yaml", "transactionstore.yaml", "agent_catalog_run.lock", "dialects.json"]
)
@pytest.mark.parametrize("body", [b"", b"\xff\xfe garbage", b"[1, 2", b"99999999"])
async def test_R_35_state_files_that_are_corrupt_do_not_stop_a_run(tmp_path: Path, name: str, body: bytes) -> None:
    site = Scripted(tmp_path)
    folder = site.public if name == "last_run_summary.yaml" else site.state
    folder.mkdir(parents=True, mode=0o750)
    (folder / name).write_bytes(body)
    assert await site.run(scheme="auto" if name == "dialects.json" else "b") == 0


@pytest.mark.parametrize("body", [b"", b"garbage", b'{"disabled_message": 5}'])
async def test_R_35_a_corrupt_disabled_file_still_disables(tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path)
    site.state.mkdir(parents=True)
    (site.state / "agent_disabled.lock").write_bytes(body)
    caplog.set_level(logging.INFO, "puppet")
    assert await site.run() == 1
    assert "administratively disabled (Reason: 'reason not specified');" in caplog.text
    assert site.asked() == []


@pytest.mark.slow
@pytest.mark.parametrize("header", ["1000000000", "0", "-7", "Fri, 31 Dec 2999 23:59:59 GMT", "soon"])
async def test_R_40_retry_after_is_obeyed_within_limits(tmp_path: Path, header: str, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/catalog/": Reply(503, b"busy", {"Retry-After": header})})
    assert await site.run(http_longest_wait=1, http_retries=1, usecacheonfailure=False, http_read_timeout=2) == 1


@pytest.mark.parametrize(
    "answer", [Reply(body=b"<html>", headers={"Content-Type": "text/html"}), Reply(body=b"[{", headers=JSON), Reply(500), Reply(body=b"")]
)
async def test_R_40_plugins_are_not_removed_because_a_master_lies(tmp_path: Path, answer: Reply) -> None:
    content = b"x"
    entry = root_entry(
        relative_path="kept.rb",
        type="file",
        mode=420,
        checksum={"type": "sha256", "value": "{sha256}2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
    )
    site = Scripted(tmp_path, {"/file_metadatas/plugins": reply([root_entry(), entry]), "/file_content/": Reply(body=content)})
    assert await site.run() == 0
    kept = site.agent_root / "var" / "lib" / "kept.rb"
    assert kept.read_bytes() == content
    site.answers["/file_metadatas/plugins"] = answer
    await site.run()
    assert kept.read_bytes() == content


@pytest.mark.parametrize("point", ["agent.plugin-written", "agent.catalog-saving", "agent.catalog-cached"])
async def test_R_36_a_full_disk_leaves_no_half_file_and_the_report_is_sent(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    digest = "{sha256}2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    plugin = root_entry(relative_path="a.rb", type="file", mode=420, checksum={"type": "sha256", "value": digest})
    site = Scripted(
        tmp_path,
        {
            "/file_metadatas/plugins": reply([root_entry(), plugin]),
            "/file_content/": Reply(body=b"x"),
            "/catalog/": reply(catalog(file(path, "x"))),
        },
    )
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", f"{point}=enospc")
    assert await site.run() == 2
    assert "No space left on device" in caplog.text
    assert path.read_text() == "x"
    assert not list(site.agent_root.rglob("*.tmp"))
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"
    monkeypatch.delenv("BUNRAKU_FAILPOINTS")
    assert await site.run() == 0
    assert (site.agent_root / "var" / "lib" / "a.rb").read_bytes() == b"x"
    assert site.cached.exists()


# --- two runs at once


def test_R_38_only_one_of_many_takes_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "state" / "run.lock"
    first, second = RunLock(path), RunLock(path)
    assert first.acquire()
    assert path.read_text() == str(os.getpid())
    assert not second.acquire()
    first.release()
    assert not path.exists()
    assert second.acquire()
    second.release()


@pytest.mark.parametrize("text", ["", "garbage", "999999999", "-1", str(2**31)])
def test_R_38_a_lock_that_a_dead_process_left_is_taken_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.lock"
    path.write_text(text)
    lock = RunLock(path)
    assert lock.acquire()
    lock.release()


HOLDER = "import sys, time; sys.argv[0] = 'puppet agent'; print('up', flush=True); time.sleep(60)"


@contextmanager
def another(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process beside this one, until the end of the block."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def a_puppet() -> Iterator[int]:
    """The pid of a process that has the command line of an agent that applies a catalog."""
    with another([sys.executable, "-c", HOLDER, "puppet agent: applying"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid


@pytest.mark.slow
def test_R_38_a_live_puppet_that_only_wrote_its_pid_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with a_puppet() as pid:
        path.write_text(str(pid))
        assert not RunLock(path).acquire()
    assert RunLock(path).acquire()


def test_AG_19_a_program_that_only_calls_itself_puppet_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with another(["puppet agent: applying", "60"], executable="/bin/sleep") as other:
        path.write_text(str(other.pid))
        wait_until(lambda: "puppet agent" in Process(other.pid).command_line())  # a process that has just begun has none yet
        assert RunLock(path).acquire()


@pytest.mark.slow
def test_AG_19_a_puppet_that_is_younger_than_the_lock_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with a_puppet() as pid:
        path.write_text(str(pid))
        os.utime(path, (0, time.time() - 3600))  # left by a process whose number this one got
        assert RunLock(path).acquire()


@pytest.mark.parametrize("leads_to", ["/etc/passwd", "missing", "run.lock", "/dev/zero"])
def test_AG_19_a_link_as_lock_is_replaced_with_a_warning(tmp_path: Path, leads_to: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "puppet")
    path = tmp_path / "run.lock"
    path.symlink_to(leads_to)
    before = Path("/etc/passwd").read_bytes()
    lock = RunLock(path)
    assert lock.acquire()
    assert not path.is_symlink() and path.read_text() == str(os.getpid())
    assert caplog.messages == [f"The lock {path} is not a regular file but a link to '{leads_to}'; it is replaced"]
    assert Path("/etc/passwd").read_bytes() == before and not (tmp_path / "missing").exists()
    lock.release()


def test_AG_19_a_pipe_as_lock_is_replaced_and_a_directory_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert RunLock(tmp_path / "fifo").acquire()
    with pytest.raises(ConfigError, match="is a directory"):
        RunLock(tmp_path).acquire()


CONTENDER = """
import sys, time
from pathlib import Path
from agent.run.lock import RunLock
path, record = Path(sys.argv[1]), Path(sys.argv[2])
entered, end = 0, time.monotonic() + 60
while entered < 10 and time.monotonic() < end:
    lock = RunLock(path)
    if lock.acquire():
        entered += 1
        with record.open("a") as file:
            file.write("in\\n")
        time.sleep(0.002)
        with record.open("a") as file:
            file.write("out\\n")
        lock.release()
    time.sleep(0.001)
"""


@pytest.mark.slow
def test_R_38_no_two_processes_are_ever_in_a_run_together(tmp_path: Path) -> None:
    record = tmp_path / "record"
    command = [sys.executable, "-c", CONTENDER, str(tmp_path / "run.lock"), str(record)]
    contenders = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(4)]
    assert [each.wait(timeout=90) for each in contenders] == [0] * 4
    assert record.read_text().split() == ["in", "out"] * 40


@pytest.mark.slow
async def test_R_38_a_run_while_another_is_on_says_so_and_ends_with_1(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    site = Scripted(tmp_path)
    lock = RunLock(site.state / "agent_catalog_run.lock")
    assert lock.acquire()
    try:
        assert await site.run() == 1
        assert f"already in progress; skipping  ({site.state}/agent_catalog_run.lock exists)" in caplog.text
        assert site.asked() == []
        assert await site.run(waitforlock=1, maxwaitforlock=1) == 1
        assert "maxwaitforlock timeout has been exceeded" in caplog.text
    finally:
        lock.release()
    assert await site.run() == 0


# --- cut after any number of bytes


def whole(path: Path) -> dict[str, Reply]:
    """A site whose answers are all right; the file resource has a source."""
    body = b"x" * 300
    digest = "{sha256}" + hashlib.sha256(body).hexdigest()
    known = root_entry(relative_path=None, type="file", mode=420, checksum={"type": "sha256", "value": digest})
    resource = {**file(path, ""), "parameters": {"ensure": "file", "source": "puppet:///modules/m/f"}}
    return {
        "recurse=false": reply([root_entry()]),
        "/file_metadatas/plugins": reply([root_entry(), {**known, "relative_path": "a.rb"}]),
        "/file_content/plugins/": Reply(body=body, headers={"Content-Type": "application/octet-stream"}),
        "/file_metadata/": reply(known),
        "/file_content/modules/": Reply(body=body, headers={"Content-Type": "application/octet-stream"}),
        "/catalog/": reply(catalog(resource)),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["/file_metadatas/plugins", "/file_content/plugins/", "/catalog/", "/file_metadata/", "/file_content/modules/"]
)
async def test_R_31_an_answer_that_is_cut_off_anywhere_leaves_nothing_half_done(tmp_path: Path, part: str) -> None:
    path = tmp_path / "file"
    site = Scripted(tmp_path)
    good = whole(path)
    plugin = site.agent_root / "var" / "lib" / "a.rb"
    body = good[part].body
    for cut in [0, 1, *range(37, len(body), max(40, len(body) // 7)), len(body) - 1]:
        site.answers = {**good, part: replace(good[part], cut=cut)}
        code = await site.run(usecacheonfailure=False)
        assert code == (4 if part in ("/file_metadata/", "/file_content/modules/") else 1), cut
        for each in (path, plugin):
            assert not each.exists() or each.read_bytes() == b"x" * 300, cut
        assert not list(tmp_path.rglob("*.tmp")), cut
        site.answers = dict(good)
        assert await site.run() in (0, 2), cut
        assert path.read_bytes() == plugin.read_bytes() == b"x" * 300
        path.unlink()
        plugin.unlink()


# --- real processes


def command(site: Scripted, **more: Any) -> list[str]:
    options = {
        "confdir": site.agent_root,
        "vardir": site.agent_root / "var",
        "logdir": site.agent_root / "log",
        "rundir": site.agent_root / "run",
        "server": "localhost",
        "masterport": site.master.port,
        "certname": NAME,
        "key_type": "ec",
        **more,
    }
    return [sys.executable, "-m", "agent", "--test", *(f"--{name}={value}" for name, value in options.items())]


async def started(site: Scripted, **more: Any) -> asyncio.subprocess.Process:
    environ = {**os.environ, "BUNRAKU_FAILPOINTS": more.pop("failpoints", "")}
    return await asyncio.create_subprocess_exec(
        *command(site, **more),
        cwd=Path(__file__).parents[2],
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def read_until(process: asyncio.subprocess.Process, text: str) -> None:
    """Read what a process prints up to a line with a text."""
    assert process.stdout is not None
    lines = [""]
    while text not in lines[-1]:
        lines.append((await process.stdout.readline()).decode())
        assert lines[-1], lines


ENROLLING = [
    "agent.key-saved",
    "agent.ca-saved",
    "agent.crl-saved",
    "agent.csr-sent",
    "agent.csr-saved",
    "agent.certificate-saved",
]
RUNNING = [
    "agent.locked",
    "agent.node-done",
    "agent.plugin-written",
    "agent.plugin-fetched",
    "agent.pluginsync-done",
    "agent.facts-done",
    "agent.catalog-done",
    "agent.catalog-cached",
    "agent.apply",
    "agent.apply-done",
    "agent.summary-written",
    "agent.report-done",
    "agent.report-kept",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "points"),
    [
        ("a", random.Random(30).sample(ENROLLING + RUNNING, 4)),
        ("b", ENROLLING),
        pytest.param("b", RUNNING, marks=pytest.mark.full),  # tests/e2e/test_killed_agent.py has an agent with more work to do
    ],
    ids=["a", "b, enrolling", "b, running"],
)
async def test_R_30_killed_at_any_step_the_next_run_converges(tmp_path: Path, scheme: str, points: list[str]) -> None:
    pair = Pair(tmp_path)
    async with pair.mastered():
        undisturbed: dict[str, str] | None = None
        for number, point in enumerate(points):
            root = tmp_path / f"agent{number}"
            options = {
                "confdir": root,
                "vardir": root / "var",
                "logdir": root / "log",
                "rundir": root / "run",
                "server": "localhost",
                "masterport": pair.port,
                "certname": f"agent{number}.{scheme}.test",
                "key_type": "ec",
                "scheme": scheme,
            }
            argv = [sys.executable, "-m", "agent", "--test", *(f"--{name}={value}" for name, value in options.items())]
            killed = await _ended(argv, f"{point}=kill")
            assert killed[0] == -signal.SIGKILL, f"{point}: {killed}"
            code, text = await _ended(argv, "")
            assert code in (0, 2), f"after {point}: {text}"
            code, text = await _ended(argv, "")
            assert code == 0, f"after {point}, second: {text}"
            assert not list(root.rglob("*.tmp")), point
            assert not (root / "var" / "state" / "agent_catalog_run.lock").exists()
            found = {name: text for name, text in pair.contents().items() if name != "facts"}
            undisturbed = undisturbed or found
            assert found == undisturbed


async def _ended(argv: list[str], failpoints: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "BUNRAKU_FAILPOINTS": failpoints},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode()


@pytest.mark.slow
async def test_R_39_a_signal_in_a_run_ends_it_between_two_resources_with_a_report(tmp_path: Path) -> None:
    after = tmp_path / "after"
    begun = tmp_path / "begun"
    may_end = tmp_path / "may end"
    waits = f'touch "{begun}"; until test -e "{may_end}"; do sleep 0.1; done'
    parameters = {"command": ["/bin/sh", "-c", waits], "before": f"File[{after}]"}
    nap = {"type": "Exec", "title": "nap", "tags": ["exec"], "exported": False, "parameters": parameters}
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(nap, file(after, "x")))})
    async with site.master.running():
        process = await started(site)
        await until(begun.exists)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            await read_until(process, "Caught TERM; exiting")
            may_end.touch()
            await process.communicate()
    assert not after.exists()
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"
    assert not (site.state / "agent_catalog_run.lock").exists()


@pytest.mark.slow
async def test_R_39_a_signal_before_the_catalog_ends_the_run_at_once(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/certificate": Reply(404)}, certified=False)
    ca = site.ca
    site.answers = {
        "/certificate/ca": Reply(body=ca.pem),
        "revocation": Reply(body=ca.crl_pem()),
        "/certificate_request/": Reply(),
        "/certificate/": Reply(404),
    }
    async with site.master.running():
        process = await started(site, waitforcert=60)
        async with asyncio.timeout(60):
            await read_until(process, "Will try again in 60 seconds")
            process.send_signal(signal.SIGINT)
            out, _ = await process.communicate()
    assert process.returncode == 1
    assert "Caught INT; exiting" in out.decode()
