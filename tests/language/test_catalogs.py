"""Catalogs: what is in them, in which order, contained in what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from shared.errors import CompileError
from tests.support.compiling import ROOT, compiled
from tests.support.memory_files import MemoryFiles


def test_the_stage_settings_and_main_always_come_first() -> None:
    catalog = compiled("").catalog
    assert [(each["type"], each["title"]) for each in catalog["resources"]] == [("Stage", "main"), ("Class", "Settings"), ("Class", "main")]
    assert catalog["edges"] == [
        {"source": "Stage[main]", "target": "Class[Settings]"},
        {"source": "Stage[main]", "target": "Class[main]"},
    ]
    assert catalog["classes"] == ["settings"]
    assert catalog["name"] == "node1.example.com"
    assert catalog["environment"] == "production"


def test_the_class_settings_can_be_included_as_any_other() -> None:
    result = compiled("include settings\nnode default { require '::settings' notice(defined('settings')) }")
    assert result.notices == ["true"]
    assert [each["title"] for each in result.catalog["resources"]].count("Settings") == 1


def test_a_resource_is_contained_in_what_declared_it() -> None:
    result = compiled(
        """
        class c { notify { 'in c': } d { 'x': } }
        define d() { notify { "in d ${title}": } }
        node default { include c notify { 'in node': } }
        """
    )
    assert result.containers("Notify[in c]") == ["Class[C]"]
    assert result.containers("Notify[in d x]") == ["D[x]"]
    assert result.containers("D[x]") == ["Class[C]"]
    assert result.containers("Class[C]") == ["Stage[main]"]
    assert result.containers("Notify[in node]") == ["Node[default]"]
    assert {"node", "default", "c", "class", "notify"} <= set(result.resource("Notify[in c]")["tags"])


def test_parameters_come_from_the_declaration_then_data_then_the_default() -> None:
    files = {"hiera.yaml": "version: 5\n", "data/common.yaml": "c::a: data\nc::b: data\n"}
    result = compiled("class c($a = 'd', $b = 'd', $c = \"${a}!\") { notice($a, $b, $c) }\nclass { 'c': a => 'given' }", files)
    assert result.notices == ["given data given!"]


def test_an_exact_node_name_beats_a_regex_beats_the_default() -> None:
    blocks = "node default { notice('default') }\nnode /^web(\\d+)/ { notice(\"regex ${1}\") }\nnode 'web1.x' { notice('exact') }"
    assert compiled(blocks, certname="web1.x").notices == ["exact"]
    assert compiled(blocks, certname="web22.x").notices == ["regex 22"]
    assert compiled(blocks, certname="db1.x").notices == ["default"]


def test_a_node_without_a_block_is_refused_when_there_are_blocks() -> None:
    with pytest.raises(CompileError, match=r"Could not find node statement with name 'default' or 'node1\.example\.com'"):
        compiled("node 'other' { }")


def test_classes_of_the_enc_are_declared_with_their_parameters_first() -> None:
    result = compiled(
        "class a { notice('a') }\nclass b($p = 'default') { notice(\"b ${p} ${role}\") }",
        classes={"a": None, "b": {"p": "enc"}},
        parameters={"role": "web"},
    )
    assert result.notices == ["b enc web", "a"]
    assert result.catalog["classes"] == ["a", "b", "settings", "b", "a"]


def test_collectors_realize_what_matches_also_what_comes_later() -> None:
    result = compiled(
        """
        Notify <| tag == 'x' |> { message => 'collected' }
        @notify { 'one': tag => 'x' }
        @notify { 'two': }
        define d() { @notify { 'three': tag => 'x' } }
        d { 'a': }
        """
    )
    assert result.refs == ["Notify[one]", "D[a]", "Notify[three]"]
    assert result.parameters("Notify[three]")["message"] == "collected"


def test_defaults_reach_into_included_classes_and_defines() -> None:
    result = compiled(
        """
        class outer { Notify { message => 'from outer' } include inner d { 'x': } }
        class inner { notify { 'in inner': } }
        define d() { notify { 'in d': } notify { 'own': message => 'own' } }
        include outer
        notify { 'outside': }
        """
    )
    assert result.parameters("Notify[in inner]")["message"] == "from outer"
    assert result.parameters("Notify[in d]")["message"] == "from outer"
    assert result.parameters("Notify[own]")["message"] == "own"
    assert "message" not in result.parameters("Notify[outside]")


def test_a_subclass_may_override_and_nobody_else() -> None:
    result = compiled(
        """
        class base { notify { 'n': message => 'base', tag => 'one' } }
        class sub inherits base { Notify['n'] { message => 'sub', tag +> 'two' } }
        include sub
        """
    )
    assert result.parameters("Notify[n]") == {"message": "sub", "tag": ["one", "two"]}
    with pytest.raises(CompileError, match="Only subclasses can override parameters"):
        compiled("class a { notify { 'n': } }\nclass b { Notify['n'] { message => 'x' } }\ninclude a, b")


def test_chains_become_metaparameters_of_their_source() -> None:
    result = compiled("notify { ['a', 'b', 'c']: }\nNotify['a'] -> Notify['b'] ~> Notify['c']\nNotify['a'] <~ Notify['c']")
    assert result.parameters("Notify[a]") == {"before": ["Notify[b]"]}
    assert result.parameters("Notify[b]") == {"notify": ["Notify[c]"]}
    assert result.parameters("Notify[c]") == {"notify": ["Notify[a]"]}


def test_sensitive_values_are_unwrapped_and_named() -> None:
    resource = compiled("notify { 'a': message => Sensitive('secret') }").resource("Notify[a]")
    assert resource["parameters"] == {"message": "secret"}
    assert resource["sensitive_parameters"] == ["message"]


def test_resources_of_different_sensitive_names_are_different() -> None:
    manifest = "file { 'a': path => Sensitive('/x') }\nfile { 'b': path => Sensitive('/%s') }"
    assert compiled(manifest % "y").refs == ["File[a]", "File[b]"]
    with pytest.raises(CompileError, match=r"Cannot alias File\[b\] to \[#<Sensitive \[value redacted\]>\]"):
        compiled(manifest % "x")


def test_values_that_json_has_not_are_encoded() -> None:
    result = compiled("notify { 'a': message => [/x/, default, { 1 => 2 }, File['/a'], Optional[Integer[1]]] }")
    assert result.parameters("Notify[a]")["message"] == [
        {"__ptype": "Regexp", "__pvalue": "x"},
        {"__ptype": "Default"},
        {"__ptype": "Hash", "__pvalue": [1, 2]},
        "File[/a]",
        {"__ptype": "Pcore::OptionalType", "type": {"__ptype": "Pcore::IntegerType", "from": 1}},
    ]


def test_classes_defines_functions_and_aliases_are_found_in_modules() -> None:
    files = {
        "modules/m/manifests/init.pp": "class m(M::Port $port = 80) { m::thing { 'x': port => m::double($port) } }",
        "modules/m/manifests/thing.pp": 'define m::thing($port) { notify { "${title}-${port}": } }',
        "modules/m/functions/double.pp": "function m::double(Integer $x) >> Integer { $x * 2 }",
        "modules/m/types/port.pp": "type M::Port = Integer[1, 65535]",
    }
    result = compiled("include m", files)
    assert result.refs == ["Class[M]", "M::Thing[x]", "Notify[x-160]"]
    assert result.resource("Notify[x-160]")["file"] == f"{ROOT}/modules/m/manifests/thing.pp"


def test_a_template_sees_top_scope_and_its_parameters_only() -> None:
    files = {"modules/m/templates/t.epp": "<%- | String $name_, Integer $n = 2 | -%>\n<%= $name_ %> <%= $n %> <%= $top %>\n"}
    result = compiled("$top = 'T'\nclass c { $local = 1 notice(epp('m/t.epp', { 'name_' => 'N' })) }\ninclude c", files)
    assert result.notices == ["N 2 T\n"]


class CountedFiles(MemoryFiles):
    """Files in memory that count how often each one is read."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        super().__init__(files)
        self.reads: Counter[str] = Counter()

    def read(self, path: str) -> bytes | None:
        self.reads[path] += 1
        return super().read(path)


