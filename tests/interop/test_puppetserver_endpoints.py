"""
The endpoints that puppetserver has of its own: puppetserver 7.9.5 and 8.7, and our master beside each, on the same files and rules.

Both are asked the same; answers are compared as they are, byte for byte where their order is given.
"""

from __future__ import annotations

import http.client
import json
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
from tests.processes import master

pytestmark = [pytest.mark.interop, pytest.mark.slow]

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
    root = Path(tempfile.mkdtemp(prefix="puppetserver-", dir="/var/tmp"))  # its own user has to get there
    port = puppetserver.free_port()
    try:
        puppetserver.configured(request.param, root, port, 1)
        (root / "conf.d/auth.conf").write_text(RULES)
        conf = root / "conf.d/puppetserver.conf"
        conf.write_text(conf.read_text().replace("jruby-puppet: {", "jruby-puppet: {\n environment-class-cache-enabled: true", 1))
        environments = root / "code/environments"
        for name, text in LISTED.items():
            path = environments / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        own = {"environmentpath": environments, "rest_authconfig": root / "conf.d/auth.conf", "external_nodes": root / "enc"}
        own |= {"code_id_command": root / "id", "code_content_command": root / "content", "node_terminus": "exec"}
        settings = {name: str(value) for name, value in own.items()}
        folder = tmp_path_factory.mktemp("ours")
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


def test_types_that_only_running_tells_are_left_out_where_puppetserver_7_fails(both: Both) -> None:
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
        assert theirs.body == ours.body
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
