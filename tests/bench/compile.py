"""
Measures compiling against Debian's `puppet`, in ratios of processor time: `make bench`, or `python tests/bench/compile.py`.

Each side compiles the same site again and again in a process of its own, up to the catalog's plain data. Cold is the first
compile of a process that knows nothing of the site, warm the median of the later ones. Nothing else is in the numbers:
neither the start of an interpreter, nor facts, nor the network. The Ruby that this compiler starts counts.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench import sites
from tests.bench.dns import name_server

REFERENCE = Path(__file__).parent / "reference.rb"
MUST, AIM = 3.0, 6.0  # times the reference's speed, warm
JSON_MUST = 0.005  # seconds for the JSON of 1,300 resources
TIMEOUT = 900.0
_PROCESSOR_TIME = 2
"""Of the clocks of a process (CPUCLOCK_SCHED); their numbers begin with the complement of its own."""


@dataclass(frozen=True, slots=True)
class Case:
    """A site to compile, and how often each side does it."""

    name: str
    title: str
    site: Callable[[], dict[str, str]]
    ours: int
    reference: int


CASES = (
    Case("modules", f"{sites.MODULES} modules: classes, defines, EPP, loops", sites.modules_site, 21, 9),
    Case("data", f"{sites.KEYS} Hiera keys, 6 levels, deep merges", sites.data_site, 11, 6),
    Case("ruby", f"{sites.SERVICES} services, functions and a back end in Ruby", sites.ruby_site, 11, 6),
    Case("loop", f"{sites.MANY} resources from each", sites.loop_site, 7, 4),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of processor time."""

    cold: float
    warm: float
    json: float
    catalog: dict[str, Any]
    unchanged: float | None = None

    def resources(self) -> list[tuple[str, str, dict[str, Any]]]:
        """What there is to compare of the catalog."""
        return [(each["type"], each["title"], each.get("parameters", {})) for each in self.catalog["resources"]]


def measured(argv: list[str], catalog: Path) -> Measured:
    """What a measuring process prints, and the catalog it leaves."""
    done = subprocess.run([*argv, str(catalog)], capture_output=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv[0]} {Path(argv[1]).name} ended with {done.returncode}:\n{done.stderr.decode()[-3000:]}")
    found = json.loads(done.stdout.decode().strip().splitlines()[-1])
    seconds = found["seconds"]
    unchanged = statistics.median(found["unchanged"]) if "unchanged" in found else None
    data = json.loads(catalog.read_bytes())
    return Measured(seconds[0], statistics.median(seconds[1:]), statistics.median(found["json"]), data, unchanged)


def compile_again(codedir: Path, facts: dict[str, Any], repeat: int, catalog: Path, *, profile: bool = False) -> dict[str, Any]:
    """Compile a site in this process as a worker of the master does; the last catalog stays in a file."""
    from environments.directories import EnvironmentSettings
    from environments.loaded import LoadedEnvironments
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.host import NodeInput
    from shared.data import plainjson
    from shared.process.memory import freeze_loaded_objects
    from shared.ruby import find_ruby

    settings = EnvironmentSettings((str(codedir / "environments"),), environment_timeout=None, ruby=find_ruby("auto"))
    environments = LoadedEnvironments(settings, CodeCache(), log=lambda level, entry: None)
    trusted = {"authenticated": "remote", "certname": "bench.example.com", "extensions": {}}
    server = {"serverversion": "7.23.0", "servername": "puppet", "serverip": "127.0.0.1", "environment": "production"}
    parameters = {**facts, **{name: value for name, value in server.items() if name != "environment"}}
    node = NodeInput("bench.example.com", facts=facts, parameters=parameters, trusted=trusted, server_facts=server)
    freeze_loaded_objects()
    seconds, encoding = [], []
    profiler = cProfile.Profile()
    for number in range(repeat):
        if profile and number == 1:
            profiler.enable()
        began = spent()
        loaded = environments.get("production")
        data = compile_catalog(loaded.host, loaded.loader, node, version=1, log=lambda entry: None)
        done = spent()
        text = plainjson.dumps(data)
        encoding.append(spent() - done)
        seconds.append(done - began)
    profiler.disable()
    if profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    catalog.write_bytes(text)
    environments.forget()
    return {"seconds": seconds, "json": encoding, "unchanged": unchanged_again(settings, facts, server, trusted, repeat)}


