"""
The endpoints that puppetserver has of its own: puppetserver 7.9.5 and 8.7, and our master beside each, on the same files and rules.

Both are asked the same; answers are compared as they are, byte for byte where their order is given.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.interop import puppetserver
from tests.interop.puppetserver import PUPPETSERVERS, Installed
from tests.support.ports import reserved_port
from tests.support.processes import master

pytestmark = [
    pytest.mark.works_with(
        "Servers of Puppet with this agent",
        "puppetserver's classes, modules, tasks, plans and catalogs of given facts, beside this master's",
    ),
    pytest.mark.interop,
    pytest.mark.slow,
]

RULES = """authorization: { version: 1, rules: [
  { name: "everybody", sort-order: 100, match-request: { path: "/", type: path }, allow-unauthenticated: true } ] }
"""
OWN_CONF = "modulepath = modules\n"
PARAMETERS = r"""
# What classes may ask for.
class params (
  $untyped,
  String $str = 'x',
  String[1] $dq = "double",
  Integer[0, 10] $int = 3,
  Integer[-5, default] $neg = -3,
  Float[1.5] $float = 1.50,
  Numeric $hex = 0x1F,
  Integer $octal = 010,
  Optional[String] $undef = undef,
  Array[String] $list = ['a', "b", name],
  Array $mixed = [1, 2.0, true, undef],
  Array $withdefault = [default],
  Hash $hash = { 'b' => 1, 'a' => { 'd' => 1, 'c' => [{ 'z' => 1, 'y' => 2 }] } },
  Hash $barekey = { key => value },
  Hash $intkey = { 1 => 2 },
  Hash $slashes = { 'b/c' => 1, 'z' => 2, 'a/a' => 3, '' => 4 },
  Regexp $re = /a.b/,
  String $interpolated = "x${facts['os']}y",
  Integer $calculated = 1 + 2 * 3,
  Enum['a', "b", c] $enum = a,
  Enum['a', true] $insensitive = 'a',
  Pattern[/^a/, '^b'] $pattern = 'abc',
  Struct[{ # with a comment
    'a' => Integer, Optional['b'] => String }] $struct = { 'a' => 1 },
  Stdlib::Absolutepath $alias = '/tmp',
  Optional[Stdlib::Foo[1]] $alias_args = undef,
  Array[Hash[String, Integer, 1], 1, 3] $nested = [],
  Tuple[String, Integer] $tuple = ['a', 1],
  Callable[String] $callable = undef,
  Type[Integer] $type = Integer,
  Sensitive[String] $secret = Sensitive('x'),
  Class['params'] $klass = Class['params'],
  Resource['file', '/tmp'] $res = undef,
  Optional['lit'] $literal = undef,
  Runtime['ruby', 'X'] $runtime = undef,
  Boolean[true] $true = true,
  Error $error = undef,
  Mytype['x'] $mytype = undef,
  $function = lookup('x', String, 'first', 'y'),
  $method = 'x'.upcase,
  $variable = $params::str,
  $unicode = 'ä€',
  $escaped = "tab\tquote\"",
  $big = 9223372036854775807,
  $exponent = 1.0e3,
) { }
"""
METADATA = {"name": "acme-meta", "version": "1.2.3", "author": "acme", "license": "x", "source": "y", "summary": "z", "dependencies": []}
LISTED = {
    "parts/environment.conf": "modulepath = modules:more\n",
    "parts/manifests/site.pp": "class insite($a = 1) { class inner { } class other ($x = 2) { } }\nnode default { }\ndefine d ($q) { }\n",
    "parts/manifests/sub/two_errors.pp": "class Sub::More { }\nclass ::absolute($p) inherits insite { }\n",
    "parts/manifests/readme.txt": "no manifest",
    "parts/manifests/empty.pp": "",
    "parts/modules/params/manifests/init.pp": PARAMETERS,
    "parts/modules/params/manifests/deep/er.pp": "class params::deep::er { class nested { } }\nfunction params::f() { 1 }\n",
    "parts/modules/broken/manifests/init.pp": "class broken {\n  file { '/x' ensure => 'a' }\n}\n",
    "parts/modules/broken/manifests/one_error.pp": "class broken::one {\n  1 = 2\n}\n",
    "parts/modules/broken/manifests/elsewhere.pp": "class elsewhere::other { }\n",
    "parts/modules/broken/manifests/toplevel.pp": "notify { 'x': }\nclass broken::toplevel { }\n",
    "parts/modules/broken/manifests/unclosed.pp": "class broken::unclosed { $x = 'unclosed }\n",
    "parts/modules/broken/manifests/escape.pp": 'class broken::escape($x = "\\q") { }\n',
    "parts/modules/nothing/files/x": "x",
    "parts/modules/meta/metadata.json": json.dumps(METADATA),
    "parts/modules/slashed/metadata.json": json.dumps({**METADATA, "name": "acme/slashed"}),
    "parts/modules/Upper/manifests/init.pp": "class upper { }\n",
    "parts/modules/with-dash/manifests/init.pp": "class dash { }\n",
    "parts/modules/file": "no folder",
    "parts/more/second/manifests/init.pp": "class second { }\n",
    "parts/more/meta/manifests/hidden.pp": "class meta::hidden { }\n",
    "bare/environment.conf": OWN_CONF,
    "onefile/environment.conf": OWN_CONF + "manifest = one.pp\n",
    "onefile/one.pp": "class one { }\n",
    "onefile/modules/m/manifests/init.pp": "class m { }\n",
}
COMPILED = {
    "cat/environment.conf": OWN_CONF,
    "cat/manifests/site.pp": """