def test_a_template_is_read_once_in_a_compilation() -> None:
    manifest = "range(1, 3).each |$i| { notice(template('m/a.erb'), epp('m/b.epp')) }"
    path = f"{ROOT}/modules/m/templates"
    files = CountedFiles({f"{ROOT}/manifests/site.pp": manifest, f"{path}/a.erb": "\ufeffa", f"{path}/b.epp": "b"})
    world = DirectoryEnvironment(Environment("production", ROOT, (f"{ROOT}/modules",), f"{ROOT}/manifests"), files)
    for number in (1, 2):
        assert compiled(manifest, world=world).notices == ["a b"] * 3
        assert [files.reads[f"{path}/{name}"] for name in ("a.erb", "b.epp")] == [number, number]


def test_all_parameters_of_a_wrong_type_are_named_also_those_that_have_defaults() -> None:
    manifest = 'define d(Integer $a, Integer $b = "x${a}", Integer $c = 3, Integer $e = "y${b}") {}  d { t: a => 1 }'
    with pytest.raises(CompileError) as refused:
        compiled(manifest)
    assert "parameter 'b' expects an Integer value, got String" in refused.value.message
    assert "parameter 'e' expects an Integer value, got String" in refused.value.message


def test_erb_that_only_ruby_can_render_is_refused_by_name() -> None:
    with pytest.raises(CompileError, match=r"modules/m/templates/t\.erb is an ERB template, which needs Ruby"):
        compiled("notice(template('m/t.erb'))", {"modules/m/templates/t.erb": "<%= 1.digits %>"})


