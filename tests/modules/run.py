"""
Compiles a real use of every module that Debian packages as `puppet-module-*`, with Debian's puppet and with ours: `make modules`.

    python -m tests.modules.run [MODULE …]     identical / different / not possible, a line a module
    python -m tests.modules.run --install      installs the packages first (as root)
    python -m tests.modules.run --write        also writes docs/modules.md
    python -m tests.modules.run --diff MODULE  everything that differs

A use is `tests/modules/uses/MODULE.yaml`: `manifest`; `data` for Hiera; `facts` beside those of facts.yaml; `links`, names for modules
whose folder has another one; `explained`, patterns of differences that are meant to be, with the reason. Templates and functions of
modules in Ruby are run by the `ruby` of this host.
The manifests are parsed too, all of them, and their syntax trees compared with the reference's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from environments.module_types.registry import RubyTypeCache
from environments.ruby import RubyProgram, RubySettings
from language.codegen.codecache import CodeCache
from language.evaluation.runtime import NAMES
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.syntax.checker import check
from language.syntax.dump import notation_of
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import PuppetError
from shared.types import builtin_types
from tests.modules.catalogs import compiled, differences, said
from tests.modules.templates import impure_functions, refused_templates, section
from tests.support.markdown import wrapped
from tests.twins.use import read_uses

HERE = Path(__file__).parent
TWINS = HERE.parent / "twins" / "results.yaml"
ROOT = HERE.parent.parent
MODULES = Path("/usr/share/puppet/modules")
NODE = "node1.example.com"
SAMPLE = 200
"""Manifests whose syntax trees are compared."""
REFERENCE_TIMEOUT = 900.0
RUBY = RubyProgram(RubySettings("/usr/bin/ruby"))
HIERA = "version: 5\nhierarchy:\n  - name: common\n    path: common.yaml\n"


@dataclass(frozen=True, slots=True)
class Use:
    """How a module is used."""

    module: str
    manifest: str
    data: Mapping[str, Any] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    explained: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def lay_out(self, folder: Path) -> Path:
        """The environment's folder."""
        root = folder / self.module / "production"
        for each in ("manifests", "modules", "data"):
            (root / each).mkdir(parents=True)
        (root / "manifests" / "site.pp").write_text(self.manifest)
        (root / "hiera.yaml").write_text(HIERA)
        (root / "data" / "common.yaml").write_text(yaml.safe_dump(dict(self.data)))
        for name, target in self.links.items():
            (root / "modules" / name).symlink_to(MODULES / target)
        return root


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a module: the state, why, and the templates and functions in Ruby that its catalog took."""

    module: str
    state: str
    why: str = ""
    ruby: tuple[str, ...] = ()
    warnings: str = ""
    types: tuple[str, ...] = ()
    """The types of its resources that exist in Ruby only."""


class Remembered:
    """Ruby, with what is asked of it by name."""

    def __init__(self, ruby: Any) -> None:
        self._ruby = ruby
        self.asked: dict[str, None] = {}

    def erb(self, scope: Any, text: str, name: str | None, file: str | None, answers: Sequence[Any] = ()) -> str:
        self.asked[name or "inline_template"] = None
        return str(self._ruby.erb(scope, text, name, file, answers))

    def has_set(self, value: Any) -> bool:
        return bool(self._ruby.has_set(value))

    def function(self, name: str, source: Source, impurity: tuple[str, int] | None = None) -> Any:
        self.asked[f"{name}()"] = None
        return self._ruby.function(name, source, impurity)


class RememberingWorld(DirectoryEnvironment):
    """A world that remembers what was asked of Ruby."""

    remembered: Remembered

    @property
    def ruby(self) -> Any:
        return self.remembered


def uses(names: Sequence[str]) -> list[Use]:
    """The uses of the modules named, or of all that are installed."""
    wanted = names or sorted(each.name for each in MODULES.iterdir())
    found = []
    for name in wanted:
        path = HERE / "uses" / f"{name}.yaml"
        if not path.exists():
            print(f"{name}: no use of it is written yet ({path})", file=sys.stderr)
            continue
        found.append(Use(name, **yaml.safe_load(path.read_text())))
    return found


def by_reference(roots: Mapping[str, Path], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What Debian's puppet makes of the environments, by module."""
    jobs = [
        {"id": module, "root": str(root), "modulepath": [str(MODULES)], "certname": NODE, "facts": facts[module]}
        for module, root in roots.items()
    ]
    text = "".join(json.dumps(each) + "\n" for each in jobs)
    done = subprocess.run(
        ["ruby", str(HERE / "reference.rb")], input=text, stdout=subprocess.PIPE, text=True, timeout=REFERENCE_TIMEOUT, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["id"]: each for each in answers}


