"""The gate's own judgements: what it runs first and in which part, what makes it red, and where its caches are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.gate import caches
from tests.gate.durations import part_of, read_durations, seconds_of_files, stale_tests
from tests.gate.results import Results
from tests.gate.verdict import differing_skips, slowness

ROOT = Path(__file__).parents[2]
TESTS = """
import time
import pytest

def test_good(): pass
@pytest.fixture(scope="session")
def programs(): time.sleep(0.1)
@pytest.fixture(scope="session")
def server(programs): time.sleep(0.1)
def test_first_at_the_server(server): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.full
def test_full(): pass
@pytest.mark.interop
def test_with_programs(): pass
@pytest.mark.skip(reason="no moon")
def test_skipped(): pass
def test_bad(): assert False
@pytest.fixture
def broken(): raise ValueError
def test_broken(broken): pass
@pytest.mark.alone
def test_alone(): pass
"""
FILES = {f"tests/test_{number}.py": float(number % 7 + 1) for number in range(50)}


def run(tmp_path: Path, *arguments: str) -> tuple[Results, str]:
    """What pytest, with the gate's plugin, finds in `TESTS`, and what it prints."""
    (tmp_path / "test_these.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n  alone\n  full\n  interop\n")
    results = tmp_path / "results.json"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tests.gate.plugin", "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini")]
    done = subprocess.run(
        [*argv, "--results", str(results), *arguments, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert results.exists(), done.stdout + done.stderr
    return Results.read(results), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_results_have_outcomes_skips_durations_and_marks(tmp_path: Path, workers: str) -> None:
    results, said = run(tmp_path, "-n", workers)
    is_refused = workers != "0"  # the lone test beside others
    assert results.outcomes == {"passed": 6 - is_refused, "skipped": 1, "failed": 1, "error": 1 + is_refused}
    assert results.skips == {"no moon": 1}
    assert "1 no moon" in said  # `make test` has no other end
    names = {test.partition("::")[2] for test in results.seconds}
    short = {"test_good", "test_first_at_the_server", "test_skipped", "test_bad", "test_broken", "test_alone"}
    assert names == short | {"test_slow", "test_full", "test_with_programs"}
    assert {test.partition("::")[2] for test in results.unmarked} == short
    assert ("needs the machine for itself" in said) == is_refused
    first = "test_these.py::test_first_at_the_server"
    assert results.seconds[first] >= 0.2 > results.unmarked[first]  # what starts for all is not blamed on the first that asks


@pytest.mark.slow
@pytest.mark.parametrize(("mark", "count"), [("slow", 6), ("smoke", 0)])
def test_a_file_that_does_not_name_a_mark_is_left_out(tmp_path: Path, mark: str, count: int) -> None:
    assert run(tmp_path, "--marked", mark)[0].outcomes["passed"] == count


@pytest.mark.slow
def test_a_file_has_to_name_the_marks_of_its_tests(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("import pytest\n@getattr(pytest.mark, 'al' + 'one')\ndef test_one(): pass\n")
    assert "test_other.py has to name the mark of its tests: alone" in run(tmp_path)[1]


def test_parts_hold_every_file_once_and_take_equally_long() -> None:
    parts = [part_of(FILES, number, 4) for number in (1, 2, 3, 4)]
    assert sorted(file for part in parts for file in part) == sorted(FILES)
    lengths = [sum(FILES[file] for file in part) for part in parts]
    assert max(lengths) - min(lengths) <= 1


def test_a_test_that_is_not_recorded_counts_as_a_short_one() -> None:
    assert seconds_of_files(["a.py::one", "a.py::two", "b.py::one"], {"a.py::one": 3.0}) == {"a.py": 3.01, "b.py": 0.01}


def test_a_gate_that_skips_more_or_less_than_was_committed_is_red() -> None:
    committed = Counter({"no ruby": 2, "no root": 1})
    assert differing_skips(committed, committed) == []
    assert differing_skips(Counter({"no ruby": 2, "no moon": 3}), committed) == [
        "3 tests are skipped, and 0 were to be (skips.json): no moon",
        "0 tests are skipped, and 1 were to be (skips.json): no root",
    ]


@pytest.mark.parametrize(
    ("now", "factor"), [({}, 1.0), ({"a": 0.5, "b": 0.5}, 1.0), ({"a": 3.0, "b": 3.0}, 3.0), ({"a": 3.0, "b": 2.0, "c": 90.0}, 3.0)]
)
def test_how_slow_the_machine_is_now_is_told_by_recorded_tests(now: dict[str, float], factor: float) -> None:
    assert slowness(now, {"a": 1.0, "b": 1.0, "c": 1.0, "gone": 1.0}) == factor


def test_the_closing_line_is_that_of_pytest_for_all_stages() -> None:
    every, other = Results(Counter(passed=2)), Results(Counter(passed=3, skipped=1))
    every.add(other)
    assert every.closing_line(61.5).strip("=") == " 5 passed, 1 skipped in 61.50s (0:01:02) "


@pytest.mark.parametrize("name", caches.CACHES)
def test_a_cache_has_another_folder_when_what_makes_it_changes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = caches.folder(name)
    cache = caches.CACHES[name]
    for path in {path for each in caches.CACHES.values() for path in (each.script, *each.also)}:
        copied = tmp_path / path
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes((ROOT / path).read_bytes())
    monkeypatch.setattr(caches, "ROOT", tmp_path)
    assert caches.folder(name) == before
    with (tmp_path / cache.script).open("a") as script:
        script.write("# changed\n")
    assert caches.folder(name) != before


def test_a_cache_is_made_once_and_one_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.sh").write_text('mkdir "$1"; echo "$2" > "$1/made"\n')
    (tmp_path / "bad.sh").write_text("echo there is no mirror; exit 3\n")
    monkeypatch.setattr(caches, "ROOT", tmp_path)
    monkeypatch.setattr(caches, "FOLDER", tmp_path / "caches")
    monkeypatch.setattr(
        caches, "CACHES", {"good": caches.Cache("good.sh", ("word",), root=False), "bad": caches.Cache("bad.sh", root=False)}
    )
    assert "made in" in caches.make("good") and (caches.folder("good") / "made").read_text() == "word\n"
    assert "made in" not in caches.make("good")
    assert caches.make("bad").startswith("bad: not made (3)") and "there is no mirror" in caches.make("bad")
    assert [caches.is_made(name) for name in ("good", "bad")] == [True, False]
    assert caches.main(["ugly"]) == 2


def test_durations_are_of_tests_that_exist() -> None:
    here = "tests/gate/test_gate.py"
    names = [f"{here}::test_durations_are_of_tests_that_exist", f"{here}::test_that_was[removed]", "tests/test_removed.py::test_one"]
    assert stale_tests(names) == set(names[1:])
    assert stale_tests(read_durations()) == set()


def test_durations_and_skips_are_committed() -> None:
    folder = Path(__file__).parent
    for name in ("durations.json", "skips.json"):
        assert json.loads((folder / name).read_text()), f"{name}: python -m tests.gate --accept writes it after a whole gate"
