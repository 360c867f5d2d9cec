"""
What rendering a template costs when all is warm, ERB and EPP, here and with Debian's puppet: `python -m tests.bench.templates`.

Elapsed time, as ours is spent in two processes: the machine should have nothing else to do.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from master.environments.directory_environment import DirectoryEnvironment
from master.files.code_files import DiskFiles
from master.ruby import RubyProgram, RubySettings, find_ruby
from tests.support.compiling import compiled

RENDERS = 2000
ROUNDS = 5
TEMPLATES = {
    "erb": "<% @list.each do |x| -%>\n- <%= x %> <%= @a %>\n<% end -%>\n",
    "epp": "<%- | $list, $a | -%>\n<% $list.each |$x| { -%>\n- <%= $x %> <%= $a %>\n<% } -%>\n",
}
CALLS = {"nothing": "'x'", "ERB": "template('m/t.erb')", "EPP": "epp('m/t.epp', { list => $list, a => $a })"}
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


def ours(modules: Path, code: str, ruby: RubyProgram) -> float:
    """The seconds of the fastest compile."""
    world = DirectoryEnvironment(
        "production", str(modules.parent), DiskFiles(), modulepath=[str(modules)], manifest=None, code=code, ruby=ruby
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


def main() -> int:
    program = find_ruby("auto")
    if not program:
        print("There is no ruby", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bunraku-templates-") as folder:
        modules = Path(folder) / "modules"
        (modules / "m" / "templates").mkdir(parents=True)
        for kind, text in TEMPLATES.items():
            (modules / "m" / "templates" / f"t.{kind}").write_text(text)
        ruby = RubyProgram(RubySettings(program))
        base: tuple[float, float] | None = None
        for name, call in CALLS.items():
            code = MANIFEST.format(renders=RENDERS, call=call)
            took = (ours(modules, code, ruby), theirs(modules, code))
            if base is None:
                base = took
            else:
                here, there = (1e6 * (one - none) / RENDERS for one, none in zip(took, base, strict=True))
                print(f"{name}: {here:.0f} microseconds here, {there:.0f} with puppet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
