"""
What rendering a template costs when all is warm, ERB and EPP, here and with Debian's puppet: `python -m tests.bench.templates`.

    python -m tests.bench.templates --apache FOLDER   processor time of a catalog of the module apache with 20 virtual hosts, a compile that
                                                      renders 337 templates; FOLDER has Debian's modules

ERB is rendered here as Python, and by Ruby (`native_templates = false`). Elapsed time, as Ruby's is spent in two processes: the machine
should have nothing else to do.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import DiskFiles
from environments.ruby import RubyProgram, RubySettings, find_ruby
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from tests.support.compiling import compiled

SHORT, LONG = 2, 14
VHOST = """
apache::vhost {{ 'site{number}.example.com':
  port          => 8000 + {number},
  docroot       => '/var/www/{number}',
  serveraliases => ['a{number}', 'b{number}'],
  directories   => [{{ path => '/var/www/{number}', options => ['Indexes'], require => 'all granted' }}],
  proxy_pass    => [{{ path => '/x', url => 'http://backend/' }}],
  rewrites      => [{{ rewrite_rule => ['^a b'] }}],
  setenv        => ['A b'],
}}"""
RENDERS = 2000
ROUNDS = 5
TEMPLATES = {
    "erb": "<% @list.each do |x| -%>\n- <%= x %> <%= @a %>\n<% end -%>\n",
    "epp": "<%- | $list, $a | -%>\n<% $list.each |$x| { -%>\n- <%= $x %> <%= $a %>\n<% } -%>\n",
}
CALLS = {
    "nothing": "'x'",
    "ERB": "template('m/t.erb')",
    "ERB by Ruby": "template('m/t.erb')",
    "EPP": "epp('m/t.epp', { list => $list, a => $a })",
}
MANIFEST = "$a = 'A'\n$list = ['one', 'two', 'three']\nInteger[1, {renders}].each |$i| {{ $x = {call} }}\n"
REFERENCE = """
require 'puppet'; require 'tmpdir'
Puppet.initialize_settings(['--confdir', Dir.mktmpdir, '--vardir', Dir.mktmpdir])
modules, rounds, code = ARGV
Puppet[:code] = code
puts(rounds.to_i.times.map do
  environment = Puppet::Node::Environment.create(:production, [modules])
  node = Puppet::Node.new('n', environment: environment)
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  Puppet.override(current_environment: environment) { Puppet::Parser::Compiler.compile(node) }
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
end.min)
"""


def ours(modules: Path, code: str, ruby: RubyProgram, *, native: bool) -> float:
    """The seconds of the fastest compile."""
    world = DirectoryEnvironment(
        Environment("production", str(modules.parent), (str(modules),), None),
        DiskFiles(),
        code=code,
        settings={"native_templates": native},
        services=EnvironmentServices(ruby=ruby),
    )
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        compiled("", world=world)
        best = min(best, time.perf_counter() - began)
    world.close()
    return best


def theirs(modules: Path, code: str) -> float:
    done = subprocess.run(
        ["ruby", "-e", REFERENCE, str(modules), str(ROUNDS), code], stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    return float(done.stdout)


def apache(modules: Path, ruby: RubyProgram, *, native: bool) -> float:
    """Return the seconds of processor time, Ruby's included, of one warm compile."""
    site = "\n".join(["class { 'apache': default_vhost => false }", *(VHOST.format(number=number) for number in range(20))])
    facts = yaml.safe_load((Path(__file__).parent.parent / "modules" / "facts.yaml").read_text())
    seconds = []
    for compiles in (SHORT, LONG):
        world = DirectoryEnvironment(
            Environment("production", "/nonexistent", (str(modules),), None),
            DiskFiles(),
            code=site,
            settings={"native_templates": native},
            services=EnvironmentServices(ruby=ruby),
        )
        loader = Loader(world, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
        node = NodeInput("web1.example.com", facts=facts, parameters=facts)
        began = _processor_time()
        for _ in range(compiles):
            compile_catalog(world, loader, node, version=1, log=lambda entry: None, rich=True)
        world.close()
        seconds.append(_processor_time() - began)
    return (seconds[1] - seconds[0]) / (LONG - SHORT)


def _processor_time() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum([usage.ru_utime + usage.ru_stime for usage in usages])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apache", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    program = find_ruby("auto")
    if not program:
        print("There is no ruby", file=sys.stderr)
        return 1
    if options.apache is not None:
        ruby = RubyProgram(RubySettings(program))
        native, by_ruby = (apache(options.apache, ruby, native=each) for each in (True, False))
        print(f"{1e3 * native:.0f} ms of processor time, {1e3 * by_ruby:.0f} ms by Ruby: {by_ruby / native:.2f} times")
        return 0
    with tempfile.TemporaryDirectory(prefix="bunraku-templates-") as folder:
        modules = Path(folder) / "modules"
        (modules / "m" / "templates").mkdir(parents=True)
        for kind, text in TEMPLATES.items():
            (modules / "m" / "templates" / f"t.{kind}").write_text(text)
        ruby = RubyProgram(RubySettings(program))
        base: tuple[float, float] | None = None
        for name, call in CALLS.items():
            code = MANIFEST.format(renders=RENDERS, call=call)
            took = (ours(modules, code, ruby, native=name != "ERB by Ruby"), theirs(modules, code))
            if base is None:
                base = took
            else:
                here, there = (1e6 * (one - none) / RENDERS for one, none in zip(took, base, strict=True))
                print(f"{name}: {here:.0f} microseconds here, {there:.0f} with puppet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
