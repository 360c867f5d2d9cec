"""
Conversations of Puppet 3.8.7 replayed byte by byte: its agent's requests to our master, its master's answers to our agent.

The bytes are those of the protocol reference, sections 2, 3 and 12, and hold without any Puppet on the machine; the real 3.8.5 is asked in
tests/interop/test_exchange_3_8.py and its neighbours.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from certs import csr
from certs.files.bundles import dump
from certs.keys import KeyKind
from shared.data import plainyaml
from tests.e2e.bodies_3_8 import CATALOG, METADATA, NODE, PSON_REPORT, ROOT, UUID, YAML_REPORT
from tests.support.fake_server import Ask, Reply
from tests.support.pair import NAME, Pair, client_of
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.scripted_master import NAME as SCRIPTED
from tests.support.scripted_master import Scripted

pytestmark = [pytest.mark.slow, pytest.mark.works_with("HTTP exchanges, compared message by message", "3.8.5, replayed")]

DEFAULT = "pson, yaml, b64_zlib_yaml, raw"
CATALOGS = "pson, yaml, b64_zlib_yaml, dot, raw"
FACTS = {"name": NAME, "values": {"greeting": "a b+c%d", "kernel": "Linux", "clientcert": NAME, "clientversion": "3.8.7"}}
MANIFEST = """
node default {
  notify { "${::greeting} of ${::clientversion}": }
  if $::greeting == 'fail' { fail('not today') }
}
"""
AUTH = f"""
path /certificate_status
auth yes
method find, search, save, destroy
allow {NAME}

path /facts
auth yes
method find, search, save, destroy
allow {NAME}
"""


class Agent38:
    """A 3.8 agent's connection: its headers, in its order."""

    def __init__(self, client: RawClient) -> None:
        self.client = client

    async def __call__(self, method: str, target: str, accept: str, body: bytes = b"", kind: str = "") -> RawAnswer:
        head = (
            f"{method} {target} HTTP/1.1\r\nAccept: {accept}\r\nAccept-Encoding: identity\r\nUser-Agent: Ruby\r\nHost: localhost:8140\r\n"
        )
        if kind:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        await self.client.send(head.encode() + b"\r\n" + body)
        answer = await self.client.answer(head=method == "HEAD")
        assert answer.headers["x-puppet-version"] == "3.8.7"
        if 200 <= answer.status < 300 and method != "HEAD":
            assert answer.headers["content-type"]  # without one 3.8 cannot parse the answer
        return answer


def form(facts: dict[str, Any], format: str = "pson") -> bytes:
    """A catalog request's form: the facts are escaped, and escaped again by the form."""
    text = json.dumps(facts, separators=(",", ":"))
    if format == "b64_zlib_yaml":
        text = base64.b64encode(zlib.compress(plainyaml.dumps(facts))).decode()
    return f"facts_format={format}&facts={quote_plus(quote_plus(text))}&transaction_uuid={UUID}&fail_on_404=true".encode()


@pytest.fixture
async def agent38(tmp_path: Path) -> AsyncIterator[tuple[Pair, Agent38]]:
    pair = Pair(tmp_path, manifest=MANIFEST, flags={"scheme": "a"})
    (tmp_path / "auth.conf").write_text(AUTH)
    async with pair.mastered(rest_authconfig=str(tmp_path / "auth.conf"), digest_algorithm="md5"):
        await pair.run()
        client = await client_of(pair)
        yield pair, Agent38(client)
        await client.close()


Started = tuple[Pair, Agent38]


async def test_the_bootstrap_of_3_8_is_answered_with_pem_texts(agent38: Started) -> None:
    pair, ask = agent38
    ca = (pair.root / "master/ssl/ca/ca_crt.pem").read_bytes()
    for target, expected in (
        ("/production/certificate/ca?fail_on_404=true", ca),
        ("/production/certificate/ca?", ca),
        (f"/production/certificate/{NAME}?", (pair.root / f"master/ssl/ca/signed/{NAME}.pem").read_bytes()),
        ("/production/certificate_revocation_list/ca?", (pair.root / "master/ssl/ca/ca_crl.pem").read_bytes()),
    ):
        answer = await ask("GET", target, "s")
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, "text/plain", expected)
    missing = await ask("GET", "/production/certificate/other.test?", "s")
    assert (missing.status, missing.text) == (404, "Not Found: Could not find certificate other.test")
    again = await ask(
        "PUT", f"/production/certificate_request/{NAME}?", "s", ca.replace(b"CERTIFICATE", b"CERTIFICATE REQUEST"), "text/plain"
    )
    assert again.status == 400 and "\n" not in again.text


