"""
The bundled stdlib: what the recorded cases of Debian's stdlib 8.5 do not show, because it is new in 9 or because it is ours.
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.runtime import NAMES
from language.functions import Context, Function, builtin_functions
from language.functions.stdlib import stdlib_functions
from language.functions.stdlib.aliases import ALIASES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.values.core import DEFAULT, Sensitive, Value
from shared.errors import CompileError, PuppetError
from shared.regexps import Regexp
from tests.conformance.runner import answer
from tests.support.compiling import compiled, world_of
from tests.support.needs import needs_ruby

TODAY = """
    any2array any2bool assert_private base64 basename batch_escape stdlib::batch_escape bool2num bool2str clamp concat convert_base
    count deep_merge stdlib::deferrable_epp defined_with_params delete delete_at delete_regex delete_undef_values delete_values
    deprecation difference intersection union dirname dos2unix unix2dos enclose_ipv6 stdlib::end_with stdlib::start_with
    stdlib::ensure ensure_packages stdlib::ensure_packages ensure_resource ensure_resources stdlib::extname fact fqdn_rand_string
    stdlib::fqdn_rand_string fqdn_rotate stdlib::fqdn_rotate fqdn_uuid get_module_path getparam glob grep reject
    stdlib::has_function has_interface_with stdlib::has_interface_with has_ip_address has_ip_network stdlib::has_ip_address
    stdlib::has_ip_network stdlib::ip_in_range is_a join_keys_to_values load_module_metadata loadjson loadyaml member merge
    stdlib::merge stdlib::nested_values num2bool os_version_gte stdlib::os_version_gte parsehocon stdlib::parsehocon parsejson
    parseyaml parsepson pick pick_default powershell_escape stdlib::powershell_escape prefix suffix pry pw_hash range regexpescape
    reverse stdlib::rewrap_sensitive_data seeded_rand seeded_rand_string stdlib::seeded_rand stdlib::seeded_rand_string shell_escape
    stdlib::shell_escape shell_join shell_split shuffle stdlib::sort_by squeeze str2bool stdlib::str2resource str2saltedpbkdf2
    str2saltedsha512 swapcase stdlib::sha256 stdlib::crc32 time stdlib::time to_bytes to_json to_json_pretty to_yaml to_toml
    to_python to_ruby stdlib::to_json stdlib::to_json_pretty stdlib::to_yaml stdlib::to_toml stdlib::to_python stdlib::to_ruby
    type_of stdlib::type_of uriescape validate_augeas validate_cmd validate_x509_rsa_key_pair validate_domain_name
    validate_email_address stdlib::validate_domain_name stdlib::validate_email_address validate_legacy values_at stdlib::xml_encode
    zip
"""
BEFORE_9 = """
    is_absolute_path is_array is_bool is_domain_name is_email_address is_float is_function_available is_hash is_integer
    is_ip_address is_ipv4_address is_ipv6_address is_mac_address is_numeric is_string validate_absolute_path validate_array
    validate_bool validate_hash validate_integer validate_ip_address validate_ipv4_address validate_ipv6_address validate_numeric
    validate_re validate_slength validate_string bool2httpd dig44 private has_key hash sprintf_hash type3x try_get_value
"""
IN_THE_CORE = """
    abs camelcase capitalize ceiling chomp chop dig downcase empty flatten floor getvar join keys length lstrip max min round rstrip
    size sort strip strftime type unique unwrap upcase values
