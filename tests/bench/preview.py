"""
Measures `puppet preview` over the stored nodes of a site, beside octocatalog-diff and the catalogs that a puppetserver compiles for it.

The site has thirty-five modules with typed parameters, Hiera and EPP: some 760 resources a node. One change is in every template, the
other in a module that a twentieth of the nodes use. octocatalog-diff compares both sides of one node, with the real puppet.
puppetserver 7.9.5, warmed up, is asked for both catalogs of some nodes by the same facts (`POST /puppet/v4/catalog`), four at once;
nobody compares them. What all nodes would take there is worked out from these.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from environments.directories import Environments
from environments.settings import environment_settings
from master.bindings import BindingOptions, bind
from master.dependencies.recorder import CatalogRecorder
from master.observability.metrics import Metrics
from master.pools.configured import compile_pool_for
from master.preview.nodes import PreviewNodes
from master.puppetdb.configured import puppetdb_client
from shared.settings.master import settings_beside_master
from tests.bench import sites
from tests.bench.costs import Cost, cost_of, family, memory_of_all, processor_seconds, verdict
from tests.bench.server import Peer, answered
from tests.interop import puppetserver
from tests.support.ports import reserved_port
from tests.support.processes import clean_environment, has_real_puppet

MODULES = 35
SPECIAL = 20  # one node of so many uses the module of the small change
SIDES = ("production", "everywhere", "module")
LIMITS = {"everywhere": (120.0, 60.0), "module": (10.0, 3.0)}  # seconds for 1,000 nodes, must and aim
MEMORY = (400.0, 300.0)  # MB, must and aim
OCTOCATALOG_DIFF = "/usr/bin/octocatalog-diff"
WARMING, ASKED, AT_ONCE = 260, 40, 4  # catalogs
LOOK = 0.5  # seconds between two looks at the memory
ALL_MAY = """authorization: { version: 1, rules: [
  { name: "bench", sort-order: 1, allow-unauthenticated: true, match-request: { path: "/", type: path } }
] }
"""


def files(side: str) -> dict[str, str]:
    """Return the site's files on one of SIDES."""
    found = sites.modules_site()
    includes = "".join(f"  include m{number}\n" for number in range(MODULES))
    found["manifests/site.pp"] = f"node default {{\n{includes}}}\nif $facts['special'] {{ include special }}\n"
    text = "a\\nb\\n" + ("c\\n" if side == "module" else "")
    found["modules/special/manifests/init.pp"] = f"class special {{ file {{ '/etc/special': content => \"{text}\" }} }}\n"
    if side == "everywhere":
        found |= {name: f"{text}# changed\n" for name, text in found.items() if "/templates/" in name}
    return found


def facts_of(number: int) -> tuple[str, dict[str, Any]]:
    """Return a node's name and its facts."""
    name = f"node{number:04}.example.com"
    networking = {**sites.FACTS["networking"], "fqdn": name, "hostname": name.partition(".")[0]}  # type: ignore[dict-item]
    return name, {**sites.FACTS, "networking": networking, "fqdn": name, "special": number % SPECIAL == 0}


def write_site(root: Path, nodes: int) -> None:
    """Write the environments and what is stored of the nodes."""
    for side in SIDES:
        for name, text in files(side).items():
            path = root / "code/environments" / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    stored = root / "var/server_data/facts"
    stored.mkdir(parents=True)
    for number in range(nodes):
        name, values = facts_of(number)
        (stored / f"{name}.json").write_text(json.dumps({"name": name, "values": values}))


def watched(argv: list[str], output: Path) -> Cost:
    """Run a command and return its cost; `peak` is that of all its processes together, with shared pages counted once."""
    began, peak = time.perf_counter(), 0.0
    with output.open("wb") as out:
        pid = os.posix_spawn(argv[0], argv, clean_environment(), file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak, os.waitstatus_to_exitcode(status))
        try:
            peak = max(peak, memory_of_all(pid))
        except OSError:  # one of them has just ended
            pass
        time.sleep(LOOK)


