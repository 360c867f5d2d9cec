"""
Measures parsing, checking and generating code for every manifest of Debian's modules against the reference's parsing and checking.

Both read the same files from memory, in a process each; what is measured is processor time. Two numbers: until the definitions of
a file are known, which is all that the reference does and all that a file costs before something in it is evaluated; and with the
code of everything, as if a catalog evaluated every class, define and template of all modules, for which the reference has no step.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from language.codegen import body_code, headers
from language.syntax.checker import check
from language.syntax.parser import parse
from language.syntax.source import Source

MODULES = Path("/usr/share/puppet/modules")
MUST, AIM = 3.0, 6.0  # times the reference's speed
TIMEOUT = 900.0
_REFERENCE = """
require 'json'; require 'puppet'; require 'puppet/pops'
Puppet.initialize_settings(['--confdir', '/nonexistent/c', '--vardir', '/nonexistent/v'])
Puppet[:log_level] = :err
files = $stdin.each_line(chomp: true).map { |path| [path, File.read(path, encoding: 'utf-8')] }
seconds = Integer(ARGV[0]).times.map do
  GC.start
  began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  parser = Puppet::Pops::Parser::EvaluatingParser.new
  files.each { |path, text| parser.parse_string(text, path) }
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began
end
puts JSON.generate(seconds)
"""


def manifests() -> list[Path]:
    """All manifests of the modules that are installed."""
    found = [Path(place, name) for place, _, names in os.walk(MODULES, followlinks=True) for name in names if name.endswith(".pp")]
    return sorted(found)


def ours(files: list[Path], repeat: int, *, code: bool) -> list[float]:
    """Seconds of each pass over all files, in this process; `code`: with that of every definition."""
    texts = [(str(path), path.read_text("utf-8")) for path in files]
    seconds = []
    for _ in range(repeat):
        gc.collect()
        began = time.process_time()
        for path, text in texts:
            source = Source(text, path)
            program = parse(source)
            check(program, source)
            found = headers(program, source)
            if code:
                for index in range(len(found)):
                    body_code(program, source, index)
        seconds.append(time.process_time() - began)
    return seconds


def theirs(files: list[Path], repeat: int) -> list[float]:
    """Seconds of each pass of Debian's puppet."""
    text = "".join(f"{path}\n" for path in files)
    done = subprocess.run(
        ["ruby", "-e", _REFERENCE, str(repeat)], input=text, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=True
    )
    return [float(each) for each in json.loads(done.stdout.splitlines()[-1])]


def run(repeat: int = 3) -> dict[str, Any]:
    """Print the comparison, and give its numbers; nothing where no module is installed."""
    files = manifests()
    if not files:
        print("  Debian's modules are not installed (make modules); nothing to parse")
        return {}
    found: dict[str, Any] = {"files": len(files)}
    other = statistics.median(theirs(files, repeat)) if Path("/usr/bin/puppet").exists() else None
    for name, what, code in (("read", "until all is defined", False), ("code", "with all code      ", True)):
        mine = statistics.median(ours(files, repeat, code=code))
        line = f"  {len(files)} manifests: parse, check, {what}   ours {mine:6.2f} s"
        found[name] = {"ours": mine}
        if other is not None:
            ratio = other / mine
            verdict = "aim met" if ratio >= AIM else "must met" if ratio >= MUST else "MISSED" if name == "read" else ""
            line += f"   puppet {other:6.2f} s   {ratio:5.2f} x   {verdict}"
            found[name] |= {"theirs": other, "ratio": ratio}
        print(line.rstrip())
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeat", type=int, default=3, help="passes of each (default 3)")
    run(arguments.parse_args().repeat)
