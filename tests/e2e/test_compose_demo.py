"""`make compose-demo` with each Compose of this machine, on its container engine or on one that is started for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.compose import BASE, COMPOSES, compose_version

pytestmark = [pytest.mark.works_with("Packages, services, containers and proxies", "containers"), pytest.mark.slow, pytest.mark.full]

ROOT = Path(__file__).parent.parent.parent
START = 60.0  # seconds for an engine to answer
DEMO = 1200.0  # seconds for all of it, images included


def answers(environ: dict[str, str]) -> bool:
    return subprocess.run(["docker", "info"], env=environ, capture_output=True, timeout=60).returncode == 0


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment in which `docker` finds an engine; one that is started here ends with the test."""
    found = dict(os.environ)
    if shutil.which("docker") is None:
        pytest.skip("there is no docker command here")
    if not (BASE / "base.tar").exists():
        pytest.skip("there is no base here from which images are built without a registry; `make compose-base` makes it")
    if answers(found):
        yield found
        return
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("no container engine answers, and none can be started: that needs root and dockerd")
    root = tmp_path_factory.mktemp("engine")
    found["DOCKER_HOST"] = f"unix://{root}/docker.sock"
    # Without a bridge and rules of its own: nothing of it stays on this machine, and its containers reach each other only.
    alone = ["--bridge=none", "--iptables=false", "--ip6tables=false"]
    places = [f"--data-root={root}/data", f"--exec-root={root}/exec", f"--pidfile={root}/pid", f"--host={found['DOCKER_HOST']}"]
    log = root / "log"
    with log.open("wb") as output:
        engine = subprocess.Popen(
            ["dockerd", *alone, *places], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + START
        while not answers(found):
            if engine.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"the container engine does not start here: {log.read_text()[-1000:]}")
            time.sleep(0.2)
        yield found
    finally:
        engine.send_signal(signal.SIGTERM)
        try:
            engine.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(engine.pid, signal.SIGKILL)
            engine.wait()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module", params=COMPOSES, ids="-".join)
def told(request: pytest.FixtureRequest, environ: dict[str, str]) -> str:
    """What the demo says, with one Compose after the other; with two that are one program in two places only once."""
    compose: tuple[str, ...] = request.param
    versions = {each: compose_version(*each) for each in COMPOSES}
    if not versions[compose]:
        pytest.skip(f"there is no {' '.join(compose)} here")
    if compose != next(each for each in COMPOSES if versions[each] == versions[compose]):
        pytest.skip(f"{' '.join(compose)} is of the version {versions[compose]}, which was seen already")
    command = [sys.executable, str(ROOT / "demo" / "compose.py"), *compose]
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=DEMO)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-8000:]
    return done.stdout


def test_one_agent_is_signed_by_the_policy_and_the_other_by_a_person(told: str) -> None:
    before, _, after = told.partition("puppet cert sign agent2")
    assert "agent1 was signed by the policy" in before
    waiting = before.rpartition("puppet cert list")[2]
    assert '"agent2" (SHA256)' in waiting
    assert '"agent1"' not in waiting
    assert "Notice: Signed certificate request for agent2" in after
    for name in ("agent1", "agent2", "master", "puppetboard"):
        assert re.search(rf'\+ "{name}" +\(SHA256\)', after)


def test_the_master_is_not_root(told: str) -> None:
    match = re.search(r"uid=(\d+)\(puppet\)", told)
    assert match is not None
    assert int(match[1]) > 0


def test_both_agents_report_what_they_changed_and_a_second_run_changes_nothing(told: str) -> None:
    reports = re.findall(r"(agent\d): (\w+), (\d+) of \d+ resources changed", told)
    assert [(name, status) for name, status, _ in reports] == [("agent1", "changed"), ("agent1", "unchanged"), ("agent2", "changed")]
    assert told.partition("Two masters")[0].count("File[/srv/demo/motd]") == 2


def test_puppetboard_shows_both_agents_with_what_their_last_runs_did(told: str) -> None:
    lines = re.findall(r"http://127\.0\.0\.1:\d+/nodes lists (agent\d): (\w+)", told)
    assert lines == [("agent1", "unchanged"), ("agent2", "changed")]


def test_an_agent_gets_its_certificate_and_runs_while_either_of_two_masters_is_stopped(told: str) -> None:
    first, second = told.rpartition("Two masters behind HAProxy")[2].split("stop master2")
    assert "stop master1" in first
    assert "Signed" in first or "Caching certificate for agent3" in first
    assert "File[/srv/demo/motd]" in first
    assert "Applied catalog in" in first and "Applied catalog in" in second
    assert "File[/srv/demo/motd]" not in second


def test_no_container_and_no_volume_stays(told: str, environ: dict[str, str]) -> None:
    for what in (["ps", "--all"], ["volume", "ls"]):
        command = ["docker", *what, "--quiet", "--filter", "label=com.docker.compose.project=bunraku-demo"]
        assert subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60).stdout == ""
