"""The wire of 3.x, side by side: what the real agent and ours ask a real puppetmaster 3.8.5; what that master and ours answer."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote_plus, unquote_plus, urlsplit

import pytest

from tests.interop.peers import PUPPET_3, OtherAgent, agent_of
from tests.interop.puppetmaster import Puppetmaster, puppetmaster
from tests.support.processes import OurAgent, master

pytestmark = [
    pytest.mark.works_with("HTTP exchanges, compared message by message", "3.8.5"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_3.why_not()), reason=PUPPET_3.why_not()),
]

# --- what agents ask


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puppetmaster]:
    with puppetmaster(tmp_path_factory.mktemp("puppetmaster") / "master") as process:
        yield process.with_site().start()


class Asked(NamedTuple):
    method: str
    path: str
    keys: frozenset[str]  # of the query
    accept: str  # the first of the list
    content_type: str | None
    status: int


Exchanges = list[dict[str, Any]]


def exchanges(server: Puppetmaster, agent: OurAgent | OtherAgent, *options: str, code: int) -> Exchanges:
    before = len(server.recorded)
    ran = agent.test(*options)
    assert ran.code == code, ran.text
    return server.recorded[before:]


def asked(found: Exchanges, certname: str) -> list[Asked]:
    """In the order of first appearance, the name replaced, and each once."""
    seen: dict[Asked, None] = {}
    for each in found:
        url = urlsplit(each["target"])
        keys = frozenset(parse_qs(url.query, keep_blank_values=True))
        accept = each["headers"]["accept"].split(",")[0]
        path = url.path.replace(certname, "NAME")
        seen[Asked(each["method"], path, keys, accept, each["headers"].get("content-type"), each["status"])] = None
    return list(seen)


def body_of(found: Exchanges, part: str) -> bytes:
    return base64.b64decode(next(each["body"] for each in found if part in each["target"] and each["body"]))


def shape(value: Any) -> Any:
    """The keys and kinds in plain data."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value[:1]] if isinstance(value, list) else type(value).__name__


# Ours asks first in the words of 4 and later, says always what it wants of permissions and sums, and the most files of a tree; theirs asks
# for the CA's certificate with `fail_on_404`, and once more for the TLS connection. Ours wants to know, too, what a listing leaves out.
OURS = {"checksum_type", "source_permissions", "max_files", "unserved"}
THEIRS = {"checksum_type", "source_permissions"}


def alike(found: list[Asked]) -> set[Asked]:
    more = OURS | THEIRS
    kept = [each for each in found if not each.path.startswith("/puppet-ca/")]
    return {each._replace(keys=each.keys - more - ({"fail_on_404"} if "/certificate" in each.path else set())) for each in kept}


def test_both_agents_ask_the_same_in_a_first_and_a_second_run(server: Puppetmaster, tmp_path: Path) -> None:
    theirs, ours = server.its_agent(tmp_path, "web1"), server.agent(tmp_path, "web2")
    first = exchanges(server, theirs, code=2), exchanges(server, ours, code=2)
    second = exchanges(server, theirs, code=0), exchanges(server, ours, code=0)
    for their, our in (first, second):
        assert alike(asked(their, theirs.certname)) == alike(asked(our, ours.certname))
    order = [each.path for each in asked(second[1], ours.certname)]
    assert order[:4] == [each.path for each in asked(second[0], theirs.certname)][:4]
    for found in second[1]:
        if "checksum_type" in found["target"]:
            assert "checksum_type=md5" in found["target"]

    forms = [parse_qs(body_of(found, "/catalog/").decode()) for found in first]
    assert list(forms[0]) == list(forms[1]) == ["facts_format", "facts", "transaction_uuid", "fail_on_404"]
    facts = [json.loads(unquote_plus(each["facts"][0])) for each in forms]
    assert facts[0].keys() == facts[1].keys()
    assert {type(each) for each in facts[1]["values"].values()} == {str}
    assert {"clientcert", "clientversion", "clientnoop", "stage_root", "from_ruby", "external_fact", "osfamily"} <= facts[1][
        "values"
    ].keys()

    reports = [json.loads(body_of(found, "/report/")) for found in first]
    assert list(reports[0]) == list(reports[1])
    simple = [{key: shape(each) for key, each in report.items() if key != "resource_statuses"} for report in reports]
    assert simple[0] == simple[1]
    plain = [next(each for ref, each in report["resource_statuses"].items() if ref.endswith("/plain]")) for report in reports]
    assert shape(plain[0]) == shape(plain[1]) and list(plain[0]) == list(plain[1])
    for key in ("resource_type", "changed", "out_of_sync", "change_count", "tags", "line"):
        assert plain[0][key] == plain[1][key]
    names = [{name.replace("web1", "web2") for name in report["resource_statuses"]} for report in reports]
    assert names[0] == names[1]


