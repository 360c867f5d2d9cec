"""Translated functions give what Ruby gives: values, errors with their places, and what is logged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from language.codegen.codecache import CodeCache
from language.loading.ruby_functions import translated_function
from language.syntax.source import Source
from tests.gate import caches
from tests.language.erb.function_calls import Caller, Values, callers
from tests.support.needs import needs_ruby

OWN = Path(__file__).parents[2] / "data" / "ruby_functions"
MODULES = caches.folder("debian-modules") / "modules"
BUNDLED = frozenset(("stdlib",))  # whose functions are part of the compiler

pytestmark = needs_ruby


def files_of(folder: Path) -> list[tuple[str, Path]]:
    """Return the names of the functions that modules below a folder have, and their files; each name once."""
    files: dict[str, Path] = {}
    for pattern in ("*/lib/puppet/functions/**/*.rb", "*/lib/puppet/parser/functions/*.rb"):
        for path in sorted(folder.glob(pattern)):
            if path.relative_to(folder).parts[0] not in BUNDLED:
                files.setdefault(
                    re.sub(r"^.*?/puppet/(parser/)?functions/", "", path.as_posix()).removesuffix(".rb").replace("/", "::"), path
                )
    return list(files.items())


def judged(ours: Caller, theirs: Caller, name: str, path: Path, calls: int) -> Counter[str]:
    """Call a function with many arguments; return how many calls gave a value, an error, or were left to Ruby."""
    text = path.read_text()
    translated = translated_function(name, Source(text, str(path)), CodeCache())
    if not translated.methods:
        return Counter()
    arity, dispatches, _ = translated.definition
    words = tuple(dict.fromkeys(re.findall(r"'([\w:<> ]+)'", text)))
    outcomes: Counter[str] = Counter()
    for seed in range(calls):
        declared = dispatches[seed % len(dispatches)][1] if arity is None and seed % 4 else ()
        arguments = Values(seed, words).arguments(declared)
        before = repr(arguments)
        our_outcome = ours.call(name, arguments)
        assert repr(arguments) == before, f"{name} has changed an argument"
        if our_outcome.doubt:
            outcomes["doubt"] += 1
            continue
        their_outcome = theirs.call(name, arguments)
        if not re.match("undefined method .=~.", their_outcome.error):  # of values that are no strings, since Ruby 3.2
            assert our_outcome == their_outcome, f"{name}({before})"
        outcomes["error" if our_outcome.error else "value"] += 1
    return outcomes


@pytest.fixture(scope="module")
def own() -> Iterator[tuple[Caller, Caller]]:
    with callers({}, OWN) as pair:
        yield pair


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path"), files_of(OWN), ids=lambda value: value if isinstance(value, str) else "")
def test_a_function_gives_what_ruby_gives(name: str, path: Path, own: tuple[Caller, Caller]) -> None:
    outcomes = judged(*own, name, path, 200)
    assert outcomes["value"] + outcomes["error"] > outcomes["doubt"]
    assert outcomes["value"] > 10


@pytest.mark.slow
def test_functions_of_modules_give_what_ruby_gives() -> None:
    files = files_of(MODULES) if MODULES.is_dir() else []
    if not files:
        pytest.skip("Debian's modules are not there; make debian-modules")
    outcomes: Counter[str] = Counter()
    with callers({}, MODULES) as (ours, theirs):
        for name, path in files:
            outcomes += judged(ours, theirs, name, path, 40)
    assert outcomes["value"] + outcomes["error"] > outcomes["doubt"] * 3


def test_a_call_that_ruby_has_to_make_again_calls_and_logs_once(tmp_path: Path) -> None:
    """The translation stops in its last line, of which only Ruby knows the outcome."""
    function = (
        "Puppet::Functions.create_function(:'m::again') do\n"
        "  def again(x)\n"
        "    Puppet.notice('logged')\n"
        "    call_function('notice', 'called')\n"
        "    failed = begin\n      call_function('fail', 'no')\n    rescue Puppet::ParseError\n      'rescued'\n    end\n"
        "    y = call_function('join', [x, 'b'], '-')\n"
        "    [failed, y, x.upcase]\n"
        "  end\n"
        "end\n"
    )
    files = {"modules/m/lib/puppet/functions/m/again.rb": function}
    with callers(files) as (ours, theirs):
        ours.environment._ruby = theirs.environment._ruby  # both
        assert ours.call("m::again", ["é"]) == theirs.call("m::again", ["é"])
        outcome = ours.call("m::again", ["é"])
    assert outcome.value == "['rescued', 'é-b', 'É']"
    assert outcome.logs == ("notice: logged", "notice: called")