def by_us(root: Path, facts: Mapping[str, Any], cache: CodeCache, types: RubyTypeCache) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What we make of an environment, and what it takes of Ruby."""
    logs: list[list[str]] = []
    settings = {"strict": "warning", "strict_variables": False, "storeconfigs": False, "server": "puppet", "manifest": f"{root}/manifests"}
    world = RememberingWorld(
        "production",
        str(root),
        DiskFiles(),
        modulepath=[f"{root}/modules", str(MODULES)],
        manifest=f"{root}/manifests",
        settings={**settings, "environment": "production"},
        ruby_types=types,
        note=lambda text: logs.append(["debug", text]),
        ruby=RUBY,
    )
    world.remembered = Remembered(DirectoryEnvironment.ruby.fget(world))  # type: ignore[attr-defined]
    loader = Loader(world, NAMES, cache, log=lambda level, finding: logs.append([level, finding.message]), builtins=all_functions())
    answer = compiled(world, loader, NODE, facts, logs)
    world.close()
    return answer, tuple(world.remembered.asked)


def types_in_ruby(catalog: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types of a catalog's resources that agents have from a module only."""
    names = {each["type"].lower() for each in catalog.get("resources", ())} - set(builtin_types())
    return tuple(sorted(name for name in names if any(MODULES.glob(f"*/lib/puppet/type/{name}.rb"))))


def applied_types(facts: Mapping[str, Any], cache: CodeCache, types: RubyTypeCache) -> dict[str, set[str]]:
    """Return the types in Ruby that are applied to the twins, each with the uses that do it."""
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory(prefix="bunraku-twins-") as folder:
        for use in read_uses():
            catalog, _ = by_us(Use(use.name, use.manifest).lay_out(Path(folder)), facts, cache, types)
            if "error" in catalog:
                raise RuntimeError(f"the use {use.name} of the twins does not compile: {catalog['error']}")
            for name in types_in_ruby(catalog):
                found.setdefault(name, set()).add(use.name)
    return found


def judged(use: Use, wanted: Mapping[str, Any], got: Mapping[str, Any], ruby: tuple[str, ...]) -> Result:
    module = use.module
    if "error" in wanted:
        ours = "ours in the same words: " if got.get("error") == wanted["error"] else "ours otherwise: "
        return Result(module, "reference fails", ours + re.sub(r"/\S+/production/", "<environment>/", wanted["error"]), ruby)
    if "error" in got:
        return Result(module, "different", got["error"], ruby)
    found = differences(wanted, got)
    reasons = {reason: None for pattern, reason in use.explained.items() if any(re.search(pattern, each) for each in found)}
    found = [each for each in found if not any(re.search(pattern, each) for pattern in use.explained)]
    if found:
        return Result(module, "different", found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""), ruby)
    heard = [[said(text) for level, text in each["logs"] if level in ("warning", "err")] for each in (wanted, got)]
    warnings = "" if heard[0] == heard[1] else f"warnings differ: {len(heard[0])} and {len(heard[1])}"
    return Result(module, "identical", "; ".join(f"but {reason}" for reason in reasons), ruby, warnings)


def parsed() -> tuple[int, list[str]]:
    """How many manifests there are, and what is wrong with those that are not accepted."""
    wrong: list[str] = []
    files = manifests()
    for path in files:
        source = Source(path.read_text("utf-8"), str(path))
        try:
            wrong += [str(each) for each in check(parse(source), source) if each.severity == "error"][:1]
        except PuppetError as err:
            wrong.append(str(err))
    return len(files), wrong


def manifests() -> list[Path]:
    return sorted(Path(place, name) for place, _, names in os.walk(MODULES, followlinks=True) for name in names if name.endswith(".pp"))