async def test_the_node_comes_wrapped_with_its_parameters(agent38: Started) -> None:
    _, ask = agent38
    answer = await ask("GET", f"/production/node/{NAME}?transaction_uuid={UUID}&fail_on_404=true", DEFAULT)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/pson")
    assert answer.body.startswith(b'{"document_type":"Node","data":{"name":"agent1.test","environment":"production","parameters":{')
    assert json.loads(answer.body)["data"]["parameters"]["clientcert"] == NAME
    as_yaml = await ask("GET", f"/production/node/{NAME}?", "yaml")
    assert as_yaml.headers["content-type"] == "text/yaml"


@pytest.mark.parametrize("way", ["post pson", "get pson", "get b64_zlib_yaml", "post yaml"])
async def test_a_catalog_is_compiled_with_facts_of_every_form(agent38: Started, way: str) -> None:
    _, ask = agent38
    method, format = way.split()
    if format == "yaml":
        text = quote_plus(quote_plus(plainyaml.dumps(FACTS).decode()))
        body = f"facts_format=yaml&facts={text}&transaction_uuid={UUID}&fail_on_404=true".encode()
    else:
        body = form(FACTS, format)
    target = f"/production/catalog/{NAME}"
    if method == "post":
        assert format == "yaml" or body.startswith(b"facts_format=pson&facts=%257B%2522name%2522%253A%2522agent1.test%2522%252C%2522values")
        answer = await ask("POST", target, CATALOGS, body, "application/x-www-form-urlencoded")
    else:
        answer = await ask("GET", f"{target}?{body.decode()}", CATALOGS)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/pson"), answer.text
    assert answer.body.startswith(b'{"document_type":"Catalog","data":{')
    assert answer.body.endswith(b',"metadata":{"api_version":1}}')
    data = json.loads(answer.body)["data"]
    assert data["name"] == NAME and isinstance(data["version"], int)
    assert not {"catalog_uuid", "catalog_format", "code_id", "metadata"} & set(data)
    resources = [f"{each['type']}[{each['title']}]" for each in data["resources"]]
    assert resources[:3] == ["Stage[main]", "Class[Settings]", "Class[main]"]
    assert resources[-1] == "Notify[a b+c%d of 3.8.7]"
    assert {"source": "Stage[main]", "target": "Class[main]"} in data["edges"]
    assert all("kind" not in each and each["exported"] is False for each in data["resources"])


async def test_files_come_with_decimal_modes_and_md5_sums(agent38: Started) -> None:
    _, ask = agent38
    answer = await ask("GET", "/production/file_metadata/modules/stage/plain.txt?links=manage&source_permissions=use", DEFAULT)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/pson")
    assert answer.body.startswith(b'{"document_type":"FileMetadata","data":{"path":"')
    data = json.loads(answer.body)
    assert data["metadata"] == {"api_version": 1}
    assert list(data["data"]) == ["path", "relative_path", "links", "owner", "group", "mode", "checksum", "type", "destination"]
    assert data["data"]["mode"] == 0o644
    assert data["data"]["checksum"] == {"type": "md5", "value": "{md5}" + hashlib.md5(b"plain\n").hexdigest()}
    searched = await ask("GET", "/production/file_metadatas/plugins?links=manage&recurse=true&ignore=.svn&ignore=CVS", DEFAULT)
    entries = json.loads(searched.body)
    assert [each["document_type"] for each in entries] == ["FileMetadata"] * len(entries)
    assert entries[0]["data"]["relative_path"] == "." and entries[0]["data"]["checksum"]["type"] == "ctime"
    content = await ask("GET", "/production/file_content/modules/stage/plain.txt?", "raw")
    assert (content.headers["content-type"], content.body) == ("application/x-raw", b"plain\n")