notice("noticed ${trusted['certname']}")
warning('warned')
info('informed')
debug('debugged')
err('wrong')
notify { "trusted: ${trusted}": }
notify { "role ${facts['role']} ${getvar('role')} in ${environment} ${server_facts['environment']}, rack ${getvar('rack')}": }
@notify { 'virtual': }
notify { 'secret': message => Sensitive('s') }
file { '/tmp/x': source => 'puppet:///modules/m/x', mode => '0644', tag => ['own'] }
include m
if $facts['broken'] { fail('broken by a fact') }
node default { notify { 'default': } }
node /^web/ { notify { 'web': } }
""",
    "cat/modules/m/manifests/init.pp": "class m (Integer $port = 80) { @@notify { 'exported': } -> notify { \"at ${port}\": } }\n",
    "cat/modules/m/files/x": "x\n",
    "odd/environment.conf": OWN_CONF,
    "odd/manifests/site.pp": 'notify { "an ${unknown} one": }\n',
    "unparsable/environment.conf": OWN_CONF,
    "unparsable/manifests/site.pp": "class {",
}
DESCRIPTION = {"description": "does", "private": True, "parameters": {"b": {"type": "String"}, "a": {"type": "Integer"}}}
IMPLEMENTED = {
    "implementations": [{"name": "linux.sh", "requirements": ["shell"]}, {"name": "win.ps1", "files": ["t/files/a.txt"]}],
    "files": ["t/files/a.txt", "t/scripts/"],
}
WORK = {
    "work/environment.conf": "modulepath = modules:elsewhere/modules\n",
    "work/modules/t/tasks/init.sh": "#!/bin/sh\n",
    "work/modules/t/tasks/noext": "x",
    "work/modules/t/tasks/described.sh": "x\n",
    "work/modules/t/tasks/described.json": json.dumps(DESCRIPTION),
    "work/modules/t/tasks/empty.sh": "x",
    "work/modules/t/tasks/empty.json": "",
    "work/modules/t/tasks/linux.sh": "l",
    "work/modules/t/tasks/win.ps1": "w",
    "work/modules/t/tasks/many.json": json.dumps(IMPLEMENTED),
    "work/modules/t/tasks/alone.json": "{}",
    "work/modules/t/tasks/Upper.sh": "x",
    "work/modules/t/tasks/readme.md": "x",
    "work/modules/t/tasks/folder/x.sh": "x",
    "work/modules/t/files/a.txt": "a\n",
    "work/modules/t/lib/c.rb": "c\n",
    "work/modules/t/scripts/s.sh": "s\n",
    "work/modules/t/manifests/init.pp": "",
    "work/modules/t/plans/init.pp": "plan t() { }\n",
    "work/modules/t/plans/both.pp": "plan {\n",
    "work/modules/t/plans/both.yaml": "steps: []\n",
    "work/modules/t/plans/yaml.yaml": "steps: []\n",
    "work/modules/t/plans/class.pp": "",
    "work/modules/t/plans/Up.pp": "",
    "work/modules/t/plans/x.txt": "",
    # Of another folder than the programs for versions look in: what they print is never as the file.
    "work/elsewhere/modules/v/tasks/init.sh": "v",
    "work/elsewhere/modules/v/tasks/init.json": json.dumps({"files": ["v/files/x", "v/lib/", "v/scripts/x"]}),
    "work/elsewhere/modules/v/files/x": "x",
    "work/elsewhere/modules/v/lib/v/x.rb": "x",
    "work/elsewhere/modules/v/scripts/x": "x",
}
WRONG_TASKS: dict[str, Any] = {
    "files_text": {"files": "x"},
    "files_module": {"files": ["nomod/files/x"]},
    "files_mount": {"files": ["t/manifests/init.pp"]},
    "files_climb": {"files": ["t/files/../../../environment.conf"]},
    "files_missing": {"files": ["t/files/missing"]},
    "files_folder": {"files": ["t/lib"]},
    "impl_text": {"implementations": "x"},
    "impl_requirements": {"implementations": [{"name": "init.sh", "requirements": "x"}]},
    "impl_missing": {"implementations": [{"name": "nope.sh"}]},
}
WORK |= {f"work/modules/t/tasks/{name}.json": json.dumps(metadata) for name, metadata in WRONG_TASKS.items()}
WORK |= {f"work/modules/t/tasks/{name}.sh": "x" for name in WRONG_TASKS}


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    kind: str | None
    tag: str | None
    body: bytes
    version: str | None

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Question:
    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def asked_of(self, port: int) -> Answered:
        """The answer of whoever listens at a port of this machine."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
        body = self.body if self.body is None or isinstance(self.body, str) else json.dumps(self.body)
        try:
            connection.request(self.method, self.target, body, dict(self.headers))
            answer = connection.getresponse()
            kind = answer.getheader("Content-Type")
            return Answered(answer.status, kind, answer.getheader("ETag"), answer.read(), answer.getheader("X-Puppet-Version"))
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class Both:
    """A puppetserver and our master on the same environments."""

    installed: Installed
    environments: Path
    theirs: int  # ports
    ours: int
    log: Path  # of the puppetserver

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[Answered, Answered]:
        """Puppetserver's answer and ours."""
        question = Question(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return question.asked_of(self.theirs), question.asked_of(self.ours)

    def same(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """The answer that both give, all but the version."""
        theirs, ours = self.ask(method, target, body, **headers)
        assert (ours.status, ours.kind, ours.tag, ours.body) == (theirs.status, theirs.kind, theirs.tag, theirs.body)
        return ours


@pytest.fixture(scope="module", params=PUPPETSERVERS, ids=lambda each: each.version)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    if reason := request.param.why_not():
        pytest.skip(reason)
    root = Path(tempfile.mkdtemp(prefix="puppetserver-"))  # its own user has to get there
    with reserved_port() as port:
        try:
            puppetserver.configured(request.param, root, port, 1)
            (root / "conf.d/auth.conf").write_text(RULES)
            conf = root / "conf.d/puppetserver.conf"
            conf.write_text(conf.read_text().replace("jruby-puppet: {", "jruby-puppet: {\n environment-class-cache-enabled: true", 1))
            environments = root / "code/environments"
            for name, text in (LISTED | COMPILED | WORK).items():
                path = environments / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            own = {"environmentpath": environments, "rest_authconfig": root / "conf.d/auth.conf", "external_nodes": root / "enc"}
            own |= {"code_id_command": root / "id", "code_content_command": root / "content", "node_terminus": "exec"}
            settings = {name: str(value) for name, value in own.items()}
            folder = tmp_path_factory.mktemp("ours")
            if request.param is not PUPPETSERVERS[0]:
                (folder / "conf").mkdir()
                (folder / "conf/puppet.conf").write_text("[main]\nstrict = error\nstrict_variables = true\n")  # the defaults of 8
            with puppetserver.running(root, port, request.param), master(folder, **settings) as process:
                yield Both(request.param, environments, port, process.start().port, root / "output")
        finally:
            shutil.rmtree(root)


CLASSES, MODULES = "/puppet/v3/environment_classes", "/puppet/v3/environment_modules"


@pytest.mark.parametrize("environment", ["parts", "bare", "onefile", "production", "testing", "plain"])
def test_the_classes_of_an_environment_are_the_same_to_the_byte(both: Both, environment: str) -> None:
    answer = both.same("GET", f"{CLASSES}?environment={environment}")
    assert answer.status == 200 and answer.kind == "application/json" and answer.data["name"] == environment
    assert environment != "parts" or {len(each.get("classes", ())) for each in answer.data["files"]} == {0, 1, 2, 3}


def test_who_knows_the_tag_is_told_that_nothing_has_changed(both: Both) -> None:
    tag = both.same("GET", f"{CLASSES}?environment=onefile").tag
    assert tag is not None
    assert both.same("GET", f"{CLASSES}?environment=onefile", If_None_Match=tag).status == 304
    theirs, ours = both.ask("GET", f"{CLASSES}?environment=onefile", If_None_Match=f"{tag}--gzip")
    assert (theirs.status, ours.status) == (304, 304)
    for known in (f'"{tag}"', f"x, {tag}", "*", "x"):
        assert both.same("GET", f"{CLASSES}?environment=onefile", If_None_Match=known).status == 200
    theirs, ours = both.ask("GET", f"{CLASSES}?environment=parts", Accept_Encoding="gzip")
    assert theirs.tag == f"{ours.tag}--gzip"  # Jetty's way; either is understood


def test_types_that_only_running_tells_are_left_out_where_puppetserver_gives_up(both: Both) -> None:
    path = both.environments / "bare/manifests/odd.pp"
    path.parent.mkdir(exist_ok=True)
    path.write_text("class odd (Integer[0, $x] $y = 1) { }\n")
    try:
        theirs, ours = both.ask("GET", f"{CLASSES}?environment=bare")
    finally:
        path.unlink()
    if both.installed is PUPPETSERVERS[0]:
        assert theirs.status == 500 and "does not match schema" in theirs.text
    else:
        assert list(theirs.data["files"][0]) == ["error", "path"]
    assert ours.data["files"][0]["classes"][0]["params"] == [{"default_literal": 1, "default_source": "1", "name": "y"}]


def test_defaults_that_end_in_a_bracket_are_whole_where_puppetserver_cuts_them(both: Both) -> None:
    path = both.environments / "bare/manifests/cut.pp"
    path.parent.mkdir(exist_ok=True)
    path.write_text("class cut ($a = (1), $b = $x ? { 1 => 2 }) { }\n")
    try:
        theirs, ours = both.ask("GET", f"{CLASSES}?environment=bare")
    finally:
        path.unlink()
    sources = [[one["default_source"] for one in each.data["files"][0]["classes"][0]["params"]] for each in (theirs, ours)]
    assert sources == [["(1", "$x ? { 1 => 2"], ["(1)", "$x ? { 1 => 2 }"]]


def by_name(listed: Any) -> Any:
    """Modules in an order of their own: puppetserver's is that of the disk."""
    return {**listed, "modules": sorted(listed["modules"], key=lambda each: str(each["name"]))}


@pytest.mark.parametrize("environment", ["parts", "bare", "onefile"])
def test_the_modules_of_an_environment_are_the_same(both: Both, environment: str) -> None:
    theirs, ours = both.ask("GET", f"{MODULES}?environment={environment}")
    assert (ours.status, ours.kind, len(ours.body)) == (theirs.status, theirs.kind, len(theirs.body))
    assert by_name(ours.data) == by_name(theirs.data)
    assert list(ours.data) == list(theirs.data) and all(list(each) == ["name", "version"] for each in ours.data["modules"])


def test_the_modules_of_all_environments_are_the_same(both: Both) -> None:
    theirs, ours = both.ask("GET", MODULES)
    assert (ours.status, ours.kind) == (theirs.status, theirs.kind)
    own = {"parts", "bare", "onefile"}  # the others have modules of the system that puppetserver is installed on
    assert [each["name"] for each in ours.data] == [each["name"] for each in theirs.data]
    assert [by_name(each) for each in ours.data if each["name"] in own] == [by_name(each) for each in theirs.data if each["name"] in own]


@pytest.mark.parametrize(
    "target",
    [
        CLASSES,
        f"{CLASSES}?environment=",
        f"{CLASSES}?environment=a-b",
        f"{CLASSES}?environment=nowhere",
        f"{CLASSES}/x/y?environment=bare",
        f"{MODULES}?environment=",
        f"{MODULES}?environment=a-b",
        f"{MODULES}?environment=nowhere",
    ],
)
def test_what_is_wrong_with_a_question_is_said_in_the_same_words(both: Both, target: str) -> None:
    both.same("GET", target)


# --- catalogs of given facts

CATALOG = "/puppet/v4/catalog"
KEEP_NOTHING = {"facts": False, "catalog": False}
ASKED = {"certname": "web1.example.com", "persistence": KEEP_NOTHING, "environment": "cat", "facts": {"values": {"role": "r"}}}


def told(answer: Answered) -> Any:
    """An answer without what is new each time, and tags in an order of their own: those of Puppet depend on its sets."""
    data = answer.data
    assert data["catalog"].pop("catalog_uuid") and isinstance(data["catalog"].pop("version"), int)
    for each in [data["catalog"], *data["catalog"]["resources"]]:
        each["tags"] = sorted(each["tags"])
    for line in data.get("logs", ()):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00", line.pop("time"))
    return data


def text(data: Any) -> str:
    """With the order of keys."""
    return json.dumps(data)


GIVEN: dict[str, dict[str, Any]] = {
    "facts": {},
    "no facts": {"facts": {"values": {}}},
    "structured facts": {"facts": {"values": {"role": {"a": [1, 2.5, None, True]}, "other": "x"}}},
    "trusted facts": {"trusted_facts": {"values": {"certname": "t", "extensions": {"pp_role": "x"}}}},
    "no trusted facts": {"trusted_facts": {"values": {}}},
    "an id of a transaction and a job": {"transaction_uuid": "u", "job_id": "1"},
    "another node": {"certname": "db1"},
    "a node of another environment": {"certname": "classified1"},
    "the log": {"options": {"capture_logs": True}},
    "the log from warnings up": {"options": {"capture_logs": True, "log_level": "warning"}},
    "the log from errors up": {"options": {"capture_logs": True, "log_level": "err"}},
    "no options": {"options": {}},
}


@pytest.mark.parametrize("change", GIVEN.values(), ids=GIVEN)
def test_a_catalog_of_given_facts_is_the_same(both: Both, change: dict[str, Any]) -> None:
    theirs, ours = both.ask("POST", CATALOG, ASKED | change)
    assert (ours.status, ours.kind) == (theirs.status, theirs.kind) == (200, "application/json"), ours.text
    assert text(told(ours)) == text(told(theirs))


def test_a_fact_called_trusted_is_trusted(both: Both) -> None:
    asked = ASKED | {"facts": {"values": {"role": "r", "trusted": {"certname": "from facts"}}}}
    theirs, ours = both.ask("POST", CATALOG, asked)
    assert text(told(ours)) == text(told(theirs))
    assert "trusted: {certname => from facts}" in ours.text


def test_the_whole_log_has_what_the_manifest_says(both: Both) -> None:
    asked = ASKED | {"options": {"capture_logs": True, "log_level": "debug"}}
    logs = [
        [(each["level"], each["message"]) for each in told(answer)["logs"] if each["source"].startswith("Scope")]
        for answer in both.ask("POST", CATALOG, asked)
    ]
    assert logs[0] == logs[1] and ("debug", "debugged") in logs[1]


def test_what_is_compiled_again_from_memory_says_the_same(both: Both) -> None:
    """Ours remembers catalogs: the same question twice, another one between."""
    asked = ASKED | {"options": {"capture_logs": True}, "trusted_facts": {"values": {"certname": "one"}}}
    other = asked | {"trusted_facts": {"values": {"certname": "two"}}}
    for each in (asked, asked, other, asked, asked | {"certname": "web2.example.com"}, asked):
        theirs, ours = both.ask("POST", CATALOG, each)
        assert text(told(ours)) == text(told(theirs))


BROKEN: dict[str, dict[str, Any]] = {
    "by a fact": {"facts": {"values": {"broken": True}}},
    "by a fact, with its log": {"facts": {"values": {"broken": True}}, "options": {"capture_logs": True}},
    "by its manifest": {"environment": "unparsable"},
    "by the environment that is preferred": {"certname": "classified1", "options": {"prefer_requested_environment": True}},
}


def test_a_variable_that_is_not_there_is_a_line_in_the_log_or_an_error(both: Both) -> None:
    """By the setting `strict`, whose default 8 has changed."""
    theirs, ours = both.ask("POST", CATALOG, ASKED | {"environment": "odd", "options": {"capture_logs": True}})
    assert (ours.status, "Unknown variable: 'unknown'" in ours.text) == (theirs.status, True)
    if ours.status == 200:
        assert text(told(ours)) == text(told(theirs))


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_catalog_that_cannot_be_compiled_is_an_error_in_the_same_words(both: Both, change: dict[str, Any]) -> None:
    theirs, ours = both.ask("POST", CATALOG, ASKED | change)
    assert (ours.status, ours.kind) == (theirs.status, theirs.kind) == (500, "text/plain;charset=utf-8")
    assert ours.text == re.sub(r"org\.jruby\.exceptions\.\w+: \(\w+\) ", "", theirs.text)


SHAPES: list[dict[str, Any]] = [
    {"certname": 5}, {"certname": None}, {"certname": {"a": 1}}, {"certname": ["long list of things", "more than nineteen characters"]},
    {"environment": "a-b"}, {"environment": ""}, {"environment": 5}, {"environment": "x" * 30 + "-"},
    {"persistence": {}}, {"persistence": 5}, {"persistence": {"facts": "yes", "catalog": None}}, {"persistence": {**KEEP_NOTHING, "x": 1}},
    {"facts": {}}, {"facts": {"values": 5}}, {"facts": {"values": {}, "name": "x"}}, {"facts": None},
    {"trusted_facts": {"values": [1, 2]}}, {"trusted_facts": None}, {"job_id": 5}, {"job_id": 1.5}, {"transaction_uuid": None},
    {"options": {"log_level": "notice"}}, {"options": {"log_level": "a-very-long-level-that-is-none"}}, {"options": None},
    {"options": {"capture_logs": "true", "prefer_requested_environment": 1}}, {"options": {"x": 1}}, {"extra": 1}, {"extra": 1, "more": 2},
    {"certname": 1, "extra": 1}, {"environment": 1, "options": {"x": {}}, "zzz": None},
]  # fmt: skip


@pytest.mark.parametrize("change", SHAPES, ids=str)
def test_a_body_of_another_shape_is_refused_in_the_same_words(both: Both, change: dict[str, Any]) -> None:
    answer = both.same("POST", CATALOG, ASKED | change)
    assert answer.status == 400 and answer.text.startswith("Invalid input: ")


@pytest.mark.parametrize("missing", ["certname", "persistence", "environment"])
def test_what_a_body_must_have_is_named_in_the_same_words(both: Both, missing: str) -> None:
    assert both.same("POST", CATALOG, {name: value for name, value in ASKED.items() if name != missing}).status == 400
    both.same("POST", CATALOG, {})


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "5", "nul"])
def test_a_body_that_is_no_object_is_a_bad_request_to_both(both: Both, body: str) -> None:
    theirs, ours = both.ask("POST", CATALOG, body)
    assert (ours.status, ours.kind, ours.text.partition(": ")[0]) == (theirs.status, theirs.kind, theirs.text.partition(": ")[0])