_DUMP = """
require 'json'; require 'puppet'; require 'puppet/pops'; require 'puppet/pops/pn'
def (Puppet::Pops::PN).Literal(value) = Puppet::Pops::PN::Literal.new(value)
parser = Puppet::Pops::Parser::Parser.new
$stdin.each_line(chomp: true) do |path|
  text = +''
  Puppet::Pops::Model::PNTransformer.transform(parser.parse_string(File.read(path, encoding: 'utf-8'))).format(nil, text)
  puts JSON.generate([path, text])
end
"""


def dumps_that_differ(paths: Sequence[Path]) -> list[Path]:
    """
    The manifests of which our dump in Puppet's notation is not the reference's, character by character.

    `puppet parser dump` of 7.23 fails for parameters with `*`, a slip in the name of a constructor; the program above mends it.
    """
    text = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(["ruby", "-e", _DUMP], input=text, capture_output=True, text=True, timeout=REFERENCE_TIMEOUT, check=True)
    wanted = dict(json.loads(line) for line in done.stdout.splitlines())
    return [path for path in paths if notation_of(parse(Source(path.read_text("utf-8"), str(path)))) != wanted.get(str(path))]


def install() -> None:
    """Install the packages that are not installed yet; as root."""
    listed = subprocess.run(["apt-cache", "search", "--names-only", "^puppet-module-"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n", *names], capture_output=True, text=True)
    there = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    names = [each for each in names if each not in there]
    if not names:
        return
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *names], check=True, env=environ)


def shown(results: Sequence[Result]) -> str:
    width = max(len(each.module) for each in results)
    return "\n".join(
        f"{each.module:<{width}}  {each.state:<15}  {'; '.join(filter(None, (each.why[:230], each.warnings)))}".rstrip() for each in results
    )


def document(results: Sequence[Result], parse_line: str, dump_line: str, applied: Mapping[str, set[str]]) -> str:
    """`docs/modules.md`."""
    states = Counter(each.state for each in results)
    without = sum(each.state == "identical" and not each.ruby for each in results)
    lines = [
        "# Debian's modules",
        "",
        "Written by `python -m tests.modules.run --write`; do not edit. Each module that Debian 12 packages as `puppet-module-*` is used",
        "by a manifest and data of `tests/modules/uses`, compiled with Debian's puppet 7.23 and with ours, and the catalogs are compared:",
        "resources in order with every parameter, tag, file and line; edges; classes.",
        "",
        f"- {parse_line}",
        f"- {dump_line}",
        f"- {len(results)} modules: {', '.join(f'{number} {state}' for state, number in states.most_common())}",
        "",
        f"The functions in Ruby and ERB templates listed below are run by the `ruby` of the host; {without} of those that are identical",
        "take none.",
        "",
        *APPLIED,
        *section(*refused_templates(MODULES), *impure_functions(MODULES)),
        *types_section(results, applied),
        "## Modules",
        "",
        "| module | result | applied | why | in Ruby |",
        "|---|---|---|---|---|",
        *(f"| {each.module} | {each.state} | {_applied(each.module)} | {_why(each)} | {_ruby(each)} |" for each in results),
    ]
    return "\n".join(lines) + "\n"


APPLIED = (
    "`make twins` applies uses of modules (`tests/twins/uses`) to two identical booted Debians, by Debian's `puppet apply` and, without",
    "Puppet's and Facter's programs, by ours,",
    'twice, and compares events, log, files, packages, units and what the servers answer. "Applied" names the uses of a module whose twins',
    "are the same, and how many lines differ where they are not; what a use ignores is in its file, with the reason. A module without",
    "a use is not judged. Types that ask OpenStack's services find a stand-in for its client (`openstack_api.yaml`), which some of them",
    "fail with; those of mongodb, of which Debian has no server, fail: alike on both twins.",
    "",
)


NOT_APPLIED = {
    "cs_": "corosync does not start in a machine without a network of its own, and its commands wait for it",
    "vs_": "ovs-vsctl waits for a switch of the kernel, whose module twins cannot load",
    "": "no use has it",
}


