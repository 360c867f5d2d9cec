"""
The pair in containers: a master that is not root, an agent that a policy signs, one that a person signs, and Puppetboard; then two masters
behind a balancer, with their state in PostgreSQL, of which either is stopped while an agent runs.

`make compose-demo` runs this; it needs a container engine with Docker's interface and Compose: 1.29, or 2 as a plugin or a program.
Which one is taken, where there are several, can be said (`make compose-demo COMPOSE=docker-compose`); else it is the plugin.
What it started is gone when it ends, volumes included. Without a registry: `make compose-base` first.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from demo.run import Failed, say, title  # noqa: E402
from shared.data import plainyaml  # noqa: E402
from tests.gate import caches  # noqa: E402

BASE = caches.folder("compose-base")  # what `make compose-base` made
ENV = ROOT / ".env"  # Compose reads it by itself
MASTERS = "demo/containers/masters"
PROJECT = "bunraku-demo"
COMPOSES = (("docker", "compose"), ("docker-compose",))  # as it is called, the better one first
AGENTS = ("agent1", "agent2")
REPORTS = "/var/lib/puppet/.puppet/var/reports"
BUILD = 900.0  # seconds
NODE_ROW = re.compile(r'<tr>\s*<td data-order="(\w+)">.*?<td><a href="[^"]*">([^<]+)</a></td>', re.DOTALL)  # of Puppetboard's page
RUN = 120.0  # seconds for a master to be healthy, for an agent to end


@dataclass
class Engine:
    """Docker's command and Compose's, as they are called here."""

    compose: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)

    def run(self, *command: str, seconds: float = RUN, wanted: tuple[int, ...] = (0,), shown: bool = False) -> str:
        """What a command prints on its standard output; Failed when it ends with another code than those wanted, or not at all."""
        if shown:
            say(f"   $ {' '.join(command)}")
        try:
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, **self.environ}, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired as err:
            raise Failed(f"{' '.join(command)} did not end within {seconds:g} seconds") from err
        if done.returncode not in wanted:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout

    def composed(self, *words: str, **options: Any) -> str:
        return self.run(*self.compose, "--project-name", PROJECT, *words, **options)

    def puppet(self, *words: str) -> str:
        """`puppet …` in the master's container, as a person would type it."""
        said = self.composed("exec", "-T", "master", "puppet", *words, shown=True)
        for line in said.splitlines():
            say(f"   | {line}")
        return said


def engine(compose: tuple[str, ...] = ()) -> Engine:
    """The engine of this machine, with that Compose or any; Failed when there is none that answers."""
    if shutil.which("docker") is None:
        raise Failed("there is no docker command here")
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True, timeout=60)
    if asked.returncode != 0:
        raise Failed(f"no container engine answers: {(asked.stderr or asked.stdout).strip().splitlines()[-1]}")
    wanted = (compose,) if compose else COMPOSES
    for each in wanted:
        if version := compose_version(*each):
            say(f"   {' '.join(each)} is Compose {version}")
            return Engine(each)
    raise Failed(f"there is no {' or '.join(' '.join(each) for each in wanted)} here")


def compose_version(*command: str) -> str:
    """The version of Compose that the command is; '' where there is none."""
    try:
        asked = subprocess.run([*command, "version", "--short"], capture_output=True, text=True, timeout=60)
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def base_variables(engine: Engine) -> dict[str, str]:
    """
    Import the base that `make compose-base` made into the engine, and return the variables of docker-compose.yml that choose it.

    They are empty where there is no such base: images are built on the Dockerfile's then, from a registry.
    """
    archive = BASE / "base.tar"
    if not archive.exists():
        return {}
    image = f"bunraku-base:{archive.stat().st_mtime:.0f}"
    if not engine.run("docker", "images", "--quiet", image).strip():
        engine.run("docker", "import", str(archive), image, seconds=BUILD)
    say(f"   on {archive}")
    variables = {"BUNRAKU_BASE": image, "BUNRAKU_BUILD_NETWORK": "none"}  # everything is in the base
    for name in ("postgres", "haproxy"):
        variables[f"BUNRAKU_{name.upper()}"] = f"bunraku-{name}"
        words = ("--network", "none", "--build-arg", f"BASE={image}", "--file", f"{MASTERS}/{name}.Dockerfile", "--tag", f"bunraku-{name}")
        engine.run("docker", "build", *words, MASTERS, seconds=BUILD)
    return variables


def choose_base() -> None:
    """Write the base's variables into `.env`, where every `docker-compose` in this folder finds them; other lines of the file stay."""
    try:
        variables = base_variables(engine())
    except Failed as err:
        say(f"{BASE} is made, but docker-compose does not use it yet ({err}): run `make compose-base` again when an engine answers.")
        return
    lines = ENV.read_text().splitlines() if ENV.exists() else []
    others = [line for line in lines if line.partition("=")[0] not in variables]
    ENV.write_text("".join(f"{line}\n" for line in [*others, *(f"{name}={value}" for name, value in variables.items())]))
    say(f"`docker-compose up --build --detach` builds on {variables['BUNRAKU_BASE']} from now on ({ENV.name} says so).")


@contextmanager
def up(engine: Engine, profile: tuple[str, ...] = (), *services: str) -> Iterator[None]:
    """Those services, or all that have no profile, with what they depend on, from their start to the last volume taken away."""
    try:
        engine.composed(*profile, "up", "--detach", *services, seconds=BUILD)
        yield
    except Failed as err:
        raise Failed(f"{err}\nThe logs:\n{engine.composed(*profile, 'logs', '--no-color')[-8000:]}") from err
    finally:
        engine.composed(*profile, "down", "--volumes", "--remove-orphans")


