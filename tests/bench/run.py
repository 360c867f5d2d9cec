"""
Measures this against Debian's `puppet`, in ratios, on the machine it runs on: `make bench`.

Masters that listen are in `server`, compiles in `compile`, parsing in `parsing`, stores in `store`, a master with one in
`with_store`, masters with state in PostgreSQL in `masters`, previews in `preview`, agents that wait for orders in `waiting`,
uses of modules on booted machines in `twins`. Both agents apply the same catalog from the same master, in turn, so that
noise hits both. Numbers are medians.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench import agent as alone
from tests.bench.costs import Cost, cost_of, median, verdict
from tests.support.processes import MasterProcess, RealAgent, clean_environment, has_real_puppet, master

RESOURCES = 60  # files and directories in the catalog, beside an exec
MUST = {"wall": 1 / 5, "cpu": 1 / 5, "peak": 80.0}
PARTS = ("agent", "server", "compile", "parsing", "store", "with_store", "masters", "preview", "waiting", "twins")
AIM = {"wall": 1 / 6, "cpu": 1 / 6, "peak": 60.0}


def site() -> dict[str, str]:
    """A catalog with files of both kinds, a tree, a template."""
    files = {f"modules/bench/files/tree/{i}": f"file {i}\n" * 20 for i in range(RESOURCES // 3)}
    return files | {
        "manifests/site.pp": "node default { class { 'bench': root => $facts['bench_root'] } }",
        "modules/bench/manifests/init.pp": f"""
            class bench (String[1] $root) {{
              file {{ $root: ensure => directory }}
              file {{ "${{root}}/tree": ensure => directory, source => 'puppet:///modules/bench/tree', recurse => true }}
              Integer[1, {RESOURCES // 3}].each |$i| {{
                file {{ "${{root}}/content-${{i}}": content => "number ${{i}}\\n", mode => '0640' }}
                file {{ "${{root}}/source-${{i}}": source => "puppet:///modules/bench/tree/${{$i % {RESOURCES // 3}}}" }}
              }}
              exec {{ "/bin/true # ${{root}}": refreshonly => true, provider => shell }}
            }}
        """,
    }


def run(repeat: int) -> dict[str, object]:
    """Both agents through a master, then without one."""
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder:
        root = Path(folder)
        with master(root / "master", autosign="true") as process:
            process.write(site())
            process.start()
            found = agents(root, process, repeat)
            found["alone"] = alone.run(root, process, max(1, repeat // 2))
    return found


def agents(root: Path, process: MasterProcess, repeat: int) -> dict[str, object]:
    """Our agent and Debian's on the same catalog."""
    names = {"confdir": "conf", "vardir": "var", "rundir": "run", "logdir": "log"}
    ours_argv = [sys.executable, "-I", "-m", "agent", "--onetime", "--test", "--server", "localhost", "--masterport", str(process.port)]
    ours_argv += ["--certname", "ours.test", "--keylength", "2048"]
    ours_argv += [part for name, place in names.items() for part in (f"--{name}", str(root / "ours" / place))]
    ours_environ = clean_environment(FACTER_bench_root=str(root / "ours-managed"))
    costs: dict[str, list[Cost]] = {"ours": [], "theirs": []}
    commands = {"ours": (ours_argv, ours_environ)}
    if has_real_puppet():
        theirs = RealAgent(root / "theirs", process.port, "theirs.test", {"bench_root": str(root / "theirs-managed")})
        theirs.root.mkdir()
        environ = clean_environment(HOME=str(theirs.root), FACTER_bench_root=theirs.facts["bench_root"])
        commands["theirs"] = (["/usr/bin/puppet", "agent", "-t", *theirs.options], environ)
    else:
        print("  Debian's puppet-agent is not installed; there is nothing to compare with")
    for name, (argv, environ) in commands.items():
        first = cost_of(argv, environ)
        if first.code != 2:
            raise RuntimeError(f"the first run of {name} ended with {first.code}; the master's log:\n{process.log[-3000:]}")
    for _ in range(repeat):
        for name, (argv, environ) in commands.items():
            cost = cost_of(argv, environ)
            if cost.code != 0:
                raise RuntimeError(f"an unchanged run of {name} ended with {cost.code}")
            costs[name].append(cost)
    print(f"agent, unchanged run of {RESOURCES + 2} resources, median of {repeat}")
    print(f"  {'':<24}{'ours':>10}{'puppet':>10}{'ratio':>9}")
    result: dict[str, object] = {}
    for what, unit, getter in (
        ("wall", "s", lambda c: c.wall),
        ("cpu", "s", lambda c: c.cpu),
        ("peak", "MB", lambda c: c.peak),
    ):
        mine = median(costs["ours"], getter)
        line = f"  {what + ', ' + unit:<24}{mine:>10.2f}"
        result[f"ours_{what}"] = mine
        if costs["theirs"]:
            other = median(costs["theirs"], getter)
            result[f"theirs_{what}"] = other
            line += f"{other:>10.2f}{mine / other:>9.3f}"
            line += "    " + verdict(mine if what == "peak" else mine / other, MUST[what], AIM[what])
        print(line)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--json", action="store_true", help="also print the numbers as one JSON object, last")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write that object to a file")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS, help="measure only these")
    parser.add_argument("--uses", nargs="+", default=(), metavar="USE", help="uses of the twins (default: all)")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the stores, previews and orders (default 1000)")
    options = parser.parse_args()
    found = run(options.repeat) if "agent" in options.only else {}
    # Only now: a command's peak of memory is at least that of the process that starts it.
    from tests.bench import compile as compiling
    from tests.bench import masters, parsing, preview, server, store, twins, waiting, with_store

    parts: dict[str, Callable[[], object]] = {
        "server": lambda: server.run(starts=options.repeat),
        "compile": lambda: compiling.run([]),
        "parsing": parsing.run,
        "store": lambda: store.run(store.Scope(options.nodes)),
        "with_store": lambda: with_store.run(options.repeat),
        "masters": lambda: masters.run(options.repeat),
        "preview": lambda: preview.run(options.nodes),
        "waiting": lambda: waiting.run(options.nodes),
        "twins": lambda: twins.run(options.repeat, options.uses),
    }
    found |= {name: measure() for name, measure in parts.items() if name in options.only}
    if options.output:
        options.output.write_text(json.dumps(found))
    if options.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
