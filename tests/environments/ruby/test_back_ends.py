"""Back ends of Hiera in Ruby: what they cache and read, and when Ruby is not asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import TrackedFiles
from environments.ruby import RubyProgram, RubySettings
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from tests.environments.ruby.site import PROGRAM
from tests.support.needs import needs_ruby

pytestmark = [needs_ruby, pytest.mark.slow]

HIERA = """
version: 5
hierarchy:
  - {name: first, lookup_key: m::backend, path: first.txt}
  - {name: second, lookup_key: m::backend, path: second.txt}
"""
BACKEND = """
Puppet::Functions.create_function(:'m::backend') do
  dispatch(:backend) { param 'String[1]', :key; param 'Hash', :options; param 'Puppet::LookupContext', :context }
  def backend(key, options, context)
    MARK
    data = context.cached_file_data(options['path']) { |text| text.lines.to_h { |line| line.chomp.split('=', 2) } }
    context.not_found unless data.include?(key)
    context.interpolate(data[key])
  end
end
"""
COUNTED = "$calls = $calls.to_i + 1"  # which no list of pure code allows
CALLS = "inline_template('<%= $calls.to_i %>')"


class Site:
    """An environment on disk, whose catalogs are made by one process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("data", "modules/m/lib/puppet/functions/m", "modules/m/functions"):
            (root / folder).mkdir(parents=True)
        (root / "hiera.yaml").write_text(HIERA)
        (root / "data" / "first.txt").write_text("a=1\n")
        (root / "data" / "second.txt").write_text("a=2\nb=for %{facts.who}\n")
        self.live = TrackedFiles(str(root))
        self.backend(BACKEND.replace("MARK", ""))

    def backend(self, text: str) -> None:
        """Give the module that function, and begin with a new process."""
        self.end()
        self.function("backend", text)
        settings = {"strict": "warning", "strict_variables": True}
        self.world = DirectoryEnvironment(
            Environment("production", str(self.root), (f"{self.root}/modules",), None),
            TrackedFiles(str(self.root)),
            settings=settings,
            live=self.live,
            services=EnvironmentServices(ruby=RubyProgram(RubySettings(PROGRAM))),
        )

    def function(self, name: str, text: str) -> None:
        (self.root / f"modules/m/lib/puppet/functions/m/{name}.rb").write_text(text)

    def end(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    def compile(self, manifest: str, *, who: str = "you", debug: bool = True) -> tuple[list[str], list[str]]:
        """Return what is logged of the levels notice and debug, and why the catalog would not be the same again."""
        self.world.code = manifest
        loader = Loader(self.world, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
        logs: list[LogEntry] = []
        reads = NodeDependencies()
        node = NodeInput("n", facts={"who": who}, parameters={"who": who})
        compile_catalog(self.world, loader, node, version=0, log=logs.append, debug=debug, dependencies=reads)
        return [each.message for each in logs if each.level in ("notice", "debug")], [each.text for each in reads.uncacheable_reasons]

    def notices(self, manifest: str, **options: str) -> list[str]:
        notices, unstable = self.compile(manifest, **options)
        assert not unstable
        return notices


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "production")
    yield made
    made.end()


def questions(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that Ruby is asked for from now on."""
    asked: list[str] = []
    host = site.world.ruby
    ask = host._ask  # type: ignore[union-attr]
    monkeypatch.setattr(host, "_ask", lambda scope, op, *args: (asked.append(op), ask(scope, op, *args))[1])
    return asked


def test_results_of_a_pure_back_end_are_remembered_until_a_file_changes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = questions(site, monkeypatch)
    manifest = "notice(lookup('a'), lookup('b', default_value => '-'), lookup('c', default_value => '-'))"
    assert site.notices(manifest) == ["1 for you -"]
    first = asked.count("call")
    assert site.notices(manifest, who="me") == ["1 for me -"]
    assert asked.count("call") == first + 1  # the value with an expression is asked for again
    (site.root / "data" / "first.txt").write_text("c=3\n")
    assert site.notices(manifest) == ["2 for you 3"]


def test_a_back_end_that_may_read_anything_is_asked_each_time(site: Site) -> None:
    site.backend(BACKEND.replace("MARK", COUNTED))
    manifest = f"notice(lookup('a'), {CALLS})"
    assert [site.compile(manifest)[0] for _ in range(2)] == [["1 3"], ["1 6"]]  # lookup_options twice
    assert site.compile(manifest)[1][0].startswith("$calls")


def test_files_that_functions_look_at_are_inputs_of_the_catalog(site: Site) -> None:
    text = (
        "Puppet::Functions.create_function(:'m::own') do\n  def own(path)\n    File.exist?(path) ? File.read(path) : 'none'\n  end\nend\n"
    )
    site.function("own", text)
    path = site.root / "own.txt"
    site.live.take_seen()
    assert site.notices(f"notice(m::own('{path}'))") == ["none"]
    seen = site.live.take_seen()
    assert seen.are_unchanged(str(site.root), "")
    path.write_text("here")
    assert not seen.are_unchanged(str(site.root), "")
    assert site.notices(f"notice(m::own('{path}'))") == ["here"]
    seen = site.live.take_seen()
    path.write_text("other")
    assert not seen.are_unchanged(str(site.root), "")


def test_a_file_that_ruby_itself_writes_makes_the_catalog_unstable(site: Site) -> None:
    path = site.root / "own.txt"
    path.write_text("old")
    text = (
        "Puppet::Functions.create_function(:'m::own') do\n"
        "  def own(path)\n    old = File.read(path)\n    File.write(path, 'new')\n    old + File.read(path)\n  end\nend\n"
    )
    site.function("own", text)
    notices, unstable = site.compile(f"notice(m::own('{path}'))")
    assert notices == ["oldnew"]
    assert "a file changed while it was read" in unstable


def test_what_a_back_end_caches_is_its_own_until_it_passes_the_object_on(site: Site) -> None:
    (site.root / "modules/m/functions/seen.pp").write_text(
        "function m::seen(Puppet::LookupContext $context) { $context.cache('from', 'language') $context.cached_value('own') }"
    )
    site.backend(
        BACKEND.replace(
            "MARK",
            "return 'again ' + context.cached_value('from') + context.cached_entries.to_a.length.to_s if context.cache_has_key('from')\n"
            "    if key == 'shared'\n      context.cache('own', 'ruby')\n      return call_function('m::seen', context)\n    end\n",
        )
    )
    assert site.notices("notice(lookup('shared'), lookup('b'))") == ["ruby again language2"]


def test_debug_lines_are_logged_where_somebody_reads_them(site: Site) -> None:
    site.backend(BACKEND.replace("MARK", 'Puppet.debug("asked for #{key}")'))
    assert "asked for a" in site.compile("notice(lookup('a'))")[0]
    assert site.compile("notice(lookup('a'))", debug=False)[0] == ["1"]


def test_the_keys_of_the_last_catalog_are_looked_up_ahead_in_one_question(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.root / "hiera.yaml").write_text(
        "version: 5\nhierarchy: [{name: only, lookup_key: m::backend, path: first.txt, options: {who: '%{facts.who}'}}]\n"
    )
    (site.root / "data" / "first.txt").write_text("".join(f"k{number}=value {number} of WHO\n" for number in range(8)) + "e=%{facts.who}\n")
    site.backend(BACKEND.replace("MARK", "").replace("data[key])", "data[key].sub('WHO', options['who']))"))
    manifest = "Integer[0, 9].each |$n| { notice(lookup(\"k${n}\", default_value => '-')) }\nnotice(lookup('e'))"

    def expected(who: str) -> list[str]:
        return [*(f"value {number} of {who}" for number in range(8)), "-", "-", who]

    assert site.notices(manifest, who="you") == expected("you")
    asked = questions(site, monkeypatch)
    assert site.notices(manifest, who="me") == expected("me")
    # lookup_options, then all others ahead, but for the one that needs a variable of this node
    assert asked.count("call_each") == 1
    assert asked.count("call") == 2
