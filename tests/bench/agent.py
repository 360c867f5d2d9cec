"""`puppet apply`, facts and file sources beside Debian's `puppet`, in ratios; unchanged runs, each command in turn."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.costs import Cost, cost_of, median, verdict
from tests.support.processes import MasterProcess, RealAgent, clean_environment, has_real_puppet

FILES = (10, 100, 1_000, 2_000)
SOURCES = 500
FOLDERS = {"confdir": "conf", "vardir": "var", "rundir": "run", "logdir": "log", "codedir": "code"}
REQUESTS = 6  # at most, of an unchanged run of file sources
MUST = {"wall": 1 / 3, "cpu": 1 / 3, "peak": 80.0}
AIM = {"wall": 1 / 6, "cpu": 1 / 6, "peak": 60.0}
RUBY_MODULES = Path(__file__).parents[1] / "bunraku" / "ruby_modules"
IN_RUBY = 200  # resources of a type in Ruby
MUST_IN_RUBY = {"wall": 1 / 1.5, "cpu": 1 / 1.5, "peak": 80.0}  # the peak is the greater one of the agent and its process of Ruby
AIM_IN_RUBY = {"wall": 1 / 2, "cpu": 1 / 2, "peak": 60.0}

MANY = """
node /^many/ {
  file { $facts['many_root']: ensure => directory }
  Integer[0, LAST].each |$i| { file { "${facts['many_root']}/${i}": source => "puppet:///modules/many/${i}" } }
}
""".replace("LAST", str(SOURCES - 1))

Command = tuple[list[str], dict[str, str]]


def options(root: Path) -> list[str]:
    for place in FOLDERS.values():
        (root / place).mkdir(parents=True, exist_ok=True)
    return [part for name, place in FOLDERS.items() for part in (f"--{name}", str(root / place))]


def compared(
    what: str,
    ours: Command,
    theirs: Command | None,
    repeat: int,
    ok: tuple[int, ...] = (0,),
    limits: tuple[Mapping[str, float], Mapping[str, float]] = (MUST, AIM),
) -> dict[str, float]:
    """Print and give the medians of both, after one run each that is not counted."""
    must, aim = limits
    costs: dict[str, list[Cost]] = {"ours": [], "theirs": []}
    commands = {"ours": ours} | ({"theirs": theirs} if theirs else {})
    for number in range(repeat + 1):
        for name, (argv, environ) in commands.items():
            cost = cost_of(argv, environ)
            if number == 0:
                continue
            if cost.code not in ok:
                raise RuntimeError(f"{what}: {name} ended with {cost.code}: {' '.join(argv)}")
            costs[name].append(cost)
    found: dict[str, float] = {}
    getters: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
        ("wall", "s", lambda cost: cost.wall),
        ("cpu", "s", lambda cost: cost.cpu),
        ("peak", "MB", lambda cost: cost.peak),
    )
    for name, unit, getter in getters:
        mine = found[f"ours_{name}"] = median(costs["ours"], getter)
        line = f"  {what + ', ' + name + ', ' + unit:<40}{mine:>10.2f}"
        if costs["theirs"]:
            other = found[f"theirs_{name}"] = median(costs["theirs"], getter)
            judged = verdict(mine if name == "peak" else mine / other, must[name], aim[name])
            line += f"{other:>10.2f}{mine / other:>9.3f}    {judged}"
        print(line, flush=True)
    return found


def run(root: Path, process: MasterProcess, repeat: int, files: tuple[int, ...] = FILES) -> dict[str, object]:
    """All cases; `process` is a master that runs."""
    real = has_real_puppet()
    print(f"agent without a master, median of {repeat}\n  {'':<40}{'ours':>10}{'puppet':>10}{'ratio':>9}")
    found: dict[str, object] = {}
    ours = [sys.executable, "-I", "-m", "bunraku"]
    own_facts: Command = ([*ours, "facts", *options(root / "ours")], clean_environment())
    facts: Command = (["/usr/bin/puppet", "facts", *options(root / "theirs")], clean_environment(HOME=str(root / "theirs")))
    facter: Command = (["/usr/bin/facter", "--json"], clean_environment())  # which knows neither settings nor modules
    found["facts"] = compared("facts", own_facts, facts if real else None, repeat)
    found["facter"] = compared("facts, beside facter", own_facts, facter if real else None, repeat, ok=(0, 1))
    for number in (0, *files):
        case = "apply of nothing" if not number else f"apply of {number} files"
        commands = {}
        for name, program in (("ours", ours), ("theirs", ["/usr/bin/puppet"])):
            place = root / f"{name}-files-{number}"
            place.mkdir()
            manifest = root / f"{name}-{number}.pp"
            code = f'Integer[1, {number}].each |$i| {{ file {{ "{place}/${{i}}": content => "number ${{i}}\\n", mode => \'0640\' }} }}'
            manifest.write_text(code if number else "")
            commands[name] = ([*program, "apply", *options(root / name), str(manifest)], clean_environment(HOME=str(root / name)))
        found[case] = compared(case, commands["ours"], commands["theirs"] if real else None, repeat)
    found["types in Ruby"] = types_in_ruby(root, repeat, real)
    found["sources"] = sources(root, process, repeat, real)
    return found


def types_in_ruby(root: Path, repeat: int, real: bool) -> dict[str, float]:
    """An unchanged `puppet apply` of IN_RUBY resources of a type that a module has in Ruby, in their programs and our agent's."""
    commands: dict[str, Command] = {}
    for name, program in (("ours", [sys.executable, "-I", "-m", "bunraku"]), ("theirs", ["/usr/bin/puppet"])):
        shelf = root / f"{name}-shelf"
        shelf.mkdir()
        manifest = root / f"{name}-jars.pp"
        jar = f"jar {{ \"j${{i}}\": shelf => '{shelf}', content => \"number ${{i}}\", colour => 'red' }}"
        manifest.write_text(f"Integer[1, {IN_RUBY}].each |$i| {{ {jar} }}")
        words = [*program, "apply", *options(root / name), "--modulepath", str(RUBY_MODULES), str(manifest)]
        commands[name] = (words, clean_environment(HOME=str(root / name)))
    what = f"apply of {IN_RUBY} of a type in Ruby"
    return compared(what, commands["ours"], commands["theirs"] if real else None, repeat, limits=(MUST_IN_RUBY, AIM_IN_RUBY))