def unchanged_again(settings: Any, facts: dict[str, Any], server: dict[str, str], trusted: dict[str, Any], repeat: int) -> list[float]:
    """Seconds for the catalog of a node of which only facts have changed that no manifest reads: a worker's whole answer, as JSON."""
    from language.codegen.codecache import CodeCache
    from master.pools.compile_worker import CompileWorker

    bench = CompileWorker(settings, CodeCache(), memo=2**26)
    job = {
        "ask": "catalog",
        "certname": "bench.example.com",
        "environment": "production",
        "classes": {},
        "code_id": None,
        "exported": False,
        "is_stored": False,
    }
    job |= {"parameters": facts, "trusted": trusted, "server_facts": server, "generation": 0}
    seconds = []
    for number in range(repeat + 1):
        began = spent()
        bench.answer(job | {"facts": facts | {"system_uptime": {"seconds": number}}}, lambda entry: None)
        seconds.append(spent() - began)
    if bench.memo.hits != repeat:
        raise RuntimeError(f"{bench.memo.hits} of {repeat} catalogs came from memory")
    bench.forget()
    return seconds[1:]


def spent() -> float:
    """Return the seconds of processor time of this process and its children, which are Ruby."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return time.process_time() + sum(time.clock_gettime(~int(pid) << 3 | _PROCESSOR_TIME) for pid in children)


def run(names: list[str], *, reference: bool = True) -> dict[str, Any]:
    """Measure and print; the numbers by case."""
    found: dict[str, Any] = {}
    if reference and shutil.which("ruby") is None:
        print("Debian's puppet-agent is not installed; there is nothing to compare with")
        reference = False
    print("compiling, milliseconds of processor time (the reference on MRI; times: how much faster this is)")
    print(f"  {'':<48}{'ours':>9}{'puppet':>10}{'times':>8}")
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder, name_server() as port:
        facts = Path(folder, "facts.json")
        facts.write_text(json.dumps(sites.FACTS | {"bench_dns": port}))
        for case in CASES:
            if names and case.name not in names:
                continue
            codedir = Path(folder, case.name)
            sites.write(codedir, case.site())
            catalog = Path(folder, "catalog.json")
            ours = measured([sys.executable, __file__, "--compile", str(codedir), str(facts), str(case.ours)], catalog)
            other = measured(["ruby", str(REFERENCE), str(codedir), str(facts), str(case.reference)], catalog) if reference else None
            number = len(ours.resources())
            print(f"  {case.title} ({number} resources)")
            if other is not None and ours.resources() != other.resources():
                raise RuntimeError(f"{case.name}: the catalogs differ")
            found[case.name] = {"resources": number}
            for what in ("cold", "warm", "json"):
                mine, theirs = getattr(ours, what), getattr(other, what) if other else None
                found[case.name] |= {f"ours_{what}": mine, f"reference_{what}": theirs}
                print(line(what, mine, theirs, case.name == "modules"))
            found[case.name]["unchanged"] = ours.unchanged
            if ours.unchanged is not None:
                against = f"{other.warm / ours.unchanged:>18.1f}" if other else ""
                print(f"    {'unchanged node, from memory, with JSON':<46}{ours.unchanged * 1000:>9.1f}{against}")
    return found


def line(what: str, mine: float, theirs: float | None, judge_json: bool) -> str:
    """One row, with a verdict where there is something to hold."""
    text = f"    {what:<46}{mine * 1000:>9.1f}"
    if theirs is not None:
        text += f"{theirs * 1000:>10.1f}{theirs / mine:>8.1f}"
        if what == "warm":
            text += "   aim met" if theirs / mine >= AIM else "   must met" if theirs / mine >= MUST else "   MISSED"
    if what == "json" and judge_json:
        text += "   must met" if mine < JSON_MUST else "   MISSED"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(case.name for case in CASES)}; default: all")
    parser.add_argument("--profile", action="store_true", help="profile the warm compiles of one case instead")
    parser.add_argument("--compile", nargs=4, metavar=("CODEDIR", "FACTS", "REPEAT", "CATALOG"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        codedir, facts, repeat, catalog = options.compile
        print(json.dumps(compile_again(Path(codedir), json.loads(Path(facts).read_text()), int(repeat), Path(catalog))))
        return 0
    if options.profile:
        case = next(each for each in CASES if not options.cases or each.name in options.cases)
        with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder, name_server() as port:
            sites.write(Path(folder), case.site())
            compile_again(Path(folder), sites.FACTS | {"bench_dns": port}, case.ours, Path(folder, "catalog.json"), profile=True)
        return 0
    run(options.cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