async def test_the_bucket_takes_md5_and_gives_text(agent38: Started) -> None:
    pair, ask = agent38
    value = hashlib.md5(b"hello").hexdigest()
    target = f"/production/file_bucket_file/md5/{value}//etc/motd?"
    assert (await ask("HEAD", target, "s, pson")).status == 404
    stored = await ask("PUT", target, "s, pson", b"hello", "text/plain")
    assert (stored.status, stored.body) == (200, b"")
    assert (await ask("HEAD", target, "s, pson")).status == 200
    assert (await ask("HEAD", f"/production/file_bucket_file/md5/{value}/etc/motd?", "s, pson")).status == 200
    assert (await ask("HEAD", f"/production/file_bucket_file/md5/{value}/etc/other?", "s, pson")).status == 404
    fetched = await ask("GET", f"/production/file_bucket_file/md5/{value}?", "s, pson")
    assert (fetched.headers["content-type"], fetched.body) == ("text/plain", b"hello")
    (kept,) = (pair.root / "master/var/bucket").rglob(value)
    assert (kept / "contents").read_bytes() == b"hello"
    other = await ask("HEAD", "/production/file_bucket_file/sha1/0000?", "s, pson")
    assert other.status == 400


@pytest.mark.parametrize("form_of", ["pson", "yaml"])
async def test_a_report_is_stored_in_the_form_of_3_8(agent38: Started, form_of: str) -> None:
    pair, ask = agent38
    before = len(pair.reports())
    body, kind = (PSON_REPORT, "text/pson") if form_of == "pson" else (YAML_REPORT, "text/yaml")
    for path in pair.reports():
        path.unlink()
    answer = await ask("PUT", f"/production/report/{NAME}?", "pson, yaml", body.encode(), kind)
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "text/pson", b'["store"]')
    assert before == 1
    (path,) = pair.reports()
    assert path.read_bytes().startswith(b"--- !ruby/object:Puppet::Transaction::Report")
    report = plainyaml.loads(path.read_bytes(), aliases=True)
    assert (report["host"], report["report_format"], report["kind"], report["status"]) == (NAME, 4, "apply", "changed")
    assert report["metrics"]["resources"]["values"] == [["total", "Total", 20]]
    event = report["resource_statuses"]["File[/srv/a]"]["events"][0]
    assert (event["property"], event["desired_value"], event["status"]) == ("ensure", "file", "success")
    assert report["logs"][0]["level"] in ("notice", ":notice")


async def test_certificate_status_is_found_searched_and_refused(agent38: Started) -> None:
    _, ask = agent38
    found = await ask("GET", f"/production/certificate_status/{NAME}?", DEFAULT)
    status = json.loads(found.body)
    assert (found.headers["content-type"], status["name"], status["state"]) == ("text/pson", NAME, "signed")
    assert set(status) == {"name", "state", "fingerprint", "fingerprints", "dns_alt_names"}
    assert set(status["fingerprints"]) == {"default", "SHA1", "SHA256", "SHA512"}
    for plural in ("certificate_statuses", "certificate_statuss"):
        listed = await ask("GET", f"/production/{plural}/no_key?", DEFAULT)
        assert [each["name"] for each in json.loads(listed.body)] == [NAME, "localhost"]
    for kind, names in (("certificate", [NAME, "localhost"]), ("certificate_request", []), ("key", [])):
        listed = await ask("GET", f"/production/certificate_statuss/*?for={kind}", DEFAULT)
        assert [each["name"] for each in json.loads(listed.body)] == names
    assert (await ask("GET", "/production/certificate_statuss/*?for=object", DEFAULT)).status == 400
    for body, text in (
        ('{"desired_state":"sold"}', "State sold invalid; Must specify desired state of 'signed' or 'revoked' for host web9.test"),
        ('{"desired_state":"signed"}', "Cannot sign for host web9.test without a certificate request"),
        ('{"desired_state":"revoked"}', "Cannot revoke host web9.test because has it doesn't have a signed certificate"),
    ):
        refused = await ask("PUT", "/production/certificate_status/web9.test?", DEFAULT, body.encode(), "text/pson")
        assert (refused.status, refused.headers["content-type"], refused.text) == (400, "text/plain", text)