def sources(root: Path, process: MasterProcess, repeat: int, real: bool) -> dict[str, float]:
    """An unchanged run of SOURCES files with a source, through the master."""
    process.write({f"modules/many/files/{number}": f"file {number}\n" for number in range(SOURCES)} | {"manifests/many.pp": MANY})
    agent = [sys.executable, "-I", "-m", "agent", "--onetime", "--test", "--server", "localhost", "--masterport", str(process.port)]
    agent += ["--certname", "many-ours.test", "--keylength", "2048", *options(root / "many-ours")[:-2]]
    ours: Command = (agent, clean_environment(FACTER_many_root=str(root / "many-ours-files")))
    theirs: Command | None = None
    if real:
        other = RealAgent(root / "many-theirs", process.port, "many-theirs.test", {"many_root": str(root / "many-theirs-files")})
        other.root.mkdir()
        environ = clean_environment(HOME=str(other.root), FACTER_many_root=other.facts["many_root"])
        theirs = (["/usr/bin/puppet", "agent", "-t", *other.options], environ)
    found = compared(f"{SOURCES} sources through a master", ours, theirs, repeat)
    for name, command in (("ours", ours), ("theirs", theirs)):
        if command:
            before = requests_of(process, f"many-{name}.test")
            cost_of(*command)
            found[f"{name}_requests"] = requests_of(process, f"many-{name}.test") - before
    judged = verdict(found["ours_requests"], REQUESTS, REQUESTS)
    print(f"  {'the same, requests':<40}{found['ours_requests']:>10}{found.get('theirs_requests', ''):>10}{'':>9}    {judged}")
    return found


def requests_of(process: MasterProcess, certname: str) -> int:
    """How many requests of an agent the master's log has."""
    return len(re.findall(rf'{re.escape(certname)} "[A-Z]+ /', process.log))
