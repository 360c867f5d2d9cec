"""Templates and functions in Ruby, as far as they are not among the recorded cases of tests/conformance/language/ruby.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.directories import EnvironmentSettings
from environments.loaded import LoadedEnvironments
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from shared.errors import CompileError
from tests.environments.ruby.site import PROGRAM, compile_with, in_world, world
from tests.support.needs import needs_ruby
from tests.support.waiting import wait_until

pytestmark = needs_ruby


# Functions of the 4.x and the 3.x API whose argument is their code, and one that shows what Ruby gets.
EVALUATING = {
    "modules/m/lib/puppet/functions/m/run.rb": (
        "Puppet::Functions.create_function(:'m::run', Puppet::Functions::InternalFunction) do\n"
        "  dispatch(:run) { scope_param; param 'String', :code; repeated_param 'Any', :args }\n"
        "  def run(scope, code, *args) = eval(code)\nend\n"
    ),
    "modules/m/lib/puppet/functions/m/show.rb": "Puppet::Functions.create_function(:'m::show') { def show(x) = x.inspect }",
    "modules/m/lib/puppet/parser/functions/run3.rb": (
        "Puppet::Parser::Functions.newfunction(:run3, :type => :rvalue) { |args| eval(args[0]) }"
    ),
}

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


# What Puppet 7.23 says of the same.
@pytest.mark.parametrize(
    ("manifest", "notices"),
    [
        ("m::run('$stderr')", []),
        ("m::run('2**80')", []),
        ("notice(m::show(m::run('[String, $stdout.class, 2**80]')))", ["[String, IO, 1208925819614629174706176]"]),
        (
            "$x = m::run('String') notice($x, \"a${x}\", $x =~ String, $x == 'String', $x == m::run('String'))",
            ["String aString false false true"],
        ),
        (
            "$x = m::run(':foo') notice($x, type($x), $x =~ Runtime['ruby', 'Symbol'], $x == 'foo', m::show([$x, {a => $x}]))",
            ["foo Runtime[ruby, 'Symbol'] true false [:foo, {\"a\"=>:foo}]"],
        ),
        (
            "$x = m::run('{:a => :b}') notice($x, $x['a'], m::show($x), inline_template('<%= @x.inspect %>'))",
            ["{a => b}  {:a=>:b} {:a=>:b}"],
        ),
        ("$x = m::run(':undef') notice($x == undef, m::show($x), m::show([$x]))", ["true nil [nil]"]),
        ("$x = m::run('[:undef, :default]') notice($x[0] == undef, $x[1] =~ Default, m::show($x))", ["true true [:undef, :default]"]),
        ("notice(m::show(run3('[:undef, :foo, {:a => [:undef]}]')))", ["[nil, :foo, {:a=>[nil]}]"]),
        ('notice(m::run(\'call_function("lookup", "none", {"default_value" => :x}).inspect\'))', [":x"]),
        (
            'notice(m::run(\'call_function("lookup", "none", {"default_value" => [:undef, {:x => :undef}]}).inspect\'))',
            ["[:undef, {:x=>:undef}]"],
        ),
        ("notice(m::run('call_function(\"with\", :a, :default, [:undef]) { |*a| a }.inspect'))", ["[:a, :default, [:undef]]"]),
        ("notice(m::run('call_function(\"map\", [:a, $stderr.class, 1]) { |a| a }.inspect'))", ["[:a, IO, 1]"]),
        ("notice(sprintf('%s %p', m::run(':a'), m::run(':a')), [m::run(':a')].join(','))", ["a :a a"]),
    ],
)
def test_what_the_language_has_no_form_for_passes_through_it_unchanged(manifest: str, notices: list[str]) -> None:
    assert compile_with(manifest, EVALUATING).notices == notices


def test_a_symbol_that_a_function_passes_through_the_language_is_one_again() -> None:
    code = "v = call_function('lookup', 'none', { 'default_value' => :none }); v == :none ? 'default' : 'found'"
    files = {
        "modules/m/lib/puppet/functions/m/four.rb": (
            f"Puppet::Functions.create_function(:'m::four') do\n  def four\n    {code}\n  end\nend\n"
        ),
        "modules/m/lib/puppet/parser/functions/three.rb": (
            "module Puppet::Parser::Functions\n  newfunction(:three, :type => :rvalue) do |args|\n"
            "    v = call_function('lookup', ['none', { 'default_value' => :none }])\n    v == :none ? 'default' : 'found'\n  end\nend\n"
        ),
    }
    assert compile_with("notice(m::four(), three())", files).notices == ["default default"]


@pytest.mark.parametrize(
    ("manifest", "message", "warnings"),
    [
        ("notify { a: message => m::run(':foo') }", "foo", []),
        ("create_resources('notify', m::run('{:a => {:message => :foo}}'))", "foo", []),
        ("notify { a: * => m::run('{:message => :foo}') }", "foo", []),
        ("notify { a: message => m::run('{:a => :b}') }", {"a": "b"}, []),
        (
            "notify { a: message => m::run('[String, :a]') }",
            ["String", "a"],
            ["Notify[a]['message'][0] contains a Class value. It will be converted to the String 'String'"],
        ),
    ],
)
def test_what_the_language_has_no_form_for_is_its_text_in_a_catalog(manifest: str, message: object, warnings: list[str]) -> None:
    compiled = compile_with(manifest, EVALUATING)
    assert compiled.parameters("Notify[a]")["message"] == message
    assert [entry.message for entry in compiled.logs if entry.level == "warning"] == warnings


def test_a_number_that_the_language_has_not_is_refused_where_a_resource_gets_it() -> None:
    with pytest.raises(CompileError, match=r"Ruby Integer outside of Puppet Integer max range, got '0x1000"):
        compile_with("notify { a: message => m::run('2**80') }", EVALUATING)


def test_changes_that_a_template_makes_to_a_variable_are_not_seen_elsewhere() -> None:
    manifest = "$list = ['a']\n$text = inline_template('<% @list << \"b\" %><%= @list %>')\nnotice($text, $list)"
    assert compile_with(manifest).notices == ['["a", "b"] [a]']


GROWING = {
    "hiera.yaml": "version: 5\n",
    "data/common.yaml": "m::found: [f]\nm::deep: {list: [d]}\n",
    "modules/m/lib/puppet/functions/m/grow.rb": "Puppet::Functions.create_function(:'m::grow') { def grow(list) = (list << 'more').size }",
    "modules/m/manifests/init.pp": """