def types_section(results: Sequence[Result], applied: Mapping[str, set[str]]) -> list[str]:
    """Return what `docs/modules.md` says of types in Ruby: the modules whose uses need them, and where each of these types is applied."""
    needing = [each for each in results if each.types]
    whole = [each for each in needing if set(each.types) <= applied.keys()]
    every = {path.stem for path in MODULES.glob("*/lib/puppet/type/*.rb")} - set(builtin_types())
    lines = [
        "## Types in Ruby",
        "",
        f"{len(needing)} modules declare resources in their use above whose type exists in Ruby only. Of {len(whole)} of them all of these",
        f"types are applied to the twins, of all modules {len(every & applied.keys())} of the {len(every)} types.",
        "",
        "| module | types of its use | applied by | not applied |",
        "|---|---|---|---|",
    ]
    for each in needing:
        uses = sorted(set().union(*(applied.get(name, set()) for name in each.types)))
        missing = [name for name in each.types if name not in applied]
        reasons = [next(reason for prefix, reason in NOT_APPLIED.items() if name.startswith(prefix)) for name in missing]
        why = f"{', '.join(missing)}: {'; '.join(dict.fromkeys(reasons))}" if missing else ""
        lines.append(f"| {each.module} | {', '.join(each.types)} | {', '.join(uses)} | {why} |")
    return [*lines, ""]


def _applied(module: str) -> str:
    """Return what the twins showed of a module; '' when none of their uses is of it."""
    uses = {name: use for name, use in yaml.safe_load(TWINS.read_text()).items() if module in use["modules"]} if TWINS.exists() else {}
    return _cell(", ".join(name if use["same"] else f"{name}: {use['differences']} differences" for name, use in uses.items()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _why(result: Result) -> str:
    return _cell("; ".join(filter(None, (result.why[:300], result.warnings))))


def _ruby(result: Result) -> str:
    names = sorted(result.ruby)
    return _cell(", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="folders below /usr/share/puppet/modules (default: all)")
    parser.add_argument("--install", action="store_true", help="install the packages first")
    parser.add_argument("--write", action="store_true", help="write docs/modules.md")
    parser.add_argument("--diff", action="store_true", help="show all that differs")
    options = parser.parse_args()
    if options.install:
        install()
    if not MODULES.is_dir() or not any(MODULES.iterdir()):
        print("No module is installed; run this with --install as root", file=sys.stderr)
        return 1
    known = yaml.safe_load((HERE / "facts.yaml").read_text())
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="bunraku-modules-") as folder:
        chosen = {use.module: use for use in uses(options.modules)}
        roots = {module: use.lay_out(Path(folder)) for module, use in chosen.items()}
        facts = {module: known | dict(use.facts) for module, use in chosen.items()}
        theirs = by_reference(roots, facts)
        cache, types = CodeCache(), RubyTypeCache()
        for module, root in roots.items():
            got, ruby = by_us(root, facts[module], cache, types)
            wanted = theirs.get(module, {"error": "no answer"})
            result = replace(judged(chosen[module], wanted, got, ruby), types=types_in_ruby(got))
            results.append(result)
            if options.diff and "error" not in wanted and "error" not in got:
                print("\n".join(differences(wanted, got)))
                for who, each in (("theirs", wanted), ("ours", got)):
                    print("\n".join(f"{who} {level}: {text}" for level, text in each["logs"]))
    print(shown(results))
    if options.modules:
        return 0
    total, wrong = parsed()
    parse_line = f"{total - len(wrong)} of {total} manifests parse"
    print("\n" + "\n".join([parse_line, *wrong[:10]]))
    sample = random.Random(7).sample(manifests(), SAMPLE)
    differing = dumps_that_differ(sample)
    dump_line = f"{SAMPLE - len(differing)} of {SAMPLE} syntax trees are the reference's, character by character in Puppet's notation"
    print("\n".join([dump_line, *map(str, differing[:10])]))
    print(", ".join(f"{number} {state}" for state, number in Counter(each.state for each in results).most_common()))
    if options.write:
        text = document(results, parse_line, dump_line, applied_types(known, cache, types))
        (ROOT / "docs" / "modules.md").write_text(wrapped(text))
    return 1 if wrong or differing or any(each.state == "different" for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
