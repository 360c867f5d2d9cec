"""Python's own tools work on manifests: coverage.py, cProfile, pdb, tracebacks. The compiled code has the manifest's file and lines."""

from __future__ import annotations

import cProfile
import io
import pdb
import pstats
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import coverage
import pytest

from bunraku.catalogs.profiling import LineTimes
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from shared.errors import EvaluationError
from tests.support.compiling import compiled

MANIFEST = """\
class web (Integer $port = 80) {
  $unused = 1
  if $port > 1000 {
    notify { 'high': }
  } else {
    notify { 'low': }
  }
  $names = ['a', 'b', 'c'].map |$name| {
    "<${name}>"
  }
  notify { $names: }
}
define never {
  notify { 'never': }
}
include web
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "manifests/site.pp"
    path.parent.mkdir()
    path.write_text(MANIFEST)
    return path


def compile_site(path: Path) -> None:
    root = str(path.parent.parent)
    settings = {"strict": "warning", "strict_variables": True}
    world = DirectoryEnvironment(Environment("production", root, (), str(path)), DiskFiles(), settings=settings)
    compiled("", world=world)


@contextmanager
def traced_as_before() -> Iterator[None]:
    """A test that takes the process's trace function gives it back."""
    before = sys.gettrace()
    try:
        yield
    finally:
        sys.settrace(before)


def test_coverage_measures_the_lines_of_a_manifest(site: Path) -> None:
    measured = coverage.Coverage(data_file=None, include=[str(site)], messages=False)
    with traced_as_before():
        measured.start()
        compile_site(site)
        measured.stop()
    lines = set(measured.get_data().lines(str(site)) or ())
    assert {2, 3, 6, 8, 9, 11, 16} <= lines, "what ran"
    assert not {4, 14} & lines, "what did not run"


def test_a_profile_names_manifests_and_lines(site: Path) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(compile_site, site)
    found = {(line, name): calls for (file, line, name), (_, calls, *_) in pstats.Stats(profiler).stats.items() if file == str(site)}  # type: ignore[attr-defined]
    assert found[1, "class web"] == 1
    assert [calls for (line, name), calls in found.items() if name.startswith("lambda")] == [3]
    assert (13, "define never") not in found


def test_the_debugger_stops_at_a_line_of_a_manifest(site: Path) -> None:
    said = io.StringIO()
    commands = io.StringIO("continue\np sorted(locals().items())\nclear 1\ncontinue\n")
    debugger = pdb.Pdb(stdin=commands, stdout=said, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    assert debugger.set_break(str(site), 9) is None  # from Python 3.13 on, the command `break` takes names that end in .py only
    with traced_as_before():
        debugger.runcall(compile_site, site)
    text = said.getvalue()
    assert f"> {site}(9)lambda" in text, "it stopped there"
    assert '-> "<${name}>"' in text, "and showed the manifest's own line"
    assert "'a'" in text, "and the value of the lambda's parameter"


def test_a_traceback_shows_the_manifest(site: Path) -> None:
    site.write_text("class web {\n  $x = [1].map |$i| {\n    $i + 'one'\n  }\n}\ninclude web\n")
    with pytest.raises(EvaluationError) as caught:
        compile_site(site)
    frames = [each for each in traceback.walk_tb(_root(caught.value).__traceback__) if each[0].f_code.co_filename == str(site)]
    assert [line for _, line in frames] == [6, 2, 3]
    shown = "".join(traceback.format_exception(_root(caught.value)))
    assert f'File "{site}", line 3, in lambda' in shown and "    $i + 'one'\n" in shown
    assert str(caught.value.where) == f"(file: {site}, line: 3, column: 10)"


def _root(error: BaseException) -> BaseException:
    """What was raised first; an error that got its place on the way may be said to be its own cause."""
    while error.__cause__ is not None and error.__cause__ is not error:
        error = error.__cause__
    return error


def test_line_times_say_how_often_and_how_long(site: Path, ticking: Callable[[], float]) -> None:
    times = LineTimes(clock=ticking)
    with traced_as_before(), times:
        compile_site(site)
    assert sys.gettrace() is not times._call
    found = {line: spent for (file, line), spent in times.lines.items() if file == str(site)}
    assert found[9].times == 3 and found[16].times == 1
    assert found[16].whole > found[8].whole > found[8].own > 0
    assert times.total > sum(spent.own for spent in found.values()) > 0
    assert found[16].whole >= found[2].own + found[3].own + found[11].own
    first, second, *rows = times.text(3).splitlines()
    assert first.startswith("Slowest manifest lines of ") and len(rows) == 3 and second.split()[0] == "own"


@pytest.fixture
def ticking() -> Callable[[], float]:
    """A clock that goes on by a second each time it is looked at."""
    now = iter(range(10**9))
    return lambda: float(next(now))