class m($found, $deep, $given = ['g'], $hash = {'list' => []}) {
  [$found, $given].each |$list| { m::grow($list) }
  m::grow($deep['list'])
  m::grow($hash['list'])
  notice(inline_template('<% @given << 1 %><%= @given %>'), $found, $deep, $given, $hash)
}
""",
}


def test_what_ruby_changes_in_place_for_one_node_is_what_it_was_for_the_next() -> None:
    environment = world(GROWING)
    try:
        catalogs = [in_world(environment, "$own = ['o']\nm::grow($own)\ninclude m") for _ in range(3)]
    finally:
        environment.close()
    assert catalogs[0].notices == ['["g", "more", 1] [f, more] {list => [d]} [g, more, 1] {list => []}']
    assert [catalog.notices for catalog in catalogs] == [catalogs[0].notices] * 3
    assert [catalog.catalog["resources"] for catalog in catalogs] == [catalogs[0].catalog["resources"]] * 3


def test_a_template_leaves_what_its_functions_change_in_a_variable_that_it_does_not_change_itself() -> None:
    grow = "module Puppet::Parser::Functions\n newfunction(:grow, type: :rvalue) { |args| (lookupvar('m::list') << 'more').size }\nend"
    template = "<% @own << 1 %><%= scope.function_grow([]) %> <%= @list.class %> <%= @own.size %>"
    files = {
        "modules/m/lib/puppet/parser/functions/grow.rb": grow,
        "modules/m/templates/t.erb": template,
        "modules/m/manifests/init.pp": "class m($list = ['l'], $own = ['o']) { notice(template('m/t.erb'), $list, $own) }",
    }
    assert compile_with("include m", files).notices == ["2 Array 2 [l, more] [o, 1]"]


def test_templates_without_end_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("environments.ruby.host.MAX_TEMPLATES", 3)
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


def test_a_function_sets_a_variable_of_top_scope_that_data_and_manifests_read_once() -> None:
    role = (
        "Puppet::Functions.create_function(:role) do\n  def role(name)\n    scope = closure_scope\n"
        "    raise Puppet::ParseError, 'role() can only be called once' if scope.include?('_role')\n"
        "    scope['_role'] = name\n    nil\n  end\nend\n"
    )
    files = {
        "modules/m/lib/puppet/functions/role.rb": role,
        "hiera.yaml": 'version: 5\nhierarchy:\n- {name: r, path: "%{::_role}.yaml"}\n',
        "data/web.yaml": "port: 80\n",
    }
    assert compile_with("role('web') notice($::_role, $_role, lookup('port'))", files).notices == ["web web 80"]
    with pytest.raises(CompileError, match="role\\(\\) can only be called once"):
        compile_with("role('web') role('db')", files)


# What Puppet 7.23 says of the same; `s` is the scope of an instance of the define m::d.
@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("s['a'] = 1; [s['a'], s.include?('a'), s.exist?('a'), s.bound?('a')]", "[1, true, true, true]"),
        ("[s.include?('outer'), s.exist?('outer'), s.bound?('outer'), s.exist?('none')]", "[true, true, false, false]"),
        ("s['facts'] = 1", "Attempt to assign to a reserved variable name: 'facts'"),
        ("s['1'] = 1", "Cannot assign to a numeric match result variable '$1'"),
        ("s[:b] = 1", "Scope variable name :b is a Symbol, not a string"),
        (
            "[s.source.name, s.source.type, s.source.module_name, s.source.file]",
            '["m::d", :definition, "m", "/env/modules/m/manifests/d.pp"]',
        ),
        (
            "[s.is_topscope?, s.is_classscope?, s.find_global_scope.is_topscope?, s.compiler.topscope.is_topscope?]",
            "[false, false, true, true]",
        ),
        ("[s.environment.name, s.compiler.environment.to_s]", '[:production, "production"]'),
        ("s.catalog.resources.map(&:to_s)", '["Stage[main]", "Class[Settings]", "Class[main]", "M::D[x]"]'),
        ("[s.resource, s.resource.to_hash, s.resource[:name], s.resource.line]", '[M::D[x]{:name=>"x"}, {:name=>"x"}, nil, 1]'),
        ("r = s.compiler.findresource('M::D[x]'); [r.type, r.title, r.virtual?, r.exported?]", '["M::D", "x", false, false]'),
        ("s.compiler.environment.module('m').version", '"1.2.3"'),
        (
            "m = Puppet::Module.find('m', s.compiler.environment); [m.path, m.name, m.to_s]",
            '["/env/modules/m", "m", "Module m(/env/modules/m)"]',
        ),
        ("[Puppet::Module.find('none'), s.environment.module('none')]", "[nil, nil]"),
        (
            "[Puppet::Module.find('m').file('f'), Puppet::Parser::Files.find_file('m/f', s.environment)]",
            '["/env/modules/m/files/f", "/env/modules/m/files/f"]',
        ),
        (
            "[Puppet[:strict], Puppet.settings[:strict], Puppet.lookup(:current_environment).name, Puppet.lookup(:x) { 3 }]",
            "[:warning, :warning, :production, 3]",
        ),
        ("Puppet::DataBinding::LookupError.ancestors.include?(Puppet::ParseError)", "true"),
        ("Puppet::Pops::Lookup::HieraConfig.symkeys_to_string({ a: { b: 1 } })", '{"a"=>{"b"=>1}}'),
        (
            "b = Puppet::Pops::Types::PBinaryType::Binary;"
            " [b.from_binary_string(\"abc\\xff\".b).to_s, b.from_string('a') == b.from_base64('YQ==')]",
            '["YWJj/w==", true]',
        ),
        ("[Puppet::Util.deterministic_rand(5, 1000), Puppet::Util.deterministic_rand_int(5, 1000)]", '["867", 867]'),
        (
            "%i[posix windows].map { |os| ['/a', 'a', 'C:/a'].map { |path| Puppet::Util.absolute_path?(path, os) } }",
            "[[true, false, false], [false, false, true]]",
        ),
        (
            '[Puppet::Util::Json.load(\'{"a":[1]}\'), Puppet::Util::Json.dump([1]), Puppet::Util::Yaml.safe_load("a: &x [1]\\nb: *x")]',
            '[{"a"=>[1]}, "[1]", {"a"=>[1], "b"=>[1]}]',
        ),
        (
            "(Puppet::Util::Yaml.safe_load('a: :b') rescue [$!.class, $!.message])",
            '[Puppet::Util::Yaml::YamlLoadError, "(<unknown>): Tried to load unspecified class: Symbol"]',
        ),
        (
            "[Puppet::Util::Execution.execute(['echo', 'a']), (Puppet::Util::Execution.execute('exit 3') rescue [$!.class, $!.message])]",
            '["a\\n", [Puppet::ExecutionFailure, "Execution of \'exit 3\' returned 3: "]]',
        ),
        ("[Facter.value('kernel'), Facter.to_hash['kernel'], Facter.version]", '["Linux", "Linux", "4.3.0"]'),
    ],
)
def test_what_modules_use_of_puppet_s_interface_answers(code: str, shown: str) -> None:
    files = EVALUATING | {
        "modules/m/manifests/d.pp": (
            "define m::d() {\n  $code = $facts['code']\n"
            '  notice(m::run("s = scope; begin; (${code}).inspect; rescue Puppet::ParseError => e; e.message; end"))\n}\n'
        ),
        "modules/m/metadata.json": '{"version": "1.2.3"}',
        "modules/m/files/f": "",
    }
    facts = {"kernel": "Linux", "facterversion": "4.3.0"}
    compiled = compile_with("$outer = 1 m::d { x: }", files, facts=facts | {"code": code})
    assert compiled.notices == [shown]


# What Puppet 7.23 says of the same.
@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            "[{'a' => 1}.to_pson, [1, nil, true, 1.5, 1e20].to_pson, 'a'.to_pson, :a.to_pson, nil.to_pson]",
            r"""["{\"a\":1}", "[1,null,true,1.5,1.0e+20]", "\"a\"", "\"a\"", "null"]""",
        ),
        ("[{1 => 2}, {nil => nil}, {'a' => :undef}].map(&:to_pson).join", r'"{\"1\":2}{\"\":null}{\"a\":\"undef\"}"'),
        (r"""["</a>\e\t\x7f".to_pson, "\xff".to_pson.bytes]""", r'["\"</a>\\u001b\\t\u007F\"", [34, 255, 34]]'),
        (
            "PSON.pretty_generate([[], {}, { 'a' => [1, 2] }])",
            r'"[\n  [\n\n  ],\n  {\n\n  },\n  {\n    \"a\": [\n      1,\n      2\n    ]\n  }\n]"',
        ),
        ("[PSON.parse('[1]'), PSON::ParserError.superclass.superclass]", "[[1], StandardError]"),
    ],
)
def test_objects_have_their_pson(code: str, shown: str) -> None:
    assert compile_with("notice(m::show(m::run($facts['code'])))", EVALUATING, facts={"code": code}).notices == [shown]


# What Puppet 7.23 says of the same.
@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("File['/a']", '[File[/a]{:path=>"/a"}, File[/a]]'),
        ("[Class['m'], Notify['x']]", '[[Class[M]{:name=>"M"}, Notify[x]{:name=>"x"}], [Class[M]{:name=>"M"}, Notify[x]{:name=>"x"}]]'),
        ("M::D['x']", '[M::D[x]{:name=>"x"}, M::D[x]]'),
    ],
)
def test_a_reference_in_an_attribute_is_inspected_with_what_its_title_stands_for(reference: str, shown: str) -> None:
    files = {"modules/m/manifests/d.pp": "define m::d($r) { notice(inline_template('[<%= @r.inspect %>, <%= @r.to_s %>]')) }"}
    assert compile_with(f"m::d {{ x: r => {reference} }}", files).notices == [shown]


@pytest.mark.parametrize("type_", ["Enum['a', 'b']", "M::Letter"])
def test_a_template_goes_through_the_values_of_an_enum(type_: str) -> None:
    files = {"modules/m/types/letter.pp": "type M::Letter = Enum['a', 'b']"}
    text = "<% @x.each do |value| %><%= value %>,<% end %><%= @x.values.inspect %>"
    assert compile_with(f"$x = {type_} notice(inline_template('{text}'), m::show($x) =~ String)", files | EVALUATING).notices == [
        'a,b,["a", "b"] true'
    ]


def test_a_template_is_a_method_of_puppet_s_name() -> None:
    assert compile_with("notice(inline_template('<%= __method__.inspect %>'))").notices == [":result"]


def test_a_back_end_uses_its_context() -> None:
    back_end = (
        "Puppet::Functions.create_function(:'m::back') do\n"
        "  dispatch(:f) { param 'String', :key; param 'Hash', :options; param 'Puppet::LookupContext', :context }\n"
        "  def f(key, options, context)\n"
        "    return context.not_found unless key == 'k'\n"
        "    return context.cached_value(key) if context.cache_has_key(key)\n"
        '    context.explain { "#{key} is computed" }\n'
        "    context.cache(key, context.interpolate(options['text']))\n  end\nend\n"
    )
    files = {
        "modules/m/lib/puppet/functions/m/back.rb": back_end,
        "hiera.yaml": "version: 5\nhierarchy: [{name: b, lookup_key: m::back, options: {text: '%{kernel}'}}]\n",
    }
    manifest = "notice(lookup('k'), lookup('k'), lookup('none', {default_value => 'none'}))"
    assert compile_with(manifest, files, facts={"kernel": "Linux"}).notices == ["Linux Linux none"]


def test_files_are_read_through_puppet_s_file_system(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("\ufeffabc\r\n".encode())
    code = (
        "f = Puppet::FileSystem; path = args[0]; [f.exist?(path), f.exist?(path + 'g'), f.file?(path), f.directory?(path),"
        " f.binread(path).size, f.read_preserve_line_endings(path),"
        " f.read(path, encoding: 'utf-8').size, f.dir_string(path) == File.dirname(path)].inspect"
    )
    compiled = compile_with(f"notice(m::run($facts['code'], '{tmp_path}/f'))", EVALUATING, facts={"code": code})
    assert compiled.notices == [r'[true, false, true, false, 8, "abc\r\n", 6, true]']


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
        ("Puppet.lookup(:x)", r"Puppet.lookup\(:x\)"),
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


@pytest.mark.parametrize(
    ("before", "inside", "name"),
    [
        ("def helper(x) = x\n", "", "helper"),
        ("def self.helper(x)\n  x\nend\n", "", "helper"),
        ("", "def inner; end", "inner"),
        ("", "[1].each { def inner; end }", "inner"),
    ],
)
def test_a_function_of_the_3_x_api_may_not_define_methods(before: str, inside: str, name: str) -> None:
    text = f"{before}Puppet::Parser::Functions.newfunction(:f, :type => :rvalue) do |args|\n  {inside}\n  1\nend\n"
    files = {"modules/m/lib/puppet/parser/functions/f.rb": text}
    with pytest.raises(
        CompileError, match=f"Illegal method definition of method '{name}' in source .*/f.rb on line [12] in legacy function"
    ):
        compile_with("notice(f())", files)


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


LEAVES = """
require 'timeout'
Puppet::Functions.create_function(:leaves) do
  def leaves(how) = "#{send(how, closure_scope)} and on with #{closure_scope['x']}"
  def by_break(scope) = scope.call_function('each', [[1, 2]]) { |item| break item * 10 }
  def by_return(scope) = scope.call_function('each', [[1, 2]]) { |item| return item }
  def by_throw(scope) = catch(:done) { scope.call_function('each', [[1, 2]]) { |item| throw :done, item } }
  def by_throw_from_two(scope)
    catch(:done) do
      scope.call_function('each', [[1, 2]]) { |item| scope.call_function('each', [[3, 4]]) { |inner| throw :done, item + inner } }
    end
  end
  def by_timeout(scope)
    Timeout.timeout(0.01) { scope.call_function('each', [[1, 2]]) { |_| sleep } }
  rescue Timeout::Error => e
    e.message
  end