def test_what_no_peer_may_choose_is_a_bad_request_to_us_alone(both: Both) -> None:
    """Names that are no certnames, keys that stand twice, data behind the end; an environment that is not there is not our error."""
    for change, status in (({"certname": "../x"}, 400), ({"certname": "Not Valid!"}, 400), ({"environment": "nowhere"}, 404)):
        theirs, ours = both.ask("POST", CATALOG, ASKED | change)
        assert (theirs.status, ours.status) == (500 if status == 404 else 200, status)
    assert ours.text == "Could not find environment 'nowhere'"
    for body in (json.dumps(ASKED) + "x", json.dumps(ASKED).replace("{", '{"certname": "web2", ', 1)):
        theirs, ours = both.ask("POST", CATALOG, body)
        assert (theirs.status, ours.status) == (200, 400)


def test_facts_are_kept_where_the_next_catalog_finds_them(both: Both) -> None:
    keep = {"certname": "kept1", "persistence": {"facts": True, "catalog": True}, "facts": {"values": {"role": "kept"}}}
    without = {name: value for name, value in (ASKED | keep | {"persistence": KEEP_NOTHING}).items() if name != "facts"}
    for asked in (without, ASKED | keep, without, ASKED | keep | {"facts": {"values": {"role": "later", "broken": True}}}, without):
        theirs, ours = both.ask("POST", CATALOG, asked)
        assert theirs.status == ours.status
        if ours.status == 200:
            assert text(told(ours)) == text(told(theirs))
    assert "broken by a fact" in ours.text  # kept before it was compiled


