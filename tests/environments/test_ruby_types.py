"""Types in Ruby, read from their source."""

from __future__ import annotations

import pytest

from environments.module_types.models import DeclaredType
from environments.module_types.registry import ModuleTypes, RubyTypeCache
from environments.module_types.ruby_source import RubyExpressions, RubyFile
from environments.module_types.ruby_types import read_ruby_type
from tests.support.memory_files import MemoryFiles


def read(body: str, name: str = "x", **others: str) -> DeclaredType:
    """The type `x` with `body` in it; `others` are files of the module's lib, with `__` for `/`."""
    files = {"/m/lib/puppet/type/x.rb": body if "newtype" in body or "register" in body else f"Puppet::Type.newtype(:x) do\n{body}\nend\n"}
    files |= {f"/m/lib/{path.replace('__', '/')}.rb": text for path, text in others.items()}
    return read_ruby_type(name, "/m/lib/puppet/type/x.rb", MemoryFiles(files).read, ["/m/lib"], docs=True)


def names(declared: DeclaredType) -> tuple[list[str], list[str]]:
    return [each.name for each in declared.properties], [each.name for each in declared.parameters]


@pytest.mark.parametrize(
    ("body", "properties", "parameters"),
    [
        ("ensurable\nnewparam(:a)\nnewproperty(:b) { desc 'x' }", ["ensure", "b"], ["a"]),
        ("newparam 'a'\nnewparam :'b'\nnewproperty :\"c\"", ["c"], ["a", "b"]),
        ("[:a, 'b'].each do |p|\n  newproperty(p) do\n    munge { |v| v }\n  end\nend", ["a", "b"], []),
        ("%w[a b].each { |p| newparam(p.to_sym) }", [], ["a", "b"]),
        ("LIST = [:a].freeze\nLIST.each { |p| newparam(p) }", [], ["a"]),
        ("{ a: 'one', b: 'two' }.each { |p, text| newproperty(p) { desc text } }", ["a", "b"], []),
        ("(%i[a b] + [:c]).each { |p| newparam(p) }", [], ["a", "b", "c"]),
        ('newproperty(:"a_#{1}")', ["a_1"], []),
        ("def self.check(name, options = {}, &block)\n  newparam(name, options, &block)\nend\ncheck :a do\n  desc 'x'\nend", [], ["a"]),
        ("if Puppet.version.to_i > 4\n  newparam(:a)\nelse\n  newparam(:b)\nend", [], ["a", "b"]),
        ("newparam(:a) unless true", [], ["a"]),
        ("module Puppet\n  Type.newtype(:x) do\n    newparam(:a)\n  end\nend", [], ["a"]),
        ("Puppet::Type::X = Puppet::Type.newtype(:x) do\n  newparam(:a)\nend", [], ["a"]),
        ("Puppet::Type.newtype :x, :is_capability => true do\n  newparam :a\nend", [], ["a"]),
        ("Puppet::Type.newtype(:other) { newparam(:b) }\nPuppet::Type.newtype(:x) { newparam(:a) }", [], ["a"]),
        ('def add(text)\n  text<<"\\n" unless text.empty?\n  text <<MORE\nend\nnewparam(:a) { desc <<-DOC }\n  x\nDOC\n', [], ["a"]),
        ("validate do\n  [:a].each { |p| fail p }\nend\ndef refresh\n  newparam(:no)\nend\nnewparam(:a)", [], ["a"]),
    ],
)
def test_attributes_are_those_that_the_source_declares(body: str, properties: list[str], parameters: list[str]) -> None:
    declared = read(body)

    assert declared.open == ""
    assert names(declared) == (properties, parameters)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (r"'it\'s \d\\'", "it's \\d\\"),
        (r'"a\nb\x41\u00e9\d\a"', "a\nbA\u00e9d\a"),
        (r"%q{a\}b}", "a}b"),
        ("%w[a b]", ["a", "b"]),
        ("[0x1f, 1_000, 017, 0]", [31, 1000, 15, 0]),
        ('"a\\\nb"', "ab"),
    ],
)
def test_literals_are_read_as_ruby_reads_them(source: str, value: object) -> None:
    file = RubyFile.parse("x.rb", source.encode())
    assert RubyExpressions({}, {}).value(file, file.root.named_children[0], {}) == value