def test_nothing_of_one_compilation_is_seen_by_the_next() -> None:
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.evaluation.runtime import NAMES
    from language.host import NodeInput
    from language.loading.builtins import all_functions
    from language.loading.loader import Loader
    from tests.support.compiling import world_of

    world = world_of(
        "class c { $v = $facts['who'] notify { $v: } }\ninclude c\nif $facts['first'] { @notify { 'virtual': } Notify { message => 'm' } }"
    )
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, found: None, builtins=all_functions())
    titles = []
    for who, first in (("one", True), ("two", False)):
        node = NodeInput(who, facts={"who": who, "first": first})
        catalog = compile_catalog(world, loader, node, version=1, log=lambda entry: None)
        titles.append([each["title"] for each in catalog["resources"] if each["type"] == "Notify"])
    assert titles == [["one"], ["two"]]


def test_a_class_with_a_type_that_does_not_exist_stops_only_the_nodes_that_ask_for_it() -> None:
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.evaluation.runtime import NAMES
    from language.host import NodeInput
    from language.loading.builtins import all_functions
    from language.loading.loader import Loader
    from tests.support.compiling import world_of

    world = world_of(
        "node a { include m }\nnode b { include n }\nnode c { m::d { 'x': } }",
        {
            "modules/m/manifests/init.pp": "class m(Integer $y = 1) { include n\n m::d { 'x': } }",
            "modules/m/manifests/d.pp": "define m::d(Nosuch::T $x = 1) { }",
            "modules/n/manifests/init.pp": "class n { }",
        },
    )
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, found: None, builtins=all_functions())
    failed = []
    for name in "babcab":
        try:
            compile_catalog(world, loader, NodeInput(name), version=1, log=lambda entry: None)
        except CompileError as error:
            assert "Resource type not found: Nosuch::T" in str(error)
            failed.append(name)
    assert failed == ["a", "c", "a"]