# --- tasks and plans

TASKS, PLANS = "/puppet/v3/tasks", "/puppet/v3/plans"


@pytest.mark.parametrize("listing", [TASKS, PLANS])
def test_tasks_and_plans_are_listed_the_same(both: Both, listing: str) -> None:
    theirs, ours = both.ask("GET", f"{listing}?environment=work")
    assert (ours.status, ours.kind, len(ours.body)) == (theirs.status, theirs.kind, len(theirs.body))
    assert sorted(map(text, ours.data)) == sorted(map(text, theirs.data)) != []
    assert both.same("GET", f"{listing}?environment=bare").data == []


@pytest.mark.parametrize("name", ["init", "noext", "described", "empty", "linux", "alone", *WRONG_TASKS])
def test_a_task_is_described_the_same_to_the_byte(both: Both, name: str) -> None:
    answer = both.same("GET", f"{TASKS}/t/{name}?environment=work")
    assert answer.status == (500 if name in WRONG_TASKS or name == "alone" else 200)


@pytest.mark.parametrize("target", ["t/many", "v/init"])
def test_a_task_brings_the_same_files(both: Both, target: str) -> None:
    """By version where the site's program gives them as they are, else by mount; those of a folder are in no order."""
    theirs, ours = both.ask("GET", f"{TASKS}/{target}?environment=work")
    assert (ours.status, len(ours.body), text(ours.data["metadata"])) == (200, len(theirs.body), text(theirs.data["metadata"]))
    assert sorted(map(text, ours.data["files"])) == sorted(map(text, theirs.data["files"]))
    kind = "static_file_content" if target == "t/many" else "file_content"
    assert {each["uri"]["path"].split("/")[3] for each in ours.data["files"]} == {kind}