@pytest.mark.parametrize(
    "body",
    [
        "newparam(:a)\nsomething.each { |p| newparam(p) }",
        "newparam(compute)",
        "newparam(:a)\nmake_parameters :b",
        "extend Some::Where::Else\nnewparam(:a)",
        "def self.forever\n  newparam(:a)\n  forever\nend\nforever",
        "Puppet::Type.newtype(name_of_it) { newparam(:a) }",
        "Puppet::Type.newtype(:other) { newparam(:a) }",
        "}}} newtype is no Ruby (((",
        "Puppet::ResourceApi.register_type(name: 'x', attributes: ATTRIBUTES.merge(b: {}))",
    ],
)
def test_what_cannot_be_read_leaves_the_type_open(body: str) -> None:
    declared = read(body)

    assert declared.open
    assert "whatever" in declared.to_native_type().attributes
    assert not declared.to_native_type().isomorphic


def test_a_helper_is_found_in_the_module_that_the_file_requires() -> None:
    helper = (
        "module PuppetX\n module M\n  module Shared\n   def create_parameters\n    ensurable\n    newparam(:a)\n   end\n  end\n end\nend"
    )

    declared = read("extend PuppetX::M::Shared\ncreate_parameters\nnewproperty(:b)", puppet_x__m__shared=helper)

    assert (declared.open, *names(declared)) == ("", ["ensure", "b"], ["a"])


@pytest.mark.parametrize(
    ("body", "namevars"),
    [
        ("newparam(:name)\nnewparam(:a)", ("name",)),
        ("newparam(:path, :namevar => true)", ("path",)),
        ("newparam(:path, namevar: true)", ("path",)),
        ("newparam(:path, { namevar: true })", ("path",)),
        ("newparam(:path) { isnamevar }", ("path",)),
        ("newparam(:name) { isnamevar }\nnewparam(:kind) do\n  desc 'x'\n  isnamevar\nend", ("name", "kind")),
        ("newproperty(:value) { isnamevar }\nnewparam(:name)", ("name",)),
        ("ensurable", ()),
    ],
)
def test_namevars_are_the_parameters_that_say_so_and_name(body: str, namevars: tuple[str, ...]) -> None:
    assert read(body).namevars == namevars


def titled(patterns: str) -> DeclaredType:
    return read(f"newparam(:name) {{ isnamevar }}\nnewparam(:kind) {{ isnamevar }}\ndef self.title_patterns\n{patterns}\nend")


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        ("[[/^(.*)@(.*)$/, [[:name], [:kind]]]]", (("^(.*)@(.*)$", ("name", "kind")),)),
        ("[[%r{^(a/.*)$}i, [[:name, lambda { |x| x }]]]]", (("(?i-mx:^(a/.*)$)", ("name",)),)),
        ("identity = lambda { |x| x }\n[[/(\\/)/, [[:name, identity]]]]", (("(/)", ("name",)),)),
        ("part = Regexp.new(/[^:]+/)\n[[/^(#{part})$/, [[:name]]]]", (("^((?-mix:[^:]+))$", ("name",)),)),
        ("[[/(.*)/, [[:name, lambda { |x| x.upcase }]]]]", None),
        ("compute(:name)", None),
    ],
)
def test_title_patterns_are_read_when_they_are_literal(patterns: str, wanted: object) -> None:
    declared = titled(patterns)

    assert declared.title_patterns == wanted
    assert declared.to_native_type().isomorphic == (wanted is not None)


def test_title_patterns_of_a_function_in_another_file_are_evaluated() -> None:
    body = (
        "require 'puppet_x/m/titles'\nPuppet::Type.newtype(:x) do\n newparam(:name)\n newparam(:kind) { isnamevar }\n"
        " def self.title_patterns\n  PuppetX::M::Titles.split(:name, :kind)\n end\nend"
    )
    titles = (
        "module PuppetX\n module M\n  module Titles\n"
        "   def self.split(one, two, by = '::', *more)\n    parts = []\n    if more.empty? and by == '::'\n"
        "     parts += [/a+/, /b+/]\n    else\n     parts += more\n    end\n    [[/^(#{parts[0]})#{by}(#{parts[1]})$/, [[one], [two]]]]\n"
        "   end\n  end\n end\nend"
    )

    assert read(body, puppet_x__m__titles=titles).title_patterns == (("^((?-mix:a+))::((?-mix:b+))$", ("name", "kind")),)


