"""Rows about HUP: it has a daemon start or read its files anew, and ends none at any moment of its start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
# Sends HUP before each import that the program's modules make, so before, within and after each part of its start.
HANGUPS = """
import gc, os, runpy, signal, sys
class Hangups:
    def find_spec(self, name, path=None, target=None):
        if sys.modules["__main__"].__spec__ is not None:  # the module runs
            os.kill(os.getpid(), signal.SIGHUP)
sys.meta_path.insert(0, Hangups())
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
PROGRAMS = {"puppet agent": ["bunraku", "agent"], "python -m agent": ["agent"]}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_R_41_hup_at_any_moment_of_a_start_does_not_end_the_agent(tmp_path: Path, program: str) -> None:
    settings = {name: tmp_path / name for name in ("confdir", "vardir", "rundir", "logdir")}
    options = [f"--{name}={path}" for name, path in settings.items()]
    options += ["--no-daemonize", "--verbose", "--splay", "--splaylimit=36000", "--certname=agent.test", f"--logdest={tmp_path}/log"]
    script = [sys.executable, "-I", "-c", HANGUPS, *PROGRAMS[program]]
    process = subprocess.Popen([*script, *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def log() -> str:
        return (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""

    try:
        # The signals that came before are kept, so that it starts anew, which repeats the start without them.
        wait_until(lambda: process.poll() is not None or log().count("Sleeping for") >= 2, describe=log)
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert "Restarting" in log()
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)  # it may be starting anew once more
    finally:
        process.kill()
        process.communicate()


SERVERS = {
    "puppet master": (["bunraku", "master", "--masterport=0"], "Serving Puppet on"),
    "python -m master": (["master", "--masterport=0"], "Serving Puppet on"),
    "puppet db": (["bunraku", "db", "--store_port=0"], "Serving the store at"),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", SERVERS)
def test_R_41_hup_at_any_moment_of_a_start_does_not_end_a_server(tmp_path: Path, program: str) -> None:
    words, status = SERVERS[program]
    settings = {name: tmp_path / name for name in ("confdir", "vardir", "rundir", "logdir", "ssldir")}
    options = [f"--{name}={path}" for name, path in settings.items()]
    options += [
        "--no-daemonize",
        "--bindaddress=127.0.0.1",
        "--certname=localhost",
        "--key_type=ec",
        "--user=root",
        f"--logdest={tmp_path}/log",
    ]
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", HANGUPS, *words, *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    def log() -> str:
        return (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""

    try:
        wait_until(lambda: process.poll() is not None or (status in log() and "Caught HUP" in log()), describe=log)
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


WORDS = {
    "agent": True,
    "agent --no-daemonize": True,
    "agent --test": False,
    "agent -t": False,
    "agent --server x --onetime": False,
    "apply -t": False,
    "master": True,
    "master --no-daemonize --verbose": True,
    "master --check --json": False,
    "master --compile x": False,
    "master -c x": False,
    "db": True,
    "db --no-daemonize": True,
    "db export x": False,
    "apply agent": False,
}


@pytest.mark.parametrize("words", WORDS)
def test_R_41_the_wrapper_ignores_hup_for_a_daemon_only(tmp_path: Path, words: str) -> None:
    """What is started by hand ends with its terminal, as other programs do."""
    (tmp_path / "python3").write_text('#!/bin/sh\ngrep SigIgn: /proc/self/status\necho "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    first, *others = words.split()
    commands = [("puppet", [first, *others])]
    if (ROOT / "bin" / f"puppet-{first}").exists():
        commands.append((f"puppet-{first}", others))
    for program, arguments in commands:
        shutil.copy(ROOT / "bin" / program, tmp_path)
        printed = subprocess.run([tmp_path / program, *arguments], capture_output=True, text=True, check=True).stdout
        ignored = int(printed.split()[1], 16) >> (signal.SIGHUP - 1) & 1
        assert bool(ignored) == (WORDS[words] or _is_ignored_here()), program
        assert printed.splitlines()[1].endswith(" ".join(arguments))


def _is_ignored_here() -> bool:
    """Whether these tests were started by nohup."""
    (line,) = [line for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines() if line.startswith("SigIgn:")]
    return bool(int(line.split()[1], 16) >> (signal.SIGHUP - 1) & 1)