async def test_a_certificate_is_revoked_and_destroyed_by_its_status(agent38: Started) -> None:
    pair, ask = agent38
    request = dump([csr.build(KeyKind("ec").generate(), "web9.test")])
    assert (await ask("PUT", "/production/certificate_request/web9.test?", "s", request, "text/plain")).status == 200
    target = "/production/certificate_status/web9.test?"
    signed = pair.root / "master/ssl/ca/signed/web9.test.pem"
    assert signed.exists()
    answer = await ask("PUT", target, DEFAULT, b'{"desired_state":"revoked"}', "text/pson")
    assert answer.status == 200
    assert json.loads((await ask("GET", target, DEFAULT)).body)["state"] == "revoked"
    gone = await ask("DELETE", target, DEFAULT)
    assert gone.status == 200 and json.loads(gone.body).startswith("Deleted for web9.test: Puppet::SSL::Certificate")
    assert not signed.exists()
    assert json.loads((await ask("DELETE", target, DEFAULT)).body) == "Nothing was deleted"


async def test_facts_are_saved_searched_and_destroyed(agent38: Started) -> None:
    _, ask = agent38
    saved = await ask("PUT", f"/production/facts/{NAME}?", "pson", json.dumps(FACTS).encode(), "text/pson")
    assert saved.status == 200 and json.loads(saved.body).endswith(f"/{NAME}.yaml")
    found = json.loads((await ask("GET", f"/production/facts/{NAME}?", DEFAULT)).body)
    assert found["name"] == NAME and found["values"]["greeting"] == "a b+c%d"
    searched = await ask("GET", "/production/facts_search/x?facts.kernel=Linux&facts.greeting.ne=z", DEFAULT)
    assert json.loads(searched.body) == [NAME]
    other = {**FACTS, "name": "other.test"}
    wrong = await ask("PUT", f"/production/facts/{NAME}?", "pson", json.dumps(other).encode(), "text/pson")
    assert wrong.status == 400 and wrong.headers["content-type"] == "text/plain"
    assert (await ask("DELETE", f"/production/facts/{NAME}?", DEFAULT)).body == b"1"
    assert (await ask("DELETE", f"/production/facts/{NAME}?", DEFAULT)).body == b"null"


ERRORS: list[tuple[str, str, str, int, str]] = [
    ("GET", "/prod-x/node/agent1.test?", DEFAULT, 400, "The environment must be purely alphanumeric, not 'prod-x'"),
    ("GET", "/nowhere/node/agent1.test?", DEFAULT, 404, "Not Found: Could not find environment 'nowhere'"),
    ("GET", "/nowhere/certificate/ca?", "s", 404, "Not Found: Could not find environment 'nowhere'"),
    ("GET", "/production/catalog/", CATALOGS, 400, "No request key specified in /production/catalog/"),
    (
        "GET",
        "/production/bogus/x?",
        DEFAULT,
        403,
        "Forbidden request: agent1.test(127.0.0.1) access to /bogu/x [search] authenticated  at :",
    ),
    ("GET", "/production/key/x?", "s", 403, "Forbidden request: agent1.test(127.0.0.1) access to /key/x [find] authenticated  at :"),
    ("PUT", "/production/nodes/x?", DEFAULT, 400, "No support for plurality singular for PUT operations"),
    ("GET", "/production/node/agent1.test?", "json", 406, "Not Acceptable: No supported formats are acceptable (Accept: json)"),
    ("GET", "/production/file_content/modules/stage/none?", "raw", 404, "Not Found: Could not find file_content modules/stage/none"),
    (
        "GET",
        "/production/file_metadatas/modules/no/x?",
        DEFAULT,
        404,
        "Not Found: Could not find instances in file_metadata with 'modules/no/x'",
    ),
    (
        "GET",
        "/production/catalog/other.test?",
        CATALOGS,
        403,
        "Forbidden request: agent1.test(127.0.0.1) access to /catalog/other.test [find] authenticated  at :",
    ),
]


async def test_errors_are_the_sentences_of_3_8_on_one_line(agent38: Started) -> None:
    _, ask = agent38
    for method, target, accept, status, text in ERRORS:
        answer = await ask(method, target, accept, b"{}" if method == "PUT" else b"", "text/pson" if method == "PUT" else "")
        assert (target, answer.status, answer.text, answer.headers["content-type"]) == (target, status, text, "text/plain")