def test_values_follow_what_the_attribute_says_of_them() -> None:
    declared = read(
        "newproperty(:a) do\n newvalues(:yes, :no, /^\\d+$/)\n aliasvalue(:on, :yes)\nend\n"
        "newproperty(:b) { newvalues(*compute) }\nnewparam(:c, :parent => Puppet::Parameter::Boolean)\nnewproperty(:d) { defaultvalues }"
    )

    assert [(each.values, each.patterns) for each in (*declared.properties, *declared.parameters)] == [
        (("yes", "on", "no"), ("^\\d+$",)),
        ((), ()),
        (("present", "absent"), ()),
        (("true", "false", "yes", "no"), ()),
    ]


def test_descriptions_are_read_without_their_indentation() -> None:
    declared = read("desc <<-EOT\n    One.\n\n      Two.\n  EOT\nnewparam(:a) { desc 'An a.' }")

    assert (declared.doc, declared.parameters[0].doc) == ("One.\n\n  Two.", "An a.")


def test_a_type_that_is_not_isomorphic_says_so() -> None:
    assert not read("@isomorphic = false\nnewparam(:name)").isomorphic


def test_the_resource_api_registers_attributes_by_their_behaviour() -> None:
    declared = read(
        "require 'puppet/resource_api'\nPuppet::ResourceApi.register_type(\n  name: 'x',\n  docs: <<-EOS,\n    Text.\n  EOS\n"
        "  title_patterns: [{ pattern: %r{^(?<package>.*)/(?<manager>.*)$}, desc: 'both' }],\n  attributes: {\n"
        "    ensure: { type: 'Enum[present, absent]', desc: 'x', default: 'present' },\n"
        "    package: { type: 'String', behaviour: :namevar },\n    manager: { type: 'String', behaviour: :namevar },\n"
        "    force: { type: 'Boolean', behaviour: :parameter },\n    size: { type: 'Integer', behaviour: :read_only },\n  },\n)"
    )

    assert names(declared) == (["ensure", "size"], ["package", "manager", "force"])
    assert declared.namevars == ("package", "manager")
    assert declared.title_patterns == (("^(?<package>.*)/(?<manager>.*)$", ("package", "manager")),)


def test_a_type_is_read_again_when_a_file_changes_that_it_requires() -> None:
    files = MemoryFiles(
        {
            "/m/lib/puppet/type/x.rb": "Puppet::Type.newtype(:x) do\n extend PuppetX::S\n more\nend",
            "/m/lib/puppet_x/s.rb": "module PuppetX\n module S\n  def more\n   newparam(:a)\n  end\n end\nend",
        }
    )
    cache = RubyTypeCache()

    def attributes() -> set[str]:
        declared_type = ModuleTypes(files, ["/m"], ruby=cache).find("x")
        assert declared_type is not None
        return set(declared_type.attributes)

    assert attributes() == {"a", "provider"}
    files.files["/m/lib/puppet_x/s.rb"] = files.files["/m/lib/puppet_x/s.rb"].replace(b":a", b":b")
    assert attributes() == {"b", "provider"}


def test_an_open_type_is_noted_with_its_file() -> None:
    notes: list[str] = []
    files = MemoryFiles({"/m/lib/puppet/type/x.rb": "Puppet::Type.newtype(:x) { newparam(compute) }"})
    types = ModuleTypes(files, ["/m"], note=notes.append)

    types.find("x")
    types.find("x")

    assert len(notes) == 1
    assert "/m/lib/puppet/type/x.rb" in notes[0]


def test_a_module_says_what_a_type_is_that_left_puppet_but_not_what_a_file_is() -> None:
    text = "Puppet::Type.newtype(:{}) {{ newparam(:name); newparam(:own) }}"
    files = MemoryFiles({f"/m/lib/puppet/type/{name}.rb": text.format(name) for name in ("cron", "file", "package")})
    types = ModuleTypes(files, ["/m"])

    known = {name: types.find(name) for name in ("cron", "file", "package")}

    assert {name for name, each in known.items() if each is not None and "own" in each.attributes} == {"cron"}


def test_types_of_the_libdir_are_known_too() -> None:
    files = MemoryFiles({"/var/lib/puppet/type/x.rb": "Puppet::Type.newtype(:x) { newparam(:a) }"})

    assert ModuleTypes(files, [], libdirs=["/var/lib"]).find("x") is not None