"""
NODE = {
    "os": {"name": "Debian", "release": {"major": "12"}},
    "networking": {
        "fqdn": "node1.example.com",
        "interfaces": {
            "lo": {"ip": "127.0.0.1", "network": "127.0.0.0", "netmask": "255.0.0.0"},
            "eth0": {"ip": "192.0.2.10", "mac": "00:11:22:33:44:55", "network": "192.0.2.0"},
        },
    },
}


def test_every_function_of_stdlib_is_there_and_none_is_of_the_core() -> None:
    found = set(stdlib_functions())
    assert found == set(TODAY.split()) | set(BEFORE_9.split())
    assert not found & set(builtin_functions())


def test_what_puppet_took_over_from_stdlib_is_in_the_core() -> None:
    assert set(IN_THE_CORE.split()) <= set(builtin_functions())


def test_every_function_says_what_it_gives() -> None:
    assert [name for name, function in stdlib_functions().items() if not function.doc] == []


GIVES: list[tuple[str, str]] = [
    ("stdlib::merge({a=>1},{b=>2})", "{a => 1, b => 2}"),
    ("['a','b','a'].stdlib::merge |$h,$v| { {$v => $h[$v].lest || {0} + 1} }", "{a => 2, b => 1}"),
    ("{a=>1}.stdlib::merge |$h,$k,$v| { {$v => $k} }", "{1 => a}"),
    ("[1,2].stdlib::merge |$h,$v| { {a => $h} }", "{a => {a => {}}}"),
    ("stdlib::nested_values({a=>1,b=>{c=>2,d=>{e=>3}},f=>[{g=>4}]})", "[1, 2, 3, [{g => 4}]]"),
    ("[3,1,2].stdlib::sort_by |$x| { -$x }", "[3, 2, 1]"),
    ("'cab'.stdlib::sort_by |$x| { $x }", "abc"),
    ("{a=>2,b=>1}.stdlib::sort_by |$k,$v| { $v }", "{b => 1, a => 2}"),
    ("{a=>2,b=>1}.stdlib::sort_by |$pair| { $pair[1] }", "{b => 1, a => 2}"),
    ("[['b',1],['a',2],['a',1]].stdlib::sort_by |$x| { $x }", "[[a, 1], [a, 2], [b, 1]]"),
    ("stdlib::has_function('stdlib::merge')", "true"),
    ("stdlib::has_function('notice')", "true"),
    ("stdlib::has_function('m::in_ruby')", "false"),
    ("stdlib::has_function('nosuch')", "false"),
    ("stdlib::has_interface_with('lo')", "true"),
    ("stdlib::has_interface_with('eth7')", "false"),
    ("stdlib::has_interface_with('macaddress','00:11:22:33:44:55')", "true"),
    ("stdlib::has_interface_with('ip','192.0.2.10')", "true"),
    ("stdlib::has_interface_with('netmask','255.0.0.1')", "false"),
    ("stdlib::has_ip_address('127.0.0.1')", "true"),
    ("stdlib::has_ip_network('192.0.2.0')", "true"),
    ("stdlib::has_ip_network('192.0.3.0')", "false"),
    ("stdlib::os_version_gte('Debian','9')", "true"),
    ("stdlib::os_version_gte('Debian','13')", "false"),
    ("stdlib::os_version_gte('Ubuntu','9')", "false"),
    ("stdlib::sha256('my string')", "2f7e2089add0288a309abd71ffcc3b3567e2d4215e20e6ed3b74d6042f7ef8e5"),
    ("stdlib::sha256(Sensitive('my string'))", "2f7e2089add0288a309abd71ffcc3b3567e2d4215e20e6ed3b74d6042f7ef8e5"),
    ("stdlib::sha256(100.0)", "43b87f618caab482ebe4976c92bcd6ad308b48055f1c27b4c574f3e31d7683e0"),
    ("stdlib::crc32('my string')", "18fbd270"),
    ("stdlib::crc32(100.0)", "a3fd429a"),
    ("stdlib::to_json({a=>[1,undef]})", '{"a":[1,null]}'),
    ("stdlib::to_json({a=>Sensitive('x')})", "Sensitive [value redacted]"),
    ("stdlib::to_json({a=>Sensitive('x')}).unwrap", '{"a":"x"}'),
    ("stdlib::to_yaml({a=>Sensitive('x')}).unwrap", "---\na: x\n"),
    ("stdlib::to_yaml({b=>1,a=>{d=>1,c=>2}},{sort_keys=>true})", "---\na:\n  c: 2\n  d: 1\nb: 1\n"),
    ("stdlib::to_toml({a=>Sensitive('x')}).unwrap", 'a = "x"\n'),
    ("stdlib::to_json_pretty({a=>Sensitive('x'),b=>undef},true).unwrap", '{\n  "a": "x"\n}\n'),
    ("stdlib::rewrap_sensitive_data([1,Sensitive(2)]).unwrap", "[1, 2]"),
    ("stdlib::rewrap_sensitive_data([1,2])", "[1, 2]"),
    ("stdlib::rewrap_sensitive_data({a=>Sensitive(2)}) |$x| { $x['a'] + 1 }.unwrap", "3"),
    ("stdlib::parsehocon('a { b = 1 }')", "{a => {b => 1}}"),
    ("stdlib::time() =~ Integer[0]", "true"),
    ("stdlib::ensure(true)", "present"),
    ("bool2httpd(true)", "On"),
    ("bool2httpd(false)", "Off"),
    ("bool2httpd('x')", "x"),
    ("loadjson('/env/data/a.json')", "{a => 1}"),
    ("loadjson('https://example.com/x', {a => 2})", "{a => 2}"),
    ("loadyaml('/env/data/a.yaml')", "{a => [1, 2]}"),
    ("loadyaml('/env/data/bad.yaml','d')", "d"),
    ("loadyaml('/env/data/aliases.yaml')", "{a => [1], b => [1]}"),
    ("loadyaml('/env/data/bomb.yaml','d')", "d"),
    ("parseyaml(\"a: &x [1]\\nb: *x\",'d')", "d"),
    ("getparam(Notify['declared'],'message')", "hello"),
]


@pytest.mark.parametrize(("expression", "text"), GIVES)
def test_functions_that_are_new_give(expression: str, text: str) -> None:
    files = {
        "data/a.json": '{"a": 1}',
        "data/a.yaml": "a: [1, 2]\n",
        "data/bad.yaml": "[1",
        "data/aliases.yaml": "a: &x [1]\nb: *x\n",
        "data/bomb.yaml": "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
        "modules/m/lib/puppet/functions/m/in_ruby.rb": "",
    }
    made = compiled(f"notify{{'declared': message => 'hello'}}\nnotice({expression})", files, facts=NODE)
    assert [entry.text for entry in made.logs if entry.level == "notice"] == [text]


REFUSES: list[tuple[str, str]] = [
    ("stdlib::merge(1)", "expects"),
    ("stdlib::sort_by([1,'a']) |$x| { $x }", "comparison of Integer with String failed"),
    ("stdlib::validate_email_address('x')", "'stdlib::validate_email_address' parameter 'values' expects"),
    ("stdlib::validate_email_address()", "stdlib::validate_email_address(): Wrong number of arguments need at least one"),
    ("stdlib::validate_domain_name('a b')", "'stdlib::validate_domain_name' parameter 'values' expects"),
    ("validate_legacy(Array[String],'validate_array',[1])", "validate_legacy(Array[String], ...) index 0 expects a String value"),
    ("stdlib::ensure_packages('')", "'stdlib::ensure_packages' parameter 'packages' expects"),
    ("stdlib::ensure_packages({'a' => {'ensure' => 'present'}}, 1)", "expects"),
    ("stdlib::to_yaml(1, {'nosuch' => 1})", 'unknown option "nosuch"'),
    ("stdlib::to_yaml(Integer)", "a value of type Integer-Type cannot be written as YAML"),
    ("stdlib::seeded_rand_string(2000000,'x')", "is too long"),
    ("glob('*.conf')", 'glob(): The pattern "*.conf" is not absolute'),
    ("glob([1])", "glob(): Requires either array or string to work"),
    ("pry()", "The function 'pry' starts a debugger of Ruby"),
    ("validate_cmd('x','/bin/true')", "The function 'validate_cmd' would run"),
    ("validate_augeas('x','y')", "The function 'validate_augeas' needs"),
    ("loadjson('https://example.com/x')", "loadjson() does not fetch from the network"),
    ("loadyaml('/env/data/bad.yaml')", "/env/data/bad.yaml: "),
    ("pw_hash('p','bcrypt','05$saltsaltsaltsaltsaltsa')", "pw_hash() cannot make bcrypt hashes here"),
    ("validate_x509_rsa_key_pair('x','y')", "Not a valid x509 certificate"),
    ("stdlib::os_version_gte('Debian','9')", "the node has no fact os.name"),
]


@pytest.mark.parametrize(("expression", "told"), REFUSES)
def test_what_cannot_be_done_is_told_by_name(expression: str, told: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(f"notice({expression})", {"data/bad.yaml": "[1"})
    assert told in str(caught.value)
    assert "line: 1" in str(caught.value)


TYPES: list[tuple[str, str, bool]] = [
    ("Stdlib::Dns::Zone", "'example.com.'", True),
    ("Stdlib::Dns::Zone", "'.'", True),
    ("Stdlib::Dns::Zone", "'example.com'", False),
    ("Stdlib::Http::Method", "'GET'", True),
    ("Stdlib::Http::Method", "'get'", False),
    ("Stdlib::Http::Status", "404", True),
    ("Stdlib::Ensure::Package", "'1.2-3'", True),
    ("Stdlib::Ensure::Package", "''", False),
    ("Stdlib::IP::Address::CIDR", "'10.0.0.0/8'", True),
    ("Stdlib::IP::Address::CIDR", "'10.0.0.0'", False),
    ("Stdlib::IP::Address::V6::CIDR", "'fe80::/64'", True),
    ("Stdlib::IP::Address::V6::CIDR", "'fe80::'", False),
    ("Stdlib::IP::Address::V6::CIDR", "'::ffff:10.0.0.1/96'", True),
    ("Stdlib::Unixpath", f"'/{'a' * 60}\\n'", True),
    ("Stdlib::Unixpath", f'"/{"a" * 60}\\n"', False),
]


@pytest.mark.parametrize(("type_", "value", "fits"), TYPES)
def test_types_that_are_new_take(type_: str, value: str, fits: bool) -> None:
    assert compiled(f"notice({value} =~ {type_})").logs[-1].text == str(fits).lower()


def test_every_alias_can_be_resolved() -> None:
    manifest = "\n".join(f"notice(1 =~ {name})" for name, _ in ALIASES.values())
    assert len(compiled(manifest).logs) == len(ALIASES)


# --- anything at all ----------------------------------------------------------------------------------------------

ODD: list[Value] = [
    None,
    False,
    3,
    float("nan"),
    "",
    "a1",
    "\udcff",
    [1, "a", None],
    {"a": {"b": [None]}},
    Sensitive("s"),
    Regexp("("),
    DEFAULT,
]


@pytest.mark.slow
def test_no_function_fails_with_anything_but_an_error_of_ours() -> None:
    failed: dict[str, str] = {}

    def probe(context: Context) -> None:
        for name, function in stdlib_functions().items():
            if name == "range":
                continue  # it goes on to a million elements
            for args in [(), *itertools.product(ODD, repeat=1), *itertools.product(ODD, repeat=2)]:
                try:
                    function.call(context, list(args))
                except PuppetError:
                    pass
                except Exception as error:
                    failed[f"{name}{args!r}"] = repr(error)

    calls = Function("probe", ())
    calls.also()(probe)
    world = world_of("probe()")
    functions = {**all_functions(), "probe": calls}
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, found: None, builtins=functions)
    with suppress(CompileError):  # what has been declared on the way is of no use
        compile_catalog(world, loader, NodeInput("node1.example.com"), version=1, log=lambda entry: None)
    assert failed == {}


# --- who comes first ----------------------------------------------------------------------------------------------

IN_PYTHON = '''
from language.functions import Context, function

@function("pick", "Integer value", "Integer more?")
def pick(context: Context, value: int, more: int = 1) -> int:
    """Our own."""
    return value * 100 + more
'''
FIRST: list[tuple[str, dict[str, str], str, str]] = [
    ("bundled", {}, "pick(undef, 1)", "1"),
    ("a module's Python", {"modules/m/lib/puppet/functions/pick.py": IN_PYTHON}, "pick(1)", "101"),
    ("the environment's Puppet", {"functions/pick.pp": "function pick($x) { 'env' }"}, "pick(1)", "env"),
    ("not a module's Ruby", {"modules/m/lib/puppet/functions/pick.rb": "not read"}, "pick(undef, 1)", "1"),
    ("not the Ruby of the old API", {"modules/stdlib/lib/puppet/parser/functions/pick.rb": "not read"}, "pick(undef, 1)", "1"),
    ("not stdlib's Ruby", {"modules/stdlib/lib/puppet/functions/stdlib/merge.rb": "not read"}, "stdlib::merge({a=>1})", "{a => 1}"),
    (
        "stdlib's Puppet",
        {"modules/stdlib/functions/ensure.pp": "function stdlib::ensure($x) { 'theirs' }"},
        "stdlib::ensure(1)",
        "theirs",
    ),
    ("a type of stdlib", {"modules/stdlib/types/port.pp": "type Stdlib::Port = Integer[1, 2]"}, "80 =~ Stdlib::Port", "false"),
    ("a builtin, as in Puppet", {"functions/size.pp": "function size($x) { 'env' }"}, "size([1,2])", "2"),
]


@pytest.mark.parametrize(("files", "expression", "text"), [row[1:] for row in FIRST], ids=[row[0] for row in FIRST])
def test_first_comes(files: dict[str, str], expression: str, text: str) -> None:
    assert compiled(f"notice({expression})", files).logs[-1].text == text


IN_RUBY = """Puppet::Functions.create_function(:'%s') do
  dispatch :f do
    param 'String', :x
    optional_param 'String', :newer
    return_type 'String'
  end
  def f(x, newer = 'z')
    "#{x} #{newer}"
  end