async def test_a_compile_error_is_a_bad_request_with_its_place(agent38: Started) -> None:
    _, ask = agent38
    failing = {**FACTS, "values": {**FACTS["values"], "greeting": "fail"}}  # type: ignore[dict-item]
    answer = await ask("POST", f"/production/catalog/{NAME}", CATALOGS, form(failing), "application/x-www-form-urlencoded")
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")
    assert "not today" in answer.text and "site.pp" in answer.text and answer.text.endswith(f"on node {NAME}") and "\n" not in answer.text
    wrong = await ask(
        "POST", f"/production/catalog/{NAME}", CATALOGS, form({**FACTS, "name": "other.test"}), "application/x-www-form-urlencoded"
    )
    assert wrong.text == f'Catalog for "{NAME}" was requested with fact definition for the wrong node ("other.test").'


# --- a 3.8 master's answers to our agent

LEGACY = {"X-Puppet-Version": "3.8.7"}


def pson(text: str) -> Reply:
    return Reply(body=text.encode(), headers={**LEGACY, "Content-Type": "text/pson"})


def refusal(status: int, message: str) -> Reply:
    return Reply(status, message.encode(), {**LEGACY, "Content-Type": "text/plain"})


def answers_of_3_8(target: Path) -> dict[str, Callable[[Ask], Reply] | Reply]:
    return {
        "/node/": pson(NODE.replace("AGENT", SCRIPTED)),
        "/file_metadatas/": pson(ROOT),
        "/catalog/": pson(CATALOG.replace("AGENT", SCRIPTED).replace("TARGET", str(target))),
        "/file_metadata/": pson(METADATA),
        "/file_content/": Reply(body=b"hello", headers={**LEGACY, "Content-Type": "application/x-raw"}),
        "/report/": pson('["store"]'),
    }


async def test_our_agent_applies_a_3_8_masters_catalog(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    scripted = Scripted(tmp_path, answers_of_3_8(target))
    assert await scripted.run(scheme="a") == 2
    assert target.read_bytes() == b"hello"
    assert scripted.asked() == [
        f"GET /production/node/{SCRIPTED}",
        "GET /production/file_metadatas/pluginfacts",
        "GET /production/file_metadatas/plugins",
        f"POST /production/catalog/{SCRIPTED}",
        "GET /production/file_metadata/modules/demo3/a.txt",
        "GET /production/file_content/modules/demo3/a.txt",
        f"PUT /production/report/{SCRIPTED}",
    ]
    asked = {each.path.split("/")[2]: each for each in scripted.master.asked}
    assert asked["node"].headers["accept"].startswith("pson, yaml, b64_zlib_yaml")
    assert asked["catalog"].headers["accept"].startswith("pson, yaml, b64_zlib_yaml")
    assert asked["catalog"].headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked["file_content"].headers["accept"] == "raw"
    assert asked["catalog"].body.startswith(b"facts_format=pson&facts=%257B%2522name%2522%253A%2522agent.test%2522")
    report = asked["report"]
    assert report.headers["content-type"] == "text/pson"
    sent = json.loads(report.body)
    assert (sent["report_format"], sent["kind"], sent["status"], sent["configuration_version"]) == (4, "apply", "changed", 1795213844)
    assert "catalog_uuid" not in sent and "noop" not in sent
    cached = json.loads(scripted.cached.read_bytes())
    assert cached.get("data", cached)["name"] == SCRIPTED
    assert await scripted.run(scheme="a") == 0


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (
            400,
            "Could not find class nosuch for agent.test at /m/site.pp:1 on node agent.test",
            "Could not retrieve catalog from remote server: Error 400 on SERVER: Could not find class nosuch for agent.test at /m/",
        ),
        (
            403,
            "Forbidden request: agent.test(127.0.0.1) access to /catalog/agent.test [find] authenticated  at :52",
            "Error 403 on SERVER: Forbidden request: agent.test(127.0.0.1) access to /catalog/agent.test [find] authenticated  at :52",
        ),
        (404, "Not Found: Could not find environment 'production'", "Not Found: Could not find environment 'production'"),
    ],
)
async def test_our_agent_shows_a_3_8_masters_refusal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, text: str, said: str
) -> None:
    answers = {**answers_of_3_8(tmp_path / "a.txt"), "/catalog/": refusal(status, text)}
    scripted = Scripted(tmp_path, answers)
    assert await scripted.run(scheme="a", usecacheonfailure=False) == 1
    assert said in caplog.text
    assert not (tmp_path / "a.txt").exists()