def test_both_agents_go_on_alike_after_an_error(server: Puppetmaster, tmp_path: Path) -> None:
    theirs, ours = server.its_agent(tmp_path, "failing1"), server.agent(tmp_path, "failing2")
    exchanges(server, theirs, code=1), exchanges(server, ours, code=1)
    failing = exchanges(server, theirs, code=1), exchanges(server, ours, code=1)
    assert alike(asked(failing[0], theirs.certname)) == alike(asked(failing[1], ours.certname))
    assert [json.loads(body_of(each, "/report/"))["status"] for each in failing] == ["failed", "failed"]
    lost = exchanges(server, theirs, "--environment", "nowhere", code=1), exchanges(server, ours, "--environment", "nowhere", code=1)
    assert {each.status for found in lost for each in asked(found, "")} == {404}
    for path in ("/nowhere/file_metadatas/plugins", "/nowhere/catalog/", "/nowhere/report/"):
        assert all(any(path in each["target"] for each in found) for found in lost)


# --- what masters answer

NAME = "web1.example.com"
SITE_OF_BOTH = {
    "manifests/site.pp": "node default {\n  include stage\n}\n",
    "modules/stage/manifests/init.pp": """class stage {
  file { '/srv/a': source => 'puppet:///modules/stage/plain.txt', mode => '0640', require => File['/srv'] }
  file { '/srv': ensure => directory }
  notify { "hi ${::greeting}": tag => ['x', 'y'], subscribe => File['/srv/a'], message => ['a', true] }
  @notify { 'virtual': }
  if $::greeting == 'fail' { fail('not today') }
  if $::greeting == 'none' { include nosuch }
  if $::greeting == 'twice' { file { '/srv': } }
  if $::greeting == 'latin' { file { '/latin': content => file('stage/latin') } }
}
define stage::thing ($a, $b = true) { }
""",
    "modules/stage/files/plain.txt": "plain text\n",
    "modules/stage/files/latin": "",
    "modules/stage/files/tree/a": "a\n",
    "modules/stage/files/tree/deep/b": "b\n",
    "modules/stage/lib/facter/from_ruby.rb": "Facter.add(:from_ruby) { setcode { 'hello' } }\n",
}
OPEN = "".join(
    f"path /{each}\nauth any\nmethod find, search, save, destroy\nallow *\n\n"
    for each in ("facts", "status", "resource_type", "certificate_s")
)
DEFAULT, CATALOGS = "pson, yaml, b64_zlib_yaml, raw", "pson, yaml, b64_zlib_yaml, dot, raw"
BUCKET = "/production/file_bucket_file/md5"
HELLO = "5d41402abc4b2a76b9719d911017c592"
REPORT = json.dumps(
    {
        "host": NAME, "time": "2026-11-21T08:12:15.344928207+00:00", "configuration_version": 1, "report_format": 4, "kind": "apply",
        "transaction_uuid": "0b6f6f6e-3c1d-4d8e-9d0a-1f2e3d4c5b6a", "puppet_version": "3.8.5", "status": "unchanged",
        "environment": "production", "logs": [], "metrics": {}, "resource_statuses": {},
    }
).encode()  # fmt: skip


class Question(NamedTuple):
    method: str
    target: str
    accept: str = DEFAULT
    body: bytes = b""
    kind: str = ""