def test_a_file_that_is_no_longer_as_at_its_version_is_had_by_its_mount(both: Both) -> None:
    program = both.environments.parent.parent / "content"
    before = program.read_text()
    program.write_text("#!/bin/sh\necho another\n")
    try:
        assert "/puppet/v3/file_content/tasks/t/init.sh" in both.same("GET", f"{TASKS}/t/init?environment=work").text
    finally:
        program.write_text(before)


@pytest.mark.parametrize("name", ["init", "both", "yaml"])
def test_a_plan_is_described_the_same(both: Both, name: str) -> None:
    assert both.same("GET", f"{PLANS}/t/{name}?environment=work").status == 200


@pytest.mark.parametrize(
    "target",
    [
        TASKS,
        f"{TASKS}?environment=nowhere",
        f"{TASKS}?environment=a-b",
        f"{TASKS}/t/nope?environment=work",
        f"{TASKS}/t/Upper?environment=work",
        f"{TASKS}/t/folder?environment=work",
        f"{TASKS}/nomod/x?environment=work",
        f"{TASKS}/T/init?environment=work",
        f"{TASKS}/t/init",
        PLANS,
        f"{PLANS}?environment=nowhere",
        f"{PLANS}/t/class?environment=work",
        f"{PLANS}/nomod/x?environment=work",
    ],
)
def test_what_is_not_there_is_named_in_the_same_words(both: Both, target: str) -> None:
    assert both.same("GET", target).status in (400, 404)


@pytest.mark.parametrize("target", [f"{TASKS}/", f"{TASKS}/t", f"{TASKS}/t/", f"{TASKS}/t/init/x", f"{PLANS}/t"])
def test_there_is_nothing_else_below_them(both: Both, target: str) -> None:
    theirs, ours = both.ask("GET", f"{target}?environment=work")
    assert theirs.status == ours.status == 404