end
"""
OWN = {
    "modules/stdlib/lib/puppet/functions/stdlib/shell_escape.rb": IN_RUBY % "stdlib::shell_escape",
    "modules/stdlib/lib/puppet/functions/pw_hash.rb": IN_RUBY % "pw_hash",
}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("stdlib::shell_escape('a b')", r"a\ b"),
        ("stdlib::shell_escape('a', 'b')", "a b"),
        ("pw_hash('a')", "a z"),
    ],
    ids=["a call that fits the bundled one", "one that only fits the module's", "one of the old API"],
)
@needs_ruby
def test_a_call_that_does_not_fit_a_bundled_function_is_the_modules_own(expression: str, text: str) -> None:
    assert answer({"manifest": f"notice({expression})", "files": OWN}).data["logs"][-1][1] == text


def test_where_the_modules_own_cannot_be_called_the_bundled_function_says_what_is_wrong() -> None:
    path = "modules/stdlib/lib/puppet/functions/stdlib/shell_escape.rb"
    with pytest.raises(CompileError, match="'stdlib::shell_escape' expects 1 argument, got 2"):
        compiled("notice(stdlib::shell_escape('a', 'b'))", {path: "Puppet::Functions.create_function(:'stdlib::shell_escape') { fork }"})


# --- old names ----------------------------------------------------------------------------------------------------

OLD_STDLIB = {"modules/stdlib/metadata.json": '{"name": "puppetlabs-stdlib", "version": "8.6.0"}'}
NEW_STDLIB = {"modules/stdlib/metadata.json": '{"name": "puppetlabs-stdlib", "version": "9.4.1"}'}


@pytest.mark.parametrize(("files", "warnings"), [({}, 1), (NEW_STDLIB, 1), (OLD_STDLIB, 0)], ids=["none", "9", "8"])
@pytest.mark.parametrize("strict", ["warning", "error", "off"])
def test_an_old_name_warns_once_unless_the_sites_stdlib_has_no_new_one(files: dict[str, str], warnings: int, strict: str) -> None:
    manifest = "notice(merge({a=>1},{b=>2}))\nnotice(merge({c=>1},{d=>2}))"
    logs = compiled(manifest, files, settings={"strict": strict}).logs
    assert [entry.text for entry in logs if entry.level == "notice"] == ["{a => 1, b => 2}", "{c => 1, d => 2}"]
    told = [entry.text for entry in logs if entry.level == "warning"]
    assert len(told) == warnings
    assert all(text.startswith("This function is deprecated, please use stdlib::merge instead.") for text in told)


PSON, LEGACY = "This method is deprecated. From Puppet 8, PSON", "This method is deprecated, please use Puppet data types"
DEPRECATED = (  # as Puppet 7.23 and 8.10 with stdlib 9.7
    ("notice(parsepson('[1]'))", "warning", [PSON, "[1]"]),
    ("notice(parsepson('[1]'))", "off", ["[1]"]),
    ("notice(parsepson('[1]', 'd'))", "warning", [PSON, "[1]"]),
    ("notice(parsepson('[1]', 'd'))", "error", ["d"]),
    ("notice(parsepson('[1', 'd'))", "warning", [PSON, "d"]),
    ("validate_legacy(Integer, 'x', 5)", "warning", [LEGACY]),
    ("validate_legacy('Integer', 'x', 5)", "off", []),
)


@pytest.mark.parametrize(("manifest", "strict", "told"), DEPRECATED)
def test_functions_without_a_successor_are_deprecated_by_stdlib_9(manifest: str, strict: str, told: list[str]) -> None:
    texts = [entry.text for entry in compiled(manifest, NEW_STDLIB, settings={"strict": strict}).logs]
    assert [text[: len(start)] for text, start in zip(texts, told, strict=True)] == told
    assert all(entry.level == "notice" for entry in compiled(manifest, OLD_STDLIB, settings={"strict": strict}).logs)


@pytest.mark.parametrize("call", ["parsepson('[1]')", "validate_legacy(Integer, 'x', 5)", "validate_legacy('Integer', 'x', 5)"])
def test_strict_refuses_functions_without_a_successor(call: str) -> None:
    with pytest.raises(CompileError, match=rf"deprecation\. {call.partition('(')[0]}\. This method is deprecated"):
        compiled(f"$x = {call}", settings={"strict": "error"})


def test_deprecation_follows_the_setting_strict() -> None:
    manifest = "deprecation('key', 'Use that')\ndeprecation('key', 'Use that')\ndeprecation('other', 'And that', false)"
    told = {}
    for strict in ("off", "warning"):
        told[strict] = [entry.text.split("\n")[0] for entry in compiled(manifest, settings={"strict": strict}).logs]
    assert told == {"off": ["And that"], "warning": ["Use that", "And that"]}
    with pytest.raises(CompileError, match=r"deprecation\. key\. Use that at .*site\.pp:1"):
        compiled(manifest, settings={"strict": "error"})


def of_stdlib(version: str) -> dict[str, str]:
    return {"modules/stdlib/metadata.json": f'{{"name": "puppetlabs-stdlib", "version": "{version}"}}'}


PACKAGES = """
package { 'a': ensure => 'present' }
ensure_packages(['b', 'c'])
ensure_packages({'d' => {'ensure' => 'present'}, 'e' => {'ensure' => 'latest'}})
"""


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("4.19.0", ["present", "present", "present", "present", "latest"]),
        ("7.1.0", ["present", "present", "present", "present", "latest"]),
        ("8.0.0", ["present", "installed", "installed", "installed", "latest"]),
        ("9.4.1", ["present", "installed", "installed", "installed", "latest"]),
    ],
)
def test_packages_are_declared_in_the_words_of_the_sites_stdlib(version: str, words: list[str]) -> None:
    resources = compiled(PACKAGES, of_stdlib(version)).catalog["resources"]
    assert [resource["parameters"]["ensure"] for resource in resources if resource["type"] == "Package"] == words


@pytest.mark.parametrize(("version", "warnings"), [("4.6.0", 0), ("4.13.1", 2), ("8.6.0", 2)])
def test_old_validators_warn_since_their_stdlib_has_validate_legacy(version: str, warnings: int) -> None:
    logs = compiled("validate_re('a', '^a$')\nnotice(is_string('a'))", of_stdlib(version)).logs
    assert [entry.text for entry in logs if entry.level == "notice"] == ["true"]
    assert len([entry.text for entry in logs if entry.text.startswith("This method is deprecated")]) == warnings


def test_validate_legacy_accepts_what_the_old_validator_accepts_before_stdlib_9() -> None:
    told = compiled("validate_legacy(Integer, 'validate_integer', '5')\nvalidate_legacy(String, 'validate_bool', 'x')", OLD_STDLIB).logs
    assert [(entry.level, entry.text.partition(" at ")[0].split("\n")[0]) for entry in told] == [
        ("warning", "validate_legacy(validate_integer) expects an Integer value, got String"),
        ("notice", "Accepting previously invalid value for target type 'String'"),
    ]
    for files, name in ((OLD_STDLIB, "validate_integer"), (NEW_STDLIB, "Integer, ...")):
        with pytest.raises(CompileError, match=rf"validate_legacy\({name}\) expects an Integer value, got String"):
            compiled("validate_legacy(Integer, 'validate_integer', 'x')", files)


def test_packages_are_installed_or_present_as_they_were_declared() -> None:
    manifest = "package{'a': ensure => 'present'}\nstdlib::ensure_packages(['a','b'])\nstdlib::ensure_packages({'c'=>{'ensure'=>'latest'}})"
    packages = {
        resource["title"]: resource["parameters"] for resource in compiled(manifest).catalog["resources"] if resource["type"] == "Package"
    }
    assert packages == {"a": {"ensure": "present"}, "b": {"ensure": "installed"}, "c": {"ensure": "latest"}}