def compile_with(greeting: str, name: str = NAME, target: str = f"/production/catalog/{NAME}") -> Question:
    facts = json.dumps({"name": name, "values": {"greeting": greeting, "clientcert": name}})
    form = f"facts_format=pson&facts={quote_plus(quote_plus(facts))}&transaction_uuid=0b6f6f6e&fail_on_404=true"
    return Question("POST", target, CATALOGS, form.encode(), "application/x-www-form-urlencoded")


def get(target: str, accept: str = DEFAULT) -> Question:
    return Question("GET", f"/production/{target}", accept)


QUESTIONS = [
    compile_with("x"),
    compile_with("latin"),
    compile_with("x", name="other"),
    compile_with("x", "other.example.com", "/production/catalog/other.example.com"),
    compile_with("x", target=f"/nowhere/catalog/{NAME}"),
    get(f"catalog/{NAME}", CATALOGS),
    *(get(f"certificate{each}/none.example.com?", "s") for each in ("", "_request")),
    get("file_metadata/modules/stage/plain.txt?links=manage&source_permissions=use"),
    get("file_metadata/modules/stage/plain.txt?links=manage&checksum_type=sha256"),
    get("file_metadata/modules/stage/none"),
    get("file_metadata/modules/none/x"),
    get("file_metadata/nomount/x"),
    get("file_metadatas/modules/stage/tree?links=manage&recurse=true&checksum_type=md5"),
    get("file_metadatas/plugins?links=manage&recurse=true&ignore=.svn&ignore=CVS&ignore=.git&checksum_type=md5"),
    get("file_metadatas/pluginfacts?links=manage&recurse=true&ignore=.svn&checksum_type=md5"),
    get("file_metadatas/modules/stage/none?recurse=true"),
    get("file_content/modules/stage/plain.txt", "raw"),
    get("file_content/modules/stage/none", "raw"),
    Question("HEAD", f"{BUCKET}/{HELLO}//etc/motd", "s, pson"),
    Question("PUT", f"{BUCKET}/{HELLO}//etc/motd", "s, pson", b"hello", "text/plain"),
    Question("HEAD", f"{BUCKET}/{HELLO}//etc/motd", "s, pson"),
    Question("GET", f"{BUCKET}/{HELLO}", "s, pson"),
    Question("GET", f"{BUCKET}/{'0' * 32}", "s, pson"),
    get(f"file_bucket_file/xyz/{HELLO}", "s, pson"),
    Question("PUT", f"/production/report/{NAME}", "pson, yaml", REPORT, "text/pson"),
    Question("PUT", f"/production/report/{NAME}", "pson, yaml", b"x", "text/bogus"),
    Question("PUT", "/production/report/other.example.com", "pson, yaml", b"{}", "text/pson"),
    Question("PUT", f"/production/facts/{NAME}", "pson", json.dumps({"name": NAME, "values": {"a": "b"}}).encode(), "text/pson"),
    get(f"facts/{NAME}"),
    get("facts_search/search?facts.a=b"),
    get("status/x"),
    *(get(f"resource_type{each}") for each in ("s/*", "/stage", "/none", "s/*?kind=class", "s/*?kind=defined_type")),
    get("certificate_status/none.example.com"),
    get("certificate_statuss/*?for=certificate_request"),
    Question("PUT", f"/production/certificate_status/{NAME}", DEFAULT, b'{"desired_state":"sold"}', "text/pson"),
    Question("PUT", "/production/certificate_status/none.example.com", DEFAULT, b'{"desired_state":"signed"}', "text/pson"),
    Question("DELETE", "/production/certificate_status/none.example.com"),
    Question("GET", f"/prod-x/node/{NAME}"),
    *(get(each) for each in ("bogus/x", "key/x", "catalog/", "catalog")),
    Question("GET", "/production"),
    Question("GET", "/"),
    Question("PUT", "/production/nodes/x", DEFAULT, b"{}", "text/pson"),
    *(get(f"node/{NAME}", each) for each in ("json", "bogus", "")),
    Question("GET", f"/v3/catalog/{NAME}"),
]  # fmt: skip

