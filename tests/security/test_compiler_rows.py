"""The compiler's rows of the attack table: what a node says of itself is data, whatever it looks like."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import DiskFiles
from environments.files.manifest_access import ManifestAccess
from environments.settings import environment_settings
from shared.errors import CompileError, PuppetError
from shared.settings import Conf, MasterSettings, load
from tests.support.compiling import compiled

ROOT = Path(__file__).parent.parent.parent
LOOKS_LIKE_CODE = [
    "<%= 7*7 %>",
    "<% system('id') %>",
    "<%- 7 -%>",
    "<%# %>",
    "%>",
    "{{7*7}}",
    "${facts}",
    "${7*7}",
    "$facts",
    "%{lookup('secret')}",
    "%{facts.other}",
    "#{7*7}",
    "`id`",
    "$(id)",
    "{0.__class__}",
    "%s%n%(x)s",
    "\\1 \\0 \\u0041",
    "@(END)\nx\n| END",
    "'; notify { 'pwned': } '",
]
TEMPLATES = {
    "modules/m/templates/fact.epp": "<%= $facts['x'] %>",
    "modules/m/templates/given.epp": "<%- | $given | -%>\n<%= $given %>",
    "modules/m/templates/loop.epp": "<% $facts['many'].each |$each| { -%>\n<%= $each %><% } -%>",
    "modules/m/templates/class.epp": "<%= $m::value %>",
    "modules/m/manifests/init.pp": "class m ($value) { notice(epp('m/class.epp')) }",
    "hiera.yaml": "version: 5\nhierarchy: [{name: common, path: common.yaml}]\n",
    "data/common.yaml": 'secret: SECRET\nshown: "%{facts.x}"\n',
}
SHOWN_BY = {
    "a template that reads the fact": "notice(epp('m/fact.epp'))",
    "a template that is given the fact": "notice(epp('m/given.epp', { 'given' => $facts['x'] }))",
    "a template that loops over facts": "notice(epp('m/loop.epp'))",
    "a template of a class parameter": "class { 'm': value => $facts['x'] }",
    "a template in the manifest": "notice(inline_epp('<%= $facts[\"x\"] %>'))",
    "text with the fact in it": "notice(\"${facts['x']}\")",
    "a legacy variable": "notice($x)",
    "data with the fact in it": "notice(lookup('shown'))",
    "a format": "notice(sprintf('%s', $facts['x']))",
}


@pytest.mark.parametrize("way", SHOWN_BY)
@pytest.mark.parametrize("value", LOOKS_LIKE_CODE)
def test_CMP_01_a_fact_that_looks_like_code_appears_as_it_is(way: str, value: str) -> None:
    facts = {"x": value, "many": [value]}
    if value == "%{facts.other}" and way == "data with the fact in it":
        # As in Puppet, variables are put in once more, though never keys: what a node says may name what it says.
        value = ""
    assert compiled(SHOWN_BY[way], TEMPLATES, facts=facts).notices == [value]


REACHES_OUT = [
    "`id`",
    "%x(id)",
    "system('id')",
    "exec 'id'",
    "open('|id').read",
    "File.read('/etc/passwd')",
    "IO.popen('id')",
    "Dir['/*']",
    "ENV['HOME']",
    "eval('1')",
    "binding",
    "self.class",
    "@x.class.new",
    "@x.class.ancestors",
    "@x.class.instance_method(:upcase)",
    "@x.class.const_get('File')",
    "@x.send(:system, 'id')",
    "@x.method(:system)",
    "@x.instance_variable_get(:@y)",
    "Object.const_get('File')",
    "::File",
    "Kernel.exit",
    "require 'socket'",
    "$LOAD_PATH",
    "__FILE__",
    "scope.compiler",
    "scope.catalog",
    "scope.method_missing(:a)",
    "@x.__class__",
    "@x.__globals__",
    "__import__('os')",
    "session",
    "out",
    "put('x')",
    "_to_s",
    "_erb_text(0)",
    "_erb_output((1).to_s)",
    "'%s'.format(@x)",
]


@pytest.mark.parametrize("code", REACHES_OUT)
def test_CMP_01_a_template_in_ruby_that_reaches_out_is_never_run_without_ruby(code: str) -> None:
    """What is run as Python has the values of the scope, the functions of the language, and nothing else."""
    files = {"modules/m/templates/t.erb": f"<%= {code} %>"}
    for call in ("template('m/t.erb')", "inline_template($facts['x'])"):
        with pytest.raises(PuppetError, match="ERB template, which needs Ruby"):
            compiled(f"notice({call})", files, facts={"x": f"<%= {code} %>"})


def test_CMP_01_a_fact_in_a_template_in_ruby_is_text() -> None:
    files = {"modules/m/templates/t.erb": "<%= @x %><%= scope['x'] %><%= \"#{@x}\" %>"}
    for value in LOOKS_LIKE_CODE:
        assert compiled("notice(template('m/t.erb'))", files, facts={"x": value}).notices == [value * 3]


def test_CMP_01_a_name_of_a_template_leads_to_files_not_to_text() -> None:
    for name in LOOKS_LIKE_CODE:
        with pytest.raises(PuppetError, match="Could not find template"):
            compiled("notice(epp($facts['x']))", TEMPLATES, facts={"x": name})


WORDS = [
    "string",
    "scope",
    "self",
    "result",
    "loop",
    "include",
    "notice",
    "epp",
    "lookup",
    "template",
    "class",
    "define",
    "node",
    "type",
    "function",
    "undef",
    "default",
    "true",
    "__class__",
    "__builtins__",
    "__import__",
    "__globals__",
    "__name__",
    "builtins",
    "compiler",
    "evaluate",
    "context",
    "world",
    "settings_",
    "name",
    "title",
    "n1",
]


@pytest.mark.parametrize("name", WORDS)
def test_CMP_02_a_fact_replaces_neither_functions_nor_variables(name: str) -> None:
    manifest = """
        $mine = 'mine'
        notice(epp('m/given.epp', { 'given' => $mine }), sprintf('%s', 1), String(2), [1, 2].map |$n| { $n + 1 }, lookup('secret'))
        class c { notify { "n ${title} ${name}": } }
        include c
        notice($facts[FACT])
    """.replace("FACT", f"'{name}'")
    result = compiled(manifest, TEMPLATES, facts={name: "forged", "x": "x"})
    assert result.notices == ["mine 1 2 [2, 3] SECRET", "forged"]
    assert "Notify[n c c]" in result.refs


@pytest.mark.parametrize("name", ["a.b", "a b", "A", "a-b", "a::b", "::x", "", "a\nb", "é", "0", "1a", "a$b", "x" * 2**20, "${x}", "['x']"])
def test_CMP_02_a_name_no_variable_can_have_is_reached_through_facts_only(name: str) -> None:
    result = compiled("notice($facts.keys.length, $facts[$facts['key']], $x)", facts={name: "odd", "key": name, "x": "x"})
    assert result.notices == ["3 odd x"]


@pytest.mark.parametrize("name", ["trusted", "server_facts", "facts", "environment", "settings"])
def test_CMP_02_what_the_master_says_is_not_said_by_facts(name: str) -> None:
    manifest = "notice($trusted['certname'], $environment, $facts[FACT])".replace("FACT", f"'{name}'")
    forged = {"certname": "forged"} if name != "environment" else "forged"
    (said,) = compiled(manifest, facts={name: forged}).notices
    assert said.startswith("node1.example.com production ")


ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{0.__class__.__init__.__globals__}",
    "{x.__class__}",
    "%(__class__)s",
    "x|attr('__globals__')",
    "cycler.__init__.__globals__",
    "__import__('os').system('id')",
]


@pytest.mark.parametrize("value", ESCAPES)
def test_CMP_03_no_text_is_ever_evaluated_by_python(value: str) -> None:
    manifest = """
        notice($facts['x'])
        notice(inline_epp('<%= $x %>', { 'x' => $facts['x'] }))
        notice("${facts['x']}")
        notice(regsubst($facts['x'], 'NOWHERE', ''))
    """
    assert compiled(manifest, facts={"x": value}).notices == [value] * 4
    for call in ("sprintf($facts['x'], 'a')", "sprintf($facts['x'], { 'a' => 1 })", "Timestamp($facts['x'])", "new(Type, $facts['x'])"):
        try:
            shown = compiled(f"notice({call})", facts={"x": value}).notices[0]
        except CompileError as err:
            shown = str(err)
        assert all(word not in shown.replace(value, "") for word in ("<class", "0x", "built-in", "<function", "mappingproxy")), shown


@pytest.mark.parametrize("member", ["__class__", "__init__", "_values", "copy", "items", "append", "mro", "format"])
def test_CMP_03_members_of_values_are_those_of_the_language(member: str) -> None:
    for subject in ("'text'", "[1]", "{ 'a' => 1 }", "5", "$facts", "Timestamp('2026-01-01')", "SemVer('1.0.0')", "File['/x']", "/x/"):
        with pytest.raises(PuppetError):
            compiled(f"notice({subject}.{member})", facts={"x": "y"})


# What a checked manifest was turned into, and the functions that a module brings in Python.
RUNS_CODE = {
    "language/codegen/__init__.py",
    "language/erb/writing/templates.py",
    "language/loading/erb_templates.py",
    "language/loading/loader.py",
    "language/loading/loaded_files.py",
}
EVALUATORS = {"eval", "exec", "compile", "__import__"}


def calls(path: Path) -> set[str]:
    """The bare names that a module calls."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


