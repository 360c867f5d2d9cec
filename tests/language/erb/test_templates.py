"""ERB templates in catalogs: translated where they can be, by Ruby where not, and what a site sees of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunraku.catalogs.profiling import LineTimes
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.ruby import RubyProgram, RubySettings
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from shared.errors import CompileError
from tests.environments.ruby.site import compile_with
from tests.support.compiling import Compiled, compiled
from tests.support.memory_files import MemoryFiles
from tests.support.needs import needs_ruby

FILES = {"/env/t.erb": "<%= [2, 1].sort.inspect %>"}
NO_PROGRAM = RubyProgram(RubySettings("/nowhere/ruby"))
"""A Ruby that fails when it is started."""


def without_ruby(manifest: str, **templates: str) -> Compiled:
    """Compile a manifest in a site without Ruby whose module `m` has templates."""
    files = {f"/env/modules/m/templates/{name}.erb": text for name, text in templates.items()}
    world = DirectoryEnvironment(
        Environment("production", "/env", ("/env/modules",), None), MemoryFiles(files), code=manifest, settings={"strict": "warning"}
    )
    return compiled("", world=world)


def in_module(**templates: str) -> dict[str, str]:
    return {f"modules/m/templates/{name}.erb": text for name, text in templates.items()}


def test_a_template_in_the_subset_needs_no_ruby() -> None:
    text = "<% @list.each do |item| -%>\n- <%= item %>\n<% end -%>\n<%= scope['top'].upcase %> <%= has_variable?('none').inspect %>"
    site = without_ruby("$top = 'x'\n$list = ['a', 1, undef]\nnotice(template('m/list.erb'))", list=text)
    assert site.notices == ["- a\n- 1\n- \nX false"]


def test_a_byte_order_mark_is_no_part_of_a_file_s_text() -> None:
    text = "\ufeff#!/bin/sh <%= 1 %>"
    files = {"/env/modules/m/files/f": text, "/env/modules/m/templates/t.erb": text}
    world = DirectoryEnvironment(Environment("production", "/env", ("/env/modules",), None), MemoryFiles(files), settings={})
    world.code = "notice(file('m/f')) notice(template('m/t.erb')) notice(inline_template($facts['text']))"
    assert compiled("", world=world, facts={"text": text}).notices == ["#!/bin/sh <%= 1 %>", "#!/bin/sh 1", "\ufeff#!/bin/sh 1"]


def test_inline_templates_are_translated_too() -> None:
    assert without_ruby("$a = {'k' => [1, 2.5, true]}\nnotice(inline_template('<%= @a %>', '<%= @b.inspect %>'))").notices == [
        '{"k"=>[1, 2.5, true]}nil'
    ]


def test_a_template_sees_the_scope_that_renders_it() -> None:
    manifest = "class c($p = 'in c') { $none = undef\n notice(template('m/t.erb')) }\ninclude c"
    text = "<%= @p %> <%= scope['c::p'] %> <%= scope.lookupvar('::c::p') %> <%= defined?(@none).inspect %> <%= @module_name.inspect %>"
    assert without_ruby(manifest, t=text).notices == ['in c in c in c nil ""']


def test_functions_of_the_language_are_called() -> None:
    text = "<%= scope.function_versioncmp(['1.2', '1.10']) %> <%= scope.call_function('upcase', ['a']) %>"
    assert without_ruby("notice(template('m/t.erb'))", t=text).notices == ["-1 A"]


ONE_ARGUMENT = "<%= scope.call_function('m::count', ARGUMENT) %> <% x = ARGUMENT -%><%= scope.call_function('m::count', x) %>"


@needs_ruby
@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize(
    ("argument", "count"),
    [("@bool", 1), ("'a b'", 1), ("['a', 'b']", 2), ("@list", 2), ("@none", 0), ("{'a' => 1, 'b' => 2}", 2), ("@hash", 1)],
)
def test_a_function_gets_what_is_no_array_as_ruby_splats_it(argument: str, count: int, is_native: bool) -> None:
    function = {"modules/m/functions/count.pp": "function m::count(*$all) { $all.length }"}
    manifest = "$bool = false\n$list = [1, 2]\n$hash = {'k' => 'v'}\nnotice(template('m/t.erb'))"
    text = ("" if is_native else "<% binding -%>") + ONE_ARGUMENT.replace("ARGUMENT", argument)
    site = compile_with(manifest, function | in_module(t=text), **({"program": NO_PROGRAM} if is_native else {}))
    assert site.notices == [f"{count} {count}"]


@pytest.mark.parametrize(
    ("code", "group"),
    [
        ("@n =~ /(x)/", '"12"'),
        ("nil =~ /(x)/", '"12"'),
        ("true =~ /(x)/", '"12"'),
        ("@list =~ /(x)/", '"12"'),
        ("@hash !~ /(x)/", '"12"'),
        ("/(x)/ =~ nil", "nil"),
        ("'a' =~ /(x)/", "nil"),
        ("'abc'.split('b')", '"12"'),
        ("'abc'.split(/b/)", "nil"),
        ("'abc'.split(/x/)", "nil"),
        ("''.split(/x/)", "nil"),
        ("'abc'.split(@list[0])", '"12"'),
        ("'abc'.split", '"12"'),
    ],
)
def test_what_a_match_noted_stays_where_ruby_keeps_it(code: str, group: str) -> None:
    text = f"<% 'foo12' =~ /(\\d+)/ %><% {code} %><%= $1.inspect %>"
    assert without_ruby("$n = 5 $list = ['x'] $hash = {'x' => 'x'} notice(template('m/t.erb'))", t=text).notices == [group]


@needs_ruby
@pytest.mark.parametrize(
    "code",
    [
        "'abc'[/c/]", "'abc'.slice(/c/)", "'abc'.partition(/b/)",
        "'abc'.start_with?(/a/)", "'abc'.sub('b', 'x')", "@x.sub!(/q/, '')", "'abc'.scan(/b/)", "/b/ === 'abc'",
        "case 'abc' when /b/ then 1 end",
    ],
)  # fmt: skip
def test_a_method_that_notes_a_match_leaves_the_template_to_ruby(code: str) -> None:
    text = f"<% 'foo12' =~ /(\\d+)/ %><% {code} %><%= $1.inspect %>"
    assert compile_with("$x = 'x' notice(template('m/t.erb'))", in_module(t=text)).notices == ["nil"]


@needs_ruby
@pytest.mark.parametrize(
    "code",
    [
        "'Zz'[1180591620717411303424, 1]", "@a[@n * @n, 1]", "@a[@n + @n, 1]", "'Zz'[-@n - @n - 1, 1]", "@a[[@n, @n].sum, 1]",
        "@a[('9' * 30).to_i, 1]", "@a[0..(@n * 2)]",
    ],
)  # fmt: skip
def test_an_integer_that_ruby_s_methods_do_not_take_is_left_to_ruby(code: str) -> None:
    site = "$n = 9223372036854775807 $a = [1] notice(template('m/t.erb'))"
    outcomes = []
    for beginning in ("", "<% binding -%>"):  # the second is not translated
        try:
            outcomes.append(compile_with(site, in_module(t=f"{beginning}<%= ({code}).inspect %>")).notices)
        except CompileError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def test_a_template_may_change_its_own_values_and_nothing_of_the_scope() -> None:
    text = "<% @list << 'new'; @list.compact! -%>\n<%= @list.inspect %> <%= scope['list'].inspect %>"
    site = without_ruby("$list = ['a', undef]\nnotice(template('m/t.erb'))\nnotice($list)", t=text)
    assert site.notices == ['["a", "new"] ["a", nil]', "[a, ]"]


def test_templates_share_what_one_has_set_in_the_scope() -> None:
    outer = (
        "<% scope.setvar('shared', {}) -%>\n<% scope.lookupvar('shared')[:item] = [1] -%>\n<%= scope.function_template(['m/inner.erb']) %>"
    )
    inner = "<%= scope.lookupvar('shared')[:item].inspect %> <%= scope['shared'].length %>"
    assert without_ruby("notice(template('m/outer.erb'))", outer=outer, inner=inner).notices == ["[1] 1"]


@needs_ruby
@pytest.mark.parametrize("ruby_part", ["outer", "inner"])
def test_templates_share_it_also_when_one_of_them_runs_in_ruby(ruby_part: str) -> None:
    outer = (
        "<% scope.setvar('shared', {}) -%>\n<% scope.lookupvar('shared')[:item] = [1] -%>\n<%= scope.function_template(['m/inner.erb']) %>"
    )
    inner = "<%= scope.lookupvar('shared')[:item].inspect %> <%= scope['shared'].length %>"
    files = in_module(outer=outer, inner=inner)
    files[f"modules/m/templates/{ruby_part}.erb"] += "<%= Time.at(0).year.to_s[0, 0] %>"
    assert compile_with("notice(template('m/outer.erb'))", files).notices == ["[1] 1"]


@needs_ruby
@pytest.mark.parametrize("also", ["", "<% class InATemplate; end %>"])
def test_a_template_calls_the_methods_that_another_one_has_defined(also: str) -> None:
    outer = "<% scope.function_template(['m/inner.erb']) -%>\n<%= twice(@text) %> <%= __method__ %>"
    inner = f"<% def twice(text, left = 1) = text + (left.zero? ? '' : twice(text, left - 1)) %>{also}"
    assert compile_with("$text = 'ab'\nnotice(template('m/outer.erb'))", in_module(outer=outer, inner=inner)).notices == ["abab result"]


@needs_ruby
def test_a_template_outside_of_the_subset_goes_to_ruby_as_a_whole() -> None:
    text = "<%= @a %> <%= 5.digits.inspect %> <%= [1, 2].each_slice(2).to_a.inspect %>"
    assert compile_with("$a = 1\nnotice(template('m/t.erb'))", in_module(t=text)).notices == ["1 [5] [[1, 2]]"]


def test_without_ruby_the_error_says_what_needs_it_and_where() -> None:
    with pytest.raises(CompileError, match=r"t\.erb is an ERB template, which needs Ruby \(line 2: the method each_slice\)"):
        without_ruby("notice(template('m/t.erb'))", t="a\n<%= [1].each_slice(2) %>")


@needs_ruby
def test_a_value_about_which_we_are_not_certain_goes_to_ruby_and_functions_are_not_called_again() -> None:
    text = "<% scope.function_warning(['once']) -%>\n<%= scope.function_upcase(['a']) %> <%= @type %> <%= scope.function_downcase(['B']) %>"
    site = compile_with("$type = Integer[1, 2]\nnotice(template('m/t.erb'))", in_module(t=text))
    assert site.notices == ["A Integer[1, 2] b"]
    assert [entry.text for entry in site.logs if entry.level == "warning"].count("once") == 1


@needs_ruby
def test_what_a_stopped_template_has_set_is_not_set_again() -> None:
    text = "<% scope.setvar('s', { 'k' => 1 }); scope['s']['k'] = 2 -%>\n<%= @type %> <%= scope['s'].inspect %>"
    site = compile_with("$type = Integer\nnotice(template('m/t.erb'))", in_module(t=text))
    assert site.notices[0].startswith("Integer ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a\n<%= @none.join(',') %>", "Line: 2\n  Detail: undefined method `join' for nil:NilClass"),
        ('<%\n\nraise Puppet::Error, "no #{@module_name}good"\n%>', "Line: 3\n  Detail: no good"),
        ("<% [1, 'a'].each do |x| -%>\n<%= x + 1 %>\n<% end %>", "Line: 2\n  Detail: no implicit conversion of Integer into String"),
        ("<%= 1 / 0 %>", "Line: 1\n  Detail: divided by 0"),
    ],
)
def test_without_ruby_an_error_has_the_line_and_the_words_of_the_reference(text: str, error: str) -> None:
    with pytest.raises(CompileError) as caught:
        without_ruby("notice(template('m/t.erb'))", t=text)
    assert "Failed to parse template m/t.erb:\n  Filepath: /env/modules/m/templates/t.erb\n  " + error in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line == 1


@needs_ruby
def test_with_ruby_the_error_is_that_of_ruby() -> None:
    with pytest.raises(CompileError) as caught:
        compile_with("notice(template('m/t.erb'))", in_module(t="a\n<%= @none.join(',') %>"))
    assert "Line: 2\n  Detail: undefined method `join' for nil:NilClass" in str(caught.value)


def test_an_error_of_a_function_passes_through() -> None:
    with pytest.raises(CompileError, match="stop here"):
        without_ruby("notice(template('m/t.erb'))", t="<% scope.function_fail(['stop here']) %>")


def test_native_templates_off_leaves_all_to_ruby() -> None:
    world = DirectoryEnvironment(
        Environment("production", "/env", (), None),
        MemoryFiles({}),
        code="notice(inline_template('x'))",
        settings={"native_templates": False},
    )
    with pytest.raises(CompileError, match="needs Ruby"):
        compiled("", world=world)


def test_code_and_refusals_are_read_from_disk_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "code"
    cache = CodeCache(directory)
    manifest = "notice(template('/env/t.erb'))"
    assert _with_cache(cache, manifest) == ""
    cache.save()
    monkeypatch.setattr("language.erb.translation.read_template", _must_not_be_called)
    assert _with_cache(CodeCache(directory), manifest) == ""


def _must_not_be_called(template: str) -> None:
    raise AssertionError(template)


def _with_cache(cache: CodeCache, manifest: str, facts: dict[str, str] | None = None) -> str:
    """Compile with a cache of code; return why the catalog may not be remembered."""
    world = DirectoryEnvironment(
        Environment("production", "/env", (), None), MemoryFiles(FILES), code=manifest, services=EnvironmentServices(ruby=NO_PROGRAM)
    )
    loader = Loader(world, NAMES, cache, log=lambda level, finding: None, builtins=all_functions())
    dependencies = NodeDependencies()
    node = NodeInput("n1", facts=facts or {}, parameters=facts or {})
    compile_catalog(world, loader, node, version=1, log=lambda entry: None, dependencies=dependencies)
    return "".join(each.text for each in dependencies.uncacheable_reasons) or ("everything" if dependencies.everything else "")


def test_a_catalog_with_translated_templates_may_be_remembered() -> None:
    """A variable that is not set does not make the catalog depend on all facts, though facts with a hyphen are looked for by it."""
    manifest = "notice(inline_template('<%= @os_family %> <%= @not_set.inspect %> <%= @my_fact %>'))"
    assert _with_cache(CodeCache(), manifest, {"os_family": "Debian", "my-fact": "1", "uptime": "3"}) == ""


def test_a_catalog_depends_on_the_names_of_facts_that_a_template_may_see() -> None:
    dependencies = NodeDependencies()
    dependencies.special_names = True
    one, two = (NodeInput("n", facts={}, parameters={name: "1"}) for name in ("my-fact", "uptime"))
    assert dependencies.values(one) != dependencies.values(two)
    dependencies.special_names = False
    assert dependencies.values(one) == dependencies.values(two)


def test_the_lines_of_a_template_are_profiled_like_those_of_manifests() -> None:
    text = "a\n<% [1, 2, 3].each do |x| -%>\n<%= x %>\n<% end -%>\n"
    with LineTimes() as times:
        without_ruby("notice(template('m/t.erb'))", t=text)
    spent = {line: spent.times for (file, line), spent in times.lines.items() if file.endswith("t.erb")}
    assert {1, 2, 3} <= set(spent) <= {0, 1, 2, 3, 4}
    assert spent[3] >= 3
