"""`puppet agent`: what the options mean, and the commands that do no run."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.cli import TEST, load_settings, main, parse, process_age, run
from agent.process.agent import bootstrap_options, state_directories
from agent.run.lock import DisabledLock
from shared.errors import ConfigError, Unsupported
from shared.settings import AgentSettings, Conf, load
from tests.support.scripted_master import NAME, Scripted
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("argv", "flags"),
    [
        (["--server", "puppet1", "--noop"], {"server": "puppet1", "noop": True}),
        (["--serverport=8141", "-w", "0", "-v"], {"masterport": "8141", "waitforcert": "0", "verbose": True}),
        (["--no-daemonize", "--onetime", "-f", "web1"], {"daemonize": False, "onetime": True, "certname": "web1"}),
        (["--fqdn", "web1", "-d", "-l", "/var/log/x"], {"certname": "web1", "debug": True, "logdest": "/var/log/x"}),
        (["--job-id", "7", "--skip_tags", "a,b"], {"job_id": "7", "skip_tags": "a,b"}),
        (["--test"], TEST),
        (["-t", "--usecacheonfailure", "--no-show_diff"], {**TEST, "usecacheonfailure": True, "show_diff": False}),
    ],
)
def test_options_are_settings(argv: list[str], flags: dict[str, Any]) -> None:
    assert parse(argv)[1] == flags


@pytest.mark.parametrize(
    ("argv", "reason", "flags"),
    [
        (["--disable"], "", {}),
        (["--disable", "kernel upgrade", "--verbose"], "kernel upgrade", {"verbose": True}),
        (["--disable", "--confdir", "/x"], "", {"confdir": "/x"}),
        (["--disable=why"], "why", {}),
    ],
)
def test_the_reason_for_disabling_may_be_left_out(argv: list[str], reason: str, flags: dict[str, Any]) -> None:
    options, given = parse(argv)
    assert (options.disable, given) == (reason, flags)


@pytest.mark.parametrize(
    ("argv", "error", "text"),
    [
        (["--nosuch"], ConfigError, "invalid option: --nosuch"),
        (["file.pp"], ConfigError, "does not take parameters: file.pp"),
        (["--listen"], Unsupported, "The option --listen of puppet agent is not supported"),
        (["--server"], ConfigError, "missing argument: --server"),
    ],
)
def test_what_is_not_understood_is_named(argv: list[str], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        parse(argv)


def options(root: Path) -> list[str]:
    return ["--confdir", str(root), "--vardir", str(root / "var"), "--rundir", str(root / "run"), "--certname", NAME]


def test_disable_and_enable_write_and_remove_the_file(tmp_path: Path) -> None:
    lock = tmp_path / "var" / "state" / "agent_disabled.lock"
    assert run([*options(tmp_path), "--disable", "kernel upgrade"]) == 0
    assert json.loads(lock.read_text()) == {"disabled_message": "kernel upgrade"}
    assert run([*options(tmp_path), "--disable"]) == 0
    assert json.loads(lock.read_text()) == {"disabled_message": "reason not specified"}
    assert run([*options(tmp_path), "--enable"]) == 0
    assert not lock.exists()


def test_the_fingerprint_is_printed_or_its_absence_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*options(tmp_path), "--fingerprint"]) == 1
    assert "neither the certificate, nor the certificate request" in capsys.readouterr().err
    ThrowAwayCa.new().ssldir(tmp_path / "ssl", NAME)
    assert run([*options(tmp_path), "--fingerprint", "--digest", "sha1"]) == 0
    assert capsys.readouterr().out.startswith("(SHA1) ")


def test_a_run_without_its_client_has_nothing_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no client"):
        run([*options(tmp_path), "--onetime", "--no-client"])


def test_a_file_with_errors_is_left_out_whole_and_named(tmp_path: Path) -> None:
    (tmp_path / "puppet.conf").write_text("[agent]\nserver = other\nthis is no setting\n")
    settings, _, problems = load_settings({"confdir": str(tmp_path), "certname": NAME})
    assert settings.server == "puppet"
    assert "the whole file is left out" in problems[0]
    assert "line: 3" in problems[0]


def test_settings_of_a_master_in_the_same_file_are_no_problem_and_typing_errors_are(tmp_path: Path) -> None:
    (tmp_path / "puppet.conf").write_text("[main]\nautosign = true\n[agent]\nrunintervall = 5m\n")
    _, _, problems = load_settings({"confdir": str(tmp_path), "certname": NAME})
    assert len(problems) == 1
    assert "Did you mean runinterval?" in problems[0]


def settings(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": NAME, **flags}, conf=Conf())


@pytest.mark.parametrize(
    ("flags", "given", "seconds"),
    [({}, None, 120), ({"onetime": True}, None, 0), ({"onetime": True}, 10, 10), ({"waitforcert": "1m"}, None, 60), ({}, 0, 0)],
)
def test_one_run_does_not_wait_for_its_certificate_unless_told_to(flags: dict[str, Any], given: int | None, seconds: int) -> None:
    assert bootstrap_options(settings(**flags), given).waitforcert == seconds


@pytest.mark.parametrize(("text", "value"), [("true", "chain"), ("leaf", "leaf"), ("false", False)])
def test_revocation_may_be_switched_off(text: str, value: object) -> None:
    assert bootstrap_options(settings(certificate_revocation=text)).revocation == value


def test_state_directories_that_are_missing_are_made_and_others_only_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ssl").mkdir()
    made, looked = state_directories(settings(confdir=str(tmp_path), vardir=str(tmp_path / "var")))
    assert tmp_path / "var" / "state" in made
    assert looked[:2] == [tmp_path, tmp_path / "ssl"]


def test_the_process_knows_its_age() -> None:
    assert 0 < process_age() < 24 * 3600


@pytest.mark.slow
def test_an_unknown_option_ends_with_1_and_one_line() -> None:
    done = subprocess.run([sys.executable, "-m", "agent", "--nosuch"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Error: Could not parse application options: invalid option: --nosuch"
    assert "Traceback" not in done.stderr


async def _started_daemon(site: Scripted) -> asyncio.subprocess.Process:
    folders = {"confdir": site.agent_root, "vardir": site.agent_root / "var", "rundir": site.agent_root / "run"}
    argv = [word for name, folder in folders.items() for word in (f"--{name}", str(folder))]
    argv += ["--server", "localhost", "--masterport", str(site.master.port), "--certname", NAME, "--no-daemonize", "--verbose"]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", *argv, "--scheme", "b"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def _end_daemon(process: asyncio.subprocess.Process) -> str:
    """Stop it as an administrator would; return its output."""
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    return output.decode()


@pytest.mark.slow
async def test_the_daemon_runs_at_once_again_when_told_and_ends_cleanly(tmp_path: Path) -> None:
    site = Scripted(tmp_path)
    pidfile = site.agent_root / "run" / "agent.pid"
    async with site.master.running():
        process = await _started_daemon(site)
        try:
            await until(lambda: _reports(site) == 1)
            assert pidfile.read_text().strip() == str(process.pid)
            assert Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"puppet agent")
            assert Path(f"/proc/{process.pid}/comm").read_text() == "puppet-agent\n"  # Ruby agents look at this
            await until(lambda: not _children(process.pid))  # its run has ended
            process.send_signal(signal.SIGUSR1)
            await until(lambda: _reports(site) == 2)
            output = await _end_daemon(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0
    assert "Caught USR1; storing run" in output
    assert "Caught TERM; exiting" in output
    assert not pidfile.exists()


@pytest.mark.slow
async def test_a_daemon_holds_no_more_memory_after_many_runs_than_after_the_first(tmp_path: Path) -> None:
    """Each run has a process of its own, which takes all that it needed along."""
    site = Scripted(tmp_path)
    async with site.master.running():
        process = await _started_daemon(site)
        try:
            await until(lambda: _reports(site) == 1)
            await until(lambda: not _children(process.pid))
            first = _anonymous_memory(process.pid)
            for number in range(2, 12):
                process.send_signal(signal.SIGUSR1)
                await until(lambda number=number: _reports(site) == number)
                await until(lambda: not _children(process.pid))
            last = _anonymous_memory(process.pid)
            await _end_daemon(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert last <= first * 1.02 + MALLOC_STEP


MALLOC_STEP = 132  # kB, by which glibc's heap grows


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def _anonymous_memory(pid: int) -> int:
    """Return the kB of memory that belong to a process alone, or did before it was forked."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1])


def _reports(site: Scripted) -> int:
    return sum("/report/" in line for line in site.asked())


def test_a_lock_file_that_cannot_be_read_is_not_called_disabled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "var/state/agent_disabled.lock").mkdir(parents=True)
    folders = ["--confdir", str(tmp_path), *(f"--{name}={tmp_path / 'var'}" for name in ("vardir", "logdir", "rundir"))]
    assert main(["--onetime", "--no-daemonize", *folders, "--server", "localhost", "--masterport", "1"]) == 1
    said = capsys.readouterr()
    assert f"Could not read {tmp_path}/var/state/agent_disabled.lock, which marks the agent as disabled: not a regular file" in said.err
    assert "administratively disabled" not in said.out + said.err


def test_who_may_not_read_the_lock_file_is_told_to_be_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="Permission denied") as caught:
        DisabledLock(tmp_path / "lock").reason()
    assert caught.value.hint == "Run the agent as root (sudo)."