end
"""


@pytest.mark.parametrize(
    ("how", "result"), [("break", "10"), ("return", "1"), ("throw", "1"), ("throw_from_two", "4"), ("timeout", "execution expired")]
)
def test_a_block_may_leave_the_function_that_calls_it(how: str, result: str) -> None:
    files = {"modules/m/lib/puppet/functions/leaves.rb": LEAVES}
    assert compile_with(f"$x = 'x'\nnotice(leaves('by_{how}'))", files).notices == [f"{result} and on with x"]


LEFT_UNANSWERED = "Ruby has ended, as a question was left before it was answered"


@pytest.mark.parametrize(
    "code",
    [
        "Enumerator.new { |list| scope.call_function('each', [[1, 2]]) { |item| list.yield(item); nil } }.next",
        "trap('USR1') { raise 'interrupted' }\n Thread.new { loop { Process.kill('USR1', $$) } }\n"
        "loop { begin; scope['x']; rescue RuntimeError; end }",
    ],
    ids=["a Fiber", "a signal's handler"],
)
@pytest.mark.slow
def test_a_question_that_cannot_be_answered_in_order_ends_ruby(code: str) -> None:
    function = f"Puppet::Functions.create_function(:left) do\ndef left = again(closure_scope)\n def again(scope)\n{code}\nend\nend"
    environment = world({"modules/m/lib/puppet/functions/left.rb": function})
    with pytest.raises(CompileError, match=LEFT_UNANSWERED):
        in_world(environment, "$x = 1\nnotice(left())")
    assert in_world(environment, "notice(inline_template('<%= 1 + 1 %>'))").notices == ["2"]
    environment.close()


def test_a_thread_that_outlives_its_call_cannot_ask_in_the_next_one() -> None:
    begins = '$go = Queue.new; $late = Thread.new { begin; $go.pop; scope["x"]; rescue StandardError => e; e.message; end }'
    ends = "$go << 1; $late.value"
    environment = world({})
    assert in_world(environment, f"$x = 'secret'\nnotice(inline_template('<% {begins} %>begun'))").notices == ["begun"]
    second = in_world(environment, f"$x = 'other'\nnotice(inline_template('<%= {ends} %>, <%= scope[\"x\"] %>'))")
    assert second.notices == ["A thread cannot ask for variable after the call that started it, other"]
    environment.close()


def test_an_interruption_by_a_thread_that_outlives_its_call_is_no_part_of_the_next_one(tmp_path: Path) -> None:
    interrupts = 'sleep 0.001 until Thread.main.status == "sleep"; Thread.main.raise("late"); File.write(@done, "")'
    environment = world({})
    facts = {"done": str(tmp_path / "done")}
    code = f"notice(inline_template('<% Thread.new {{ {interrupts} }} %><%= Process.pid %>'))"
    (pid,) = in_world(environment, code, facts=facts).notices
    wait_until((tmp_path / "done").exists)
    assert in_world(environment, "notice(inline_template('<%= Process.pid %>'))").notices == [pid]
    environment.close()


def test_what_a_template_prints_is_not_its_text(capfd: pytest.CaptureFixture[str]) -> None:
    manifest = 'notice(inline_template(\'<% puts "out"; $stdout.write("x" * 9); system("echo shell") %>text\'))'
    assert compile_with(manifest).notices == ["text"]
    said = capfd.readouterr()
    assert said.out == ""
    assert "out" in said.err and "shell" in said.err


@pytest.mark.parametrize("code", ["print 'x' * 1_000_000", "100_000.times { warn 'x' }", "30.times { STDOUT << 'x' * 9_999 << 10.chr }"])
def test_what_ruby_prints_is_bounded(code: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert compile_with(f'inline_template("<% {code} %>")').notices == []
    printed = capfd.readouterr().err
    assert 65_536 < len(printed) < 66_000 and printed.count("(Ruby prints more than 65536 characters; the rest is left out)") == 1


def test_what_ruby_prints_steers_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    code = 'puts "a\\e[2J\\u{202e}"; warn "b\\e[2J"; $stderr.print "c\\r", "d\\xff\\n"'
    compile_with(f"notice(inline_template('<% {code} %>'))")
    assert capfd.readouterr().err == "a\\x1b[2J\\u{202e}\nb\\x1b[2J\nc\\x0dd\ufffd\n"


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