SOURCES = [path for package in ("master", "agent", "shared", "certs", "bunraku") for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.slow
def test_CMP_03_there_is_no_engine_of_templates_and_code_is_run_in_few_places() -> None:
    assert len(SOURCES) > 300
    engines = {"jinja2", "mako", "chameleon", "genshi", "tornado", "django"}
    assert [str(path) for path in SOURCES if imported(path) & engines] == []
    running = {str(path.relative_to(ROOT)) for path in SOURCES if calls(path) & EVALUATORS}
    assert running <= RUNS_CODE, running - RUNS_CODE


# --- CMP-06: what manifests reach on the compiling host


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment beside a secret, with links to it, and a folder that manifests may read."""
    for name, text in {
        "outside/secret": "SECRET",
        "allowed/file": "allowed",
        "keys/master.pem": "KEY",
        "env/modules/m/files/f": "file",
        "env/modules/m/templates/t.epp": "template",
        "far/linked/files/f": "linked",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for link in ("files/out", "templates/out", "templates/out.epp"):
        (tmp_path / "env/modules/m" / link).symlink_to(tmp_path / "outside/secret")
    (tmp_path / "env/modules/m/files/key").symlink_to(tmp_path / "keys/master.pem")
    (tmp_path / "allowed/out").symlink_to(tmp_path / "outside")
    (tmp_path / "env/modules/linked").symlink_to(tmp_path / "far/linked")
    return tmp_path


def noticed(site: Path, call: str, **access: Any) -> list[str]:
    """What `notice(CALL)` says in that environment; ROOT in it stands for the folder."""
    world = DirectoryEnvironment(
        Environment("production", str(site / "env"), (str(site / "env/modules"),), None),
        DiskFiles(),
        code=f"notice({call.replace('ROOT', str(site))})",
        services=EnvironmentServices(access=ManifestAccess(**access)),
    )
    return compiled("", world=world, facts={"x": "../../../outside/secret"}).notices


OUTSIDE = ["ROOT/outside/secret", "ROOT/allowed/../outside/secret", "ROOT/allowed/out/secret", "m/../../../../outside/secret", "m/out"]
READERS = ["file('{}')", "binary_file('{}')", "find_file('{}')", "epp('{}')", "template('{}')", "find_template('{}')", "loadyaml('{}')"]


PATHS = [*OUTSIDE, "/etc/shadow", "ROOT/outside/not-there", "ROOT/outside"]


@pytest.mark.parametrize(
    ("reader", "path"),
    [(reader, path) for path in PATHS for reader in READERS if path.startswith(("ROOT", "/")) or not reader.startswith("loadyaml")],
)
def test_CMP_06_with_roots_nothing_outside_them_is_read_or_told_from_what_is_missing(site: Path, reader: str, path: str) -> None:
    with pytest.raises(CompileError, match="Manifests may not read"):
        noticed(site, reader.format(path), roots=(str(site / "allowed"),))


def test_CMP_06_with_roots_what_is_in_them_and_in_modules_is_read(site: Path) -> None:
    for path, text in (("ROOT/allowed/file", "allowed"), ("m/f", "file"), ("linked/f", "linked"), ("ROOT/env/modules/m/files/f", "file")):
        assert noticed(site, f"file('{path}')", roots=(str(site / "allowed"),)) == [text]
    assert noticed(site, "epp('m/t.epp')", roots=(str(site / "allowed"),)) == ["template"]


@pytest.mark.parametrize("path", ["ROOT/keys/master.pem", "m/key", "m/../../../../keys/master.pem", "ROOT/keys/none", "ROOT/keys"])
def test_CMP_06_the_masters_own_keys_are_never_read(site: Path, path: str) -> None:
    with pytest.raises(CompileError, match="Manifests may not read"):
        noticed(site, f"file('{path}')", hidden=(str(site / "keys"),))


def test_CMP_06_without_roots_an_absolute_path_is_the_sites_word(site: Path) -> None:
    assert noticed(site, "file('ROOT/outside/secret')", hidden=(str(site / "keys"),)) == ["SECRET"]


@pytest.mark.parametrize(
    "command", ["x; id", "/bin/echo; id", "/bin/../bin/echo", "echo", "/bin/sh -c id", "/bin/ec$(id)ho", "/bin/echo\n"]
)
def test_CMP_06_a_generator_is_one_absolute_program(site: Path, command: str) -> None:
    with pytest.raises(CompileError, match=r"[Gg]enerator"):
        noticed(site, f'generate("{command.replace("$", chr(92) + "$")}", "x")')


def test_CMP_06_a_generators_arguments_meet_no_shell_and_programs_can_be_forbidden(site: Path) -> None:
    assert noticed(site, "generate('/bin/echo', '$(id)', ';', '`id`')") == ["$(id) ; `id`\n"]
    with pytest.raises(CompileError, match="Manifests may not start '/bin/echo'"):
        noticed(site, "generate('/bin/echo', 'x')", programs=False)


def test_CMP_06_a_master_hides_its_own_keys_and_passes_the_settings_on(tmp_path: Path) -> None:
    flags = {"confdir": str(tmp_path), "vardir": str(tmp_path / "var"), "certname": "m", "compile_read_roots": "/srv/a:/srv/b"}
    made = environment_settings(load(MasterSettings, section="master", flags={**flags, "compile_programs": "false"}, conf=Conf()))
    assert made.read_roots == ("/srv/a", "/srv/b")
    assert made.programs is False
    assert made.ruby == ""  # nothing narrows what Ruby does
    assert {str(tmp_path / "ssl/private_keys"), str(tmp_path / "ssl/ca/ca_key.pem"), str(tmp_path / "ssl/ca/private")} <= set(made.hidden)


@pytest.mark.parametrize(
    "call",
    [
        "sprintf('%1000000001d', 1)",
        "sprintf('%*d', 1000000001, 1)",
        "String(1, '%1000000001d')",
        "String('x', '%1000000001s')",
        "String(1.5, '%.1000000001f')",
        "String([1], {Array => {format => '%a', string_formats => {Integer => '%1000000001d'}}})",
        "Timestamp(1).strftime('%1000000001Y')",
        "Timestamp(1).strftime('%1000000001N')",
        "strftime(Timespan(1), '%1000000001S')",
    ],
)
def test_CMP_13_no_format_makes_a_text_of_any_width(call: str) -> None:
    with pytest.raises(PuppetError):
        compiled(f"notice({call})")
