"""Templates and functions in Ruby, as far as they are not among the recorded cases of tests/conformance/language/ruby.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from master.compiler.codegen.codecache import CodeCache
from master.compiler.evaluation.compile import compile_catalog
from master.compiler.evaluation.dependencies import NodeDependencies
from master.compiler.evaluation.runtime import NAMES
from master.compiler.host import NodeInput
from master.compiler.loading.builtins import all_functions
from master.compiler.loading.loader import Loader
from master.environments.directories import EnvironmentSettings
from master.environments.loaded import LoadedEnvironments
from shared.errors import CompileError
from tests.master.ruby.site import PROGRAM, compile_with, in_world, world
from tests.support.needs import needs_ruby

pytestmark = needs_ruby


# --- values ---


def test_bytes_that_are_no_text_go_through_ruby_as_they_are() -> None:
    read = "$x = inline_template('<%= [255, 254].pack(\"C*\") %>')\nnotice(inline_template('<%= @x.bytes.inspect %>'))"
    assert compile_with(read).notices == ["[255, 254]"]


@pytest.mark.parametrize("fact", [{"$": "kept", "id": 1}, {"$": "block", "id": 1}, {"a": {"$": "sensitive", "v": "x"}}])
def test_a_fact_that_looks_like_an_object_of_the_wire_is_a_hash(fact: dict[str, object]) -> None:
    manifest = "notice(inline_template('<%= @given.class %>'), $given == m::same($given))"
    function = "Puppet::Functions.create_function(:'m::same') { def same(x) = x }"
    files = {"modules/m/lib/puppet/functions/m/same.rb": function}
    assert compile_with(manifest, files, facts={"given": fact}).notices == ["Hash true"]


def test_a_fact_s_text_is_never_evaluated() -> None:
    given = "<%= 1 + 1 %>#{1 + 1}"
    assert compile_with("notice(inline_template('<%= @given %>'))", facts={"given": given}).notices == [given]


def test_a_variable_with_a_name_that_ruby_has_not_is_given_another() -> None:
    assert compile_with("notice(inline_template('<%= @mtu_eth0_1 %>'))", facts={"mtu_eth0.1": 1500}).notices == ["1500"]


def test_facter_answers_with_the_facts_of_the_node() -> None:
    asked = "%w[kernel os.family os.none none KERNEL].map { |name| Facter.value(name) } + [Facter[:kernel].value, Facter.fact(:none)]"
    facts = {"kernel": "Linux", "os": {"family": "Debian"}}
    compiled = compile_with(f"notice(inline_template('<%= ({asked}).inspect %>'))", facts=facts)
    assert compiled.notices == ['["Linux", "Debian", nil, nil, "Linux", "Linux", nil]']
    assert compile_with("notice(inline_template('<%= Facter.value(:kernel).inspect %>'))").notices == ["nil"]


def test_a_file_may_define_further_functions_which_are_there_once_it_was_read() -> None:
    code = """
        module Puppet::Parser::Functions
          newfunction(:'m::inner', type: :rvalue) { |args| "<#{args[0]}>" }
          newfunction(:outer, type: :rvalue) { |args| call_function('m::inner', [args[0]]) + 'm::other'.to_s }
        end
    """
    files = {"modules/m/lib/puppet/parser/functions/outer.rb": code}
    assert compile_with("notice(outer('a'), m::inner('b'))", files).notices == ["<a>m::other <b>"]
    with pytest.raises(CompileError, match="Unknown function: 'm::inner'"):
        compile_with("notice(m::inner('b'))", files)


def test_a_number_that_the_language_has_not_is_refused() -> None:
    files = {"modules/m/lib/puppet/functions/big.rb": "Puppet::Functions.create_function(:big) { def big = 2**80 }"}
    with pytest.raises(CompileError, match=r"Ruby Integer outside of Puppet Integer max range, got '0x1000"):
        compile_with("big()", files)


def test_an_object_that_is_no_value_is_named_by_its_class() -> None:
    files = {"modules/m/lib/puppet/functions/odd.rb": "Puppet::Functions.create_function(:odd) { def odd = $stderr }"}
    with pytest.raises(CompileError, match="An object of Ruby's class IO is no value of the language"):
        compile_with("odd()", files)


def test_changes_that_a_template_makes_to_a_variable_are_not_seen_elsewhere() -> None:
    manifest = "$list = ['a']\n$text = inline_template('<% @list << \"b\" %><%= @list %>')\nnotice($text, $list)"
    assert compile_with(manifest).notices == ['["a", "b"] [a]']


def test_templates_without_end_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("master.ruby.host.MAX_TEMPLATES", 3)
    manifest = "Integer[1, 9].each |$i| { notice(inline_template(\"<%= ${i} %>\")) }\nnotice(inline_template('<%= 1 %>'))"
    environment = world({})
    assert in_world(environment, manifest).notices == [*map(str, range(1, 10)), "1"]
    assert environment._ruby is not None
    assert len(environment._ruby._templates) <= 3
    environment.close()


def test_what_a_template_set_is_forgotten_with_the_catalog() -> None:
    environment = world({})
    manifest = "inline_template('<% scope.setvar(\"kept\", { :a => @n }) %>')\nnotice(inline_template('<%= scope[\"kept\"][:a] %>'))"
    for number in (1, 2):
        assert in_world(environment, manifest, facts={"n": number}).notices == [str(number)]
    assert in_world(environment, "notice(inline_template('<%= Bunraku.desk.instance_variable_get(:@held).size %>'))").notices == ["0"]
    environment.close()


# --- what is not there ---


def test_what_only_puppet_s_own_ruby_has_is_named_with_place_and_way_out() -> None:
    function = "Puppet::Functions.create_function(:odd) do\n  def odd = Puppet::Util::Windows.x\nend\n"
    with pytest.raises(CompileError) as caught:
        compile_with("\nodd()", {"modules/m/lib/puppet/functions/odd.rb": function})
    assert str(caught.value) == (
        "Evaluation Error: Error while evaluating a Function Call, The function 'odd' uses Puppet::Util::Windows, which only Puppet's own "
        "Ruby has (/env/modules/m/lib/puppet/functions/odd.rb:2) (line: 2, column: 1) on node node1.example.com"
    )
    assert "Python" in caught.value.hint


@pytest.mark.parametrize(
    ("code", "lacks"),
    [
        ("Puppet.lookup(:x)", "Puppet.lookup"),
        ("Facter.add(:kernel)", "Facter.add"),
        ("scope.newscope", "Puppet::Parser::Scope#newscope"),
        ("scope.catalog.add_resource('a')", "Puppet::Resource::Catalog#add_resource"),
    ],
)
def test_a_template_that_wants_it_is_named_too(code: str, lacks: str) -> None:
    with pytest.raises(CompileError, match=f"The template m/t.erb uses {lacks}, which only Puppet's own Ruby has"):
        compile_with("template('m/t.erb')", {"modules/m/templates/t.erb": f"<% {code} %>"})


def test_puppet_s_own_files_are_not_loaded_even_where_they_are_installed() -> None:
    manifest = 'notice(inline_template(\'<%= require "puppet" %><%= require "puppet/util" %><%= defined?(Puppet::Node).inspect %>\'))'
    assert compile_with(manifest).notices == ["falsefalsenil"]


def test_a_file_that_defines_no_function_is_refused_by_name() -> None:
    with pytest.raises(CompileError, match=r"Could not load the function 'f': /env/modules/m/\S+f.rb defines no function, not f"):
        compile_with("f()", {"modules/m/lib/puppet/functions/f.rb": "1"})


def test_a_file_that_is_no_ruby_is_refused_with_the_line() -> None:
    with pytest.raises(CompileError, match="Could not load the function 'f'") as caught:
        compile_with("f()", {"modules/m/lib/puppet/functions/f.rb": "1\ndef ("})
    assert "functions/f.rb:2" in caught.value.hint


# --- between Ruby and the compiler ---


def test_a_template_that_renders_itself_for_ever_is_an_error() -> None:
    with pytest.raises(CompileError, match="stack level too deep"):
        compile_with("template('m/t.erb')", {"modules/m/templates/t.erb": "<%= scope.function_template(['m/t.erb']) %>"})


def test_a_jump_out_of_a_lambda_goes_through_ruby_which_cannot_rescue_it() -> None:
    files = {
        "modules/m/lib/puppet/functions/m/f.rb": "Puppet::Functions.create_function(:'m::f') do\n"
        "  dispatch(:f) { block_param }\n  def f = (yield(1) rescue 'rescued')\nend\n",
        "modules/m/functions/g.pp": "function m::g() { m::f() |$x| { return('returned') } 'not reached' }",
    }
    environment = world(files)
    assert in_world(environment, "notice(m::g())\nnotice(inline_template('still'))").notices == ["returned", "still"]
    environment.close()


def test_what_a_template_prints_is_not_its_text(capfd: pytest.CaptureFixture[str]) -> None:
    manifest = 'notice(inline_template(\'<% puts "out"; $stdout.write("x" * 9); system("echo shell") %>text\'))'
    assert compile_with(manifest).notices == ["text"]
    said = capfd.readouterr()
    assert said.out == ""
    assert "out" in said.err and "shell" in said.err


def test_the_environment_of_the_master_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3")
    monkeypatch.setenv("RUBYOPT", "-rnothing_of_this_name")
    assert compile_with("notice(inline_template('<%= ENV[\"SECRET\"].inspect %>'))").notices == ["nil"]


@pytest.mark.parametrize(
    ("manifest", "reasons"),
    [
        ("notify { inline_template('<%= Time.now.to_f %>'): }", [("Time.now", None)]),
        ("notify { template('m/clock.erb'): }", [("Time.now", "/env/modules/m/templates/clock.erb:2")]),
        ("notify { m::clock(): }", [("Time.now", "/env/modules/m/lib/puppet/functions/m/clock.rb:3")]),
        ("notify { \"${m::mask('1-3')}\": }", []),
        ("notify { template('m/yaml.erb'): }", []),
    ],
)
def test_a_catalog_is_compiled_each_time_when_its_ruby_may_read_something_else(
    manifest: str, reasons: list[tuple[str, str | None]]
) -> None:
    reads = NodeDependencies()
    environment = world(
        {
            "modules/m/templates/clock.erb": "a\n<%= Time.now.to_f %>",
            "modules/m/templates/yaml.erb": "<%= { 'a' => 1 }.to_yaml %>",
            "modules/m/lib/puppet/functions/m/clock.rb": (
                "Puppet::Functions.create_function(:'m::clock') do\n  def clock\n    Time.now.to_s\n  end\nend\n"
            ),
            "modules/m/lib/puppet/functions/m/mask.rb": (
                "Puppet::Functions.create_function(:'m::mask') do\n  def mask(x)\n    x.tr('-', '').to_i.to_s(2)\n  end\nend\n"
            ),
        }
    )
    environment.code = manifest
    loader = Loader(environment, NAMES, CodeCache(), log=lambda level, found: None, builtins=all_functions())
    compile_catalog(environment, loader, NodeInput("n"), version=1, log=lambda entry: None, dependencies=reads)
    environment.close()
    places = [
        f"{reason.where.file}:{reason.where.line}" if reason.where and reason.where.file else None for reason in reads.uncacheable_reasons
    ]
    assert list(zip([reason.text for reason in reads.uncacheable_reasons], places, strict=True)) == reasons


# --- on disk ---


def environments(root: Path, names: tuple[str, ...] = ("production",)) -> LoadedEnvironments:
    for name in names:
        for each in ("manifests", "modules/m/templates", "modules/m/lib/puppet/functions", "modules/m/lib/puppet_x/m"):
            (root / name / each).mkdir(parents=True)
        (root / name / "manifests" / "site.pp").write_text("notify { f(): }")
    return LoadedEnvironments(EnvironmentSettings((str(root),), ruby=PROGRAM), CodeCache(), log=lambda level, found: None)


def title(loaded: LoadedEnvironments, name: str = "production") -> str:
    found = loaded.get(name)
    catalog = compile_catalog(found.host, found.loader, NodeInput("n", name), version=1, log=lambda entry: None)
    return next(str(each["title"]) for each in catalog["resources"] if each["type"] == "Notify")


def test_a_changed_function_and_what_it_requires_are_seen(tmp_path: Path) -> None:
    loaded = environments(tmp_path)
    lib = tmp_path / "production/modules/m/lib"
    (lib / "puppet/functions/f.rb").write_text("require 'puppet_x/m/text'\nPuppet::Functions.create_function(:f) { def f = 'a' + TEXT }")
    (lib / "puppet_x/m/text.rb").write_text("TEXT = '1'")
    assert title(loaded) == "a1"
    (lib / "puppet_x/m/text.rb").write_text("TEXT = '22'")
    assert title(loaded) == "a22"
    (lib / "puppet/functions/f.rb").write_text("Puppet::Functions.create_function(:f) { def f = 'other' }")
    assert title(loaded) == "other"
    loaded.forget()


@pytest.mark.slow
def test_environments_do_not_see_each_other_s_ruby(tmp_path: Path) -> None:
    names = tuple(f"env{number}" for number in range(6))
    loaded = environments(tmp_path, names)
    for name in names:
        lib = tmp_path / name / "modules/m/lib"
        (lib / "puppet_x/m/text.rb").write_text(f"class Name; def self.text = '{name}'; end")
        (lib / "puppet/functions/f.rb").write_text("require 'puppet_x/m/text'\nPuppet::Functions.create_function(:f) { def f = Name.text }")
    for _ in range(2):
        assert [title(loaded, name) for name in names] == list(names)
    assert loaded._ruby is not None
    assert len(loaded._ruby._children) == 4  # each process of Ruby takes memory: that of the environment used longest ago has ended
    loaded.forget()