def options_of(root: Path) -> list[str]:
    """Return the options of the site's master."""
    places = [f"--{name}dir={root / name}" for name in ("conf", "code", "var", "run", "log")]
    return ["--facts_terminus=json", "--certname=localhost", "--user=root", *places]


async def compile_for_agents(root: Path, nodes: int) -> None:
    """Compile the catalogs of all nodes as a master does, which records what they depend on."""
    flags = dict(option.removeprefix("--").split("=", 1) for option in options_of(root))
    settings = settings_beside_master({**flags, "storeconfigs": "false", "environment": "production"})
    environments, client = Environments(environment_settings(settings)), puppetdb_client(settings)
    recorder = CatalogRecorder.of(settings)
    assert recorder is not None
    pool = compile_pool_for(settings, environments, Metrics(), records=recorder.outlet.fileno())
    indirector = bind(settings, environments, pool, None, BindingOptions(client=client))
    stored = PreviewNodes(settings=settings, facts=indirector.facts, nodes=indirector.node, client=client, environment="production")
    writing = asyncio.create_task(recorder.keep_written())
    left = iter(range(nodes))

    async def work() -> None:
        for number in left:
            job = await stored.job(facts_of(number)[0])
            assert job is not None
            await pool(job)

    try:
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    finally:
        await pool.processes.close()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await recorder.close()
        await client.close()


def preview(root: Path, side: str, nodes: int) -> dict[str, float]:
    """Preview a change on all nodes; return the cost and what came of it."""
    words = ["preview", "--from", "production", "--to", side, "--all", "--json", "--no-storeconfigs", *options_of(root)]
    output = root / f"{side}.json"
    cost = watched([sys.executable, "-m", "bunraku", *words], output)
    result = json.loads(output.read_text())
    counts = result["counts"]
    wanted = nodes if side == "everywhere" else len(range(0, nodes, SPECIAL))
    if cost.code != 2 or counts["changed"] != wanted:
        raise RuntimeError(f"the preview of {side} ended with {cost.code}: {counts}")
    return {**asdict(cost), "compilations": counts["compilations"], "resources_changed": len(result["changes"])}


def octocatalog_diff(root: Path) -> dict[str, float]:
    """Return the cost of octocatalog-diff for one node; {} where it is not installed."""
    if shutil.which(OCTOCATALOG_DIFF) is None or not has_real_puppet():
        return {}
    name, values = facts_of(0)
    fact_file = root / "facts.json"
    fact_file.write_text(json.dumps({"name": name, "values": values}))
    folders = {side: root / "code/environments" / side for side in ("production", "everywhere")}
    words = [
        OCTOCATALOG_DIFF,
        "--hostname",
        name,
        "--basedir",
        str(root),
        "--fact-file",
        str(fact_file),
        "--no-enc",
        "--quiet",
        "--no-color",
    ]
    words += ["--bootstrapped-from-dir", str(folders["production"]), "--bootstrapped-to-dir", str(folders["everywhere"])]
    words += ["--puppet-binary", "/usr/bin/puppet", "--hiera-config", "hiera.yaml", "--hiera-path-strip", "nothing"]
    cost = cost_of(words, clean_environment(HOME=str(root)))
    if cost.code != 2:
        raise RuntimeError(f"octocatalog-diff ended with {cost.code}: {' '.join(words)}")
    return asdict(cost)


@contextmanager
def running_puppetserver(site: Path) -> Iterator[puppetserver.RealServer]:
    """A puppetserver with the site, of which this client may ask everything."""
    root = Path(tempfile.mkdtemp(prefix="bunraku-bench-", dir="/var/tmp"))  # its own user has to enter
    root.chmod(0o755)
    try:
        with reserved_port() as port:
            puppetserver.configured(puppetserver.PUPPETSERVER_7, root, port, jrubies=2, programs=False)
            shutil.rmtree(root / "code")
            shutil.copytree(site / "code", root / "code")
            (root / "conf.d/auth.conf").write_text(ALL_MAY)
            with puppetserver.running(root, port, heap="2g") as server:
                yield server
    finally:
        shutil.rmtree(root)