REFUSED = [
    ("a syntax error in the site manifest", "class a { }\nnotify {", {}, "Syntax error"),
    ("a class that is defined twice", "class a { }\nclass a { }", {}, "already defined"),
    ("a syntax error in a module", "include m", {"modules/m/manifests/init.pp": "class m {"}, "Syntax error"),
    (
        "a module's file with something misplaced",
        "include m",
        {"modules/m/manifests/init.pp": "class m { }\nclass x { }"},
        "Unacceptable location",
    ),
]


@pytest.mark.parametrize(("why", "manifest", "files", "message"), REFUSED, ids=[why for why, *_ in REFUSED])
def test_what_is_refused_once_is_refused_the_same_way_again(why: str, manifest: str, files: dict[str, str], message: str) -> None:
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.evaluation.runtime import NAMES
    from language.host import NodeInput
    from language.loading.builtins import all_functions
    from language.loading.loader import Loader
    from tests.support.compiling import world_of

    world = world_of(manifest, files)
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, found: None, builtins=all_functions())
    told = []
    for _ in range(2):
        with pytest.raises(CompileError, match=message) as caught:
            compile_catalog(world, loader, NodeInput("n"), version=1, log=lambda entry: None)
        told.append(str(caught.value))
    assert told[0] == told[1], why


def test_shortened_names_find_a_node_block_only_when_that_is_set() -> None:
    blocks = "node 'web1' { notice('short') }\nnode default { notice('default') }"
    assert compiled(blocks, certname="web1.example.com").notices == ["default"]
    assert compiled(blocks, certname="web1.example.com", settings={"strict_hostname_checking": False}).notices == ["short"]


def test_bytes_that_are_no_text_stand_in_a_catalog_as_a_binary() -> None:
    site = compiled("notify { 'a': message => base64('decode', '/wD+') }\nnotify { 'b': message => base64('decode', 'w6k=') }\n")
    binary = site.parameters("Notify[a]")["message"]
    assert list(binary.items()) == [("__ptype", "Binary"), ("__pvalue", "/wD+")]  # in the order in which Puppet writes them
    assert site.parameters("Notify[b]") == {"message": "é"}


def test_name_is_the_namevar_under_its_own_name() -> None:
    manifest = (
        "file { 'a': name => '/x' }\nexec { 'b': name => '/bin/true' }\nservice { 'c': name => 'd' }\n"
        "file { '/y': name => '/y' }\ndefine m($v) { notify { $name: message => $v } }\nm { 'e': name => 'f', v => 1 }"
    )
    catalog = compiled(manifest).catalog
    parameters = {resource["title"]: resource.get("parameters", {}) for resource in catalog["resources"] if resource["type"] != "Class"}
    assert [parameters[title] for title in "abc"] == [{"path": "/x"}, {"command": "/bin/true"}, {"name": "d"}]
    assert (parameters["/y"], parameters["e"], parameters["f"]) == ({}, {"name": "f", "v": 1}, {"message": 1})


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("exec { 'x': path => '/bin', command => 'y', cwd => '/' }", ["command", "path", "cwd"]),
        ("file { 'x': mode => '0644', name => '/x/', owner => 'y' }", ["path", "mode", "owner"]),
        ("file { '/x/': mode => '0644', owner => 'y' }", ["path", "mode", "owner"]),
        ("package { 'x': provider => 'apt', name => 'y', ensure => installed }", ["name", "provider", "ensure"]),
        ("define d($z, $a) { }\nd { 'x': z => 1, name => 'y', a => 2 }", ["name", "z", "a"]),
        ("exec { 'x': path => '/bin' }\nExec['x'] { unless => 'y', command => 'z' }", ["command", "path", "unless"]),
        ("user { 'x': uid => 1, gid => 2 }", ["uid", "gid"]),
    ],
)
def test_the_attribute_that_names_a_resource_comes_before_all_others(resource: str, names: list[str]) -> None:
    """Recorded of Puppet 7.23."""
    resources = compiled(resource).catalog["resources"]
    found = next(each for each in resources if each["title"].strip("/") == "x")
    assert list(found["parameters"]) == names