# The status and the kind of the answer only: the words are those of the language of 4 and later, or of the reader that found the fault.
STATUS_ONLY = [
    *(compile_with(each) for each in ("fail", "none", "twice")),
    get("certificate/ca?", "s"),
    get("certificate_revocation_list/ca?", "s"),
    get(f"node/{NAME}"),
    get(f"node/{NAME}", "yaml"),
    get(f"certificate_status/{NAME}"),
    get("certificate_statuses/x"),
    Question("PUT", f"/production/report/{NAME}", "pson, yaml", b"{nonsense", "text/pson"),
    Question("PUT", f"/production/certificate_request/{NAME}", "s", b"no pem", "text/plain"),
    Question("GET", "/v2.0/environments"),
]


class Answered(NamedTuple):
    status: int
    content_type: str | None
    body: Any


def ask_all(port: int, agent: OtherAgent, questions: list[Question]) -> list[tuple[int, str | None, bytes]]:
    context = ssl.create_default_context(cafile=str(agent.ssl / "certs/ca.pem"))
    context.set_ciphers("ECDHE+AESGCM:kRSA+AES")  # WEBrick has no curves
    context.load_cert_chain(agent.certificate, agent.ssl / f"private_keys/{agent.certname}.pem")
    found = []
    for each in questions:
        connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=60)
        connection.putrequest(each.method, each.target, skip_accept_encoding=True)
        if each.accept:
            connection.putheader("Accept", each.accept)
        if each.body:
            connection.putheader("Content-Type", each.kind)
            connection.putheader("Content-Length", str(len(each.body)))
        connection.endheaders(each.body or None)
        answer = connection.getresponse()
        found.append((answer.status, answer.getheader("content-type"), answer.read()))
        assert re.fullmatch(r"3\.8\.\d", answer.getheader("x-puppet-version") or ""), each.target
        connection.close()
    return found


def comparable(body: bytes, root: Path) -> Any:
    """Without the places of this master, times and versions; sets in one order."""
    text = body.decode("utf-8", "surrogateescape").replace(str(root), "ROOT")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+ ?[+-]\d\d:?\d\d", "TIME", text)
    text = re.sub(r'("version":)(\d+|"3\.8\.\d")', r"\1VERSION", text).replace("VERSION", '"V"')
    text = re.sub(r'"\S+/var/yaml/', '"YAML/', text)
    try:
        return _sorted(json.loads(text))
    except ValueError:
        return text


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted(each) if key in ("tags", "classes") else _sorted(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def test_both_masters_answer_the_same(tmp_path: Path) -> None:
    auth = OPEN + (PUPPET_3.image / "etc/puppet/auth.conf").read_text()
    questions = [*QUESTIONS, *STATUS_ONLY]
    with puppetmaster(tmp_path / "real") as real:
        real.write(dict(SITE_OF_BOTH))
        real.write({"modules/stage/files/latin": "ümläut\n".encode("latin-1")})
        (real.root / "conf/auth.conf").write_text(auth)
        real.start()
        (tmp_path / "theirs").mkdir()
        agent = real.its_agent(tmp_path / "theirs", "web1")
        assert agent.test("--noop").code == 0
        theirs = ask_all(real.port, agent, questions)
    with master(tmp_path / "ours", autosign="true") as running:
        running.write(SITE_OF_BOTH)
        (running.site / "modules/stage/files/latin").write_bytes("ümläut\n".encode("latin-1"))
        (running.root / "conf/auth.conf").write_text(auth)
        running.start()
        agent = agent_of(running, PUPPET_3)
        assert agent.test("--noop").code == 0
        ours = ask_all(running.port, agent, questions)
    roots = real.site.parent, running.root / "conf/code/environments"
    different = []
    for question, their, our in zip(questions, theirs, ours, strict=True):
        text = question not in STATUS_ONLY
        pair = [Answered(one[0], one[1], comparable(one[2], root) if text else None) for one, root in zip((their, our), roots, strict=True)]
        if pair[0] != pair[1]:
            different.append(f"{question.method} {question.target} ({question.accept})\n  theirs: {pair[0]}\n  ours:   {pair[1]}")
    assert not different, "\n".join(different)