async def catalogs(peer: Peer, numbers: range, sides: tuple[str, ...]) -> Cost:
    """Ask for catalogs of nodes on these sides, some at once; return what that cost the server, for each of them together."""
    clients = [await peer.connect() for _ in range(AT_ONCE)]
    left = iter([(number, side) for number in numbers for side in sides])

    async def work(client: Any) -> None:
        for number, side in left:
            name, values = facts_of(number)
            body = {
                "certname": name, "environment": side, "persistence": {"facts": False, "catalog": False},
                "facts": {"values": values}, "trusted_facts": {"values": {"certname": name}},
            }  # fmt: skip
            answer = await answered(client, "POST", "/puppet/v4/catalog", json.dumps(body).encode(), Content_Type="application/json")
            if answer.body.count(b'"type":"File"') < MODULES * 5:
                raise RuntimeError("a catalog has too few resources")

    before, began = sum(map(processor_seconds, family(peer.pid))), time.monotonic()
    await asyncio.gather(*map(work, clients))
    seconds = time.monotonic() - began
    spent = sum(map(processor_seconds, family(peer.pid))) - before
    for client in clients:
        await client.close()
    return Cost(seconds, spent, 0.0, 0)


def on_puppetserver(root: Path) -> dict[str, float]:
    """Return the seconds for both catalogs of one node from a warm puppetserver; {} where it is not installed."""
    if puppetserver.PUPPETSERVER_7.why_not():
        return {}

    async def measure(server: puppetserver.RealServer) -> Cost:
        peer = Peer("puppetserver", server.port, server.pid, root / "client")
        await peer.bootstrap()
        await catalogs(peer, range(WARMING // 2), ("production", "everywhere"))
        return await catalogs(peer, range(ASKED // 2), ("production", "everywhere"))

    with running_puppetserver(root) as server:
        cost = asyncio.run(measure(server))
    return {"wall": cost.wall / (ASKED // 2), "cpu": cost.cpu / (ASKED // 2)}


def run(nodes: int) -> dict[str, Any]:
    """Measure, and print a table; return the numbers."""
    print(f"preview of a change, {nodes} stored nodes, {MODULES} modules", flush=True)
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder:
        root = Path(folder)
        write_site(root, nodes)
        found: dict[str, Any] = {}
        asyncio.run(compile_for_agents(root, nodes))
        for side in ("module", "everywhere"):  # the first one compiles few, as the master's records say who can be affected
            found[side] = cost = preview(root, side, nodes)
            must, aim = (limit * nodes / 1000 for limit in LIMITS[side])
            what = "all nodes differ" if side == "everywhere" else f"one node of {SPECIAL} differs"
            print(
                f"  {what:<34}{cost['wall']:>8.1f} s {cost['cpu']:>8.1f} s of processors, {cost['compilations']} catalogs, "
                f"{cost['peak']:.0f} MB   {verdict(cost['wall'], must, aim)}, memory {verdict(cost['peak'], *MEMORY)}",
                flush=True,
            )
        mine = found["everywhere"]["wall"] / nodes
        for name, cost in (("octocatalog-diff", octocatalog_diff(root)), ("puppetserver", on_puppetserver(root))):
            found[name] = cost
            if not cost:
                print(f"  {name} is not installed; there is nothing to compare with")
                continue
            print(
                f"  {name + ', a node':<34}{cost['wall']:>8.2f} s {cost['cpu']:>8.2f} s of processors: "
                f"all nodes {cost['wall'] * nodes:.0f} s, {cost['wall'] / mine:.0f} times as long",
                flush=True,
            )
    return found