def container(engine: Engine, service: str) -> str:
    """A service's container, ended or not."""
    format_ = '{{.ID}} {{.Label "com.docker.compose.service"}}'
    lines = engine.run("docker", "ps", "--all", "--filter", f"label=com.docker.compose.project={PROJECT}", "--format", format_)
    found = [line.split()[0] for line in lines.splitlines() if line.split()[1] == service]
    if len(found) != 1:
        raise Failed(f"there are {len(found)} containers of {service}")
    return found[0]


def ended(engine: Engine, service: str) -> None:
    """Wait for an agent to end, which must have changed something and failed at nothing."""
    code = engine.run("docker", "wait", container(engine, service)).strip()
    if code != "2":
        raise Failed(f"{service} ended with {code}, not with 2")


def waiting(engine: Engine, name: str) -> None:
    """Until the request of an agent is at the master."""
    deadline = time.monotonic() + RUN
    while name not in engine.composed("exec", "-T", "master", "puppet", "cert", "list"):
        if time.monotonic() > deadline:
            raise Failed(f"no request of {name} came")
        time.sleep(0.5)


def show_reports(engine: Engine, name: str) -> None:
    """The stored reports of an agent: of each its status, its numbers, what it changed."""
    files = engine.composed("exec", "-T", "master", "ls", f"{REPORTS}/{name}").split()
    texts = [engine.composed("exec", "-T", "master", "cat", f"{REPORTS}/{name}/{file}") for file in files]
    for report in sorted((plainyaml.loads(text, aliases=True) for text in texts), key=lambda report: str(report["time"])):
        statuses = report["resource_statuses"]
        changed = [ref for ref, status in statuses.items() if status["changed"]]
        say(f"   {name}: {report['status']}, {len(changed)} of {len(statuses)} resources changed")
        for ref in changed:
            for event in statuses[ref]["events"]:
                said = re.sub(r"\{\w+\}(\w{8})\w+", r"\1…", event["message"])
                say(f"     {ref:<36} {said}")


def show_puppetboard(engine: Engine) -> None:
    """The nodes that Puppetboard lists, each with the status of its last report; Failed when an agent is not among them."""
    url = f"http://127.0.0.1:{engine.environ['PUPPETBOARD_PORT']}/nodes"
    deadline = time.monotonic() + RUN
    rows: dict[str, str] = {}
    while set(rows) != set(AGENTS):
        if time.monotonic() > deadline:
            raise Failed(f"{url} lists {', '.join(rows) or 'no nodes'} and not {' and '.join(AGENTS)}")
        time.sleep(0.5)
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                page = answer.read().decode()
        except OSError:
            continue  # it has not started yet
        rows = {name: status for status, name in NODE_ROW.findall(page) if name in AGENTS}
    for name, status in sorted(rows.items()):
        say(f"   {url} lists {name}: {status}")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def show(engine: Engine) -> None:
    """The whole demonstration on an engine."""
    title("Images are built")
    engine.environ = {**base_variables(engine), "PUPPETBOARD_PORT": str(free_port())}
    began = time.monotonic()
    engine.composed("build", seconds=BUILD)
    say(f"   one for the pair and one for Puppetboard, in {time.monotonic() - began:.1f} s")
    title("A master, two agents and Puppetboard start")
    began = time.monotonic()
    with up(engine):
        say(f"   the master is healthy after {time.monotonic() - began:.1f} s, and its processes belong to")
        say(f"   | {engine.composed('exec', '-T', 'master', 'id').strip()}")
        ended(engine, "agent1")
        say("   agent1 was signed by the policy, as its request has the right word in it, and has run")
        waiting(engine, "agent2")
        title("A person signs agent2")
        engine.puppet("cert", "list")
        engine.puppet("cert", "sign", "agent2")
        ended(engine, "agent2")
        engine.puppet("cert", "list", "--all")
        title("agent1 runs again, with its key and its files in volumes")
        for line in engine.composed("run", "--rm", "-T", "agent1").splitlines():
            say(f"   | {line}")
        title("What the agents reported")
        for name in AGENTS:
            show_reports(engine, name)
        title("Puppetboard, which asks the master's store over TLS")
        show_puppetboard(engine)
        title("Containers and volumes are taken away")


def show_masters(engine: Engine) -> None:
    """Two masters with one state: an agent gets its certificate from one and runs while either is away."""
    title("Two masters behind HAProxy, with their state in PostgreSQL")
    profile = ("--profile", "masters")
    began = time.monotonic()
    with up(engine, profile, "balancer"):
        say(f"   both are healthy after {time.monotonic() - began:.1f} s")
        for gone, code in (("master1", 2), ("master2", 0)):  # the second run has nothing left to change
            engine.composed(*profile, "stop", gone, shown=True)
            said = engine.composed(*profile, "run", "--rm", "-T", "agent3", wanted=(code,), shown=True)
            for line in said.splitlines():
                say(f"   | {line}")
            engine.composed(*profile, "up", "--detach", gone, shown=True)
            healthy(engine, gone)
        title("Containers and volumes are taken away")


def healthy(engine: Engine, service: str) -> None:
    """Wait for a service whose health Compose checks."""
    deadline = time.monotonic() + RUN
    while engine.run("docker", "inspect", "--format", "{{.State.Health.Status}}", container(engine, service)).strip() != "healthy":
        if time.monotonic() > deadline:
            raise Failed(f"{service} is not healthy")
        time.sleep(0.5)


def main() -> int:
    if sys.argv[1:] == ["--base"]:
        choose_base()
        return 0
    try:
        found = engine(tuple(sys.argv[1:]))
        show(found)
        show_masters(found)
    except Failed as err:
        say(f"\nThe demo failed: {err}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
