"""The authorization rows of the attack table, as raw requests over TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_master import RawClient, RunningMaster

V3 = "/puppet/v3"
ENV = "?environment=production"
Shelves = Any
Start = Any
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("other", ["agent2", "never-seen"])
async def test_ACL_01_no_catalog_of_another_node(agent1: RawClient, shelves: Shelves, method: str, other: str) -> None:
    for target in (f"{V3}/catalog/{other}{ENV}", f"/production/catalog/{other}"):
        assert (await agent1.ask(method, target, b"facts=x" if method == "POST" else b"", Content_Type=FORM)).status == 403
    assert shelves.asked == []


async def test_ACL_01_denials_look_alike_whether_the_node_exists(agent1: RawClient) -> None:
    known = await agent1.ask("GET", f"{V3}/catalog/agent2{ENV}")
    unknown = await agent1.ask("GET", f"{V3}/catalog/agent9{ENV}")
    assert known.text.replace("agent2", "X") == unknown.text.replace("agent9", "X")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", f"{V3}/node/agent2{ENV}"),
        ("PUT", f"{V3}/node/agent2{ENV}"),
        ("GET", f"{V3}/nodes/x{ENV}"),
        ("GET", "/production/node/agent2"),
        ("PUT", "/production/node/agent1"),
        ("GET", "/production/nodes/x"),
    ],
)
async def test_ACL_04_no_node_of_another_and_no_search(agent1: RawClient, shelves: Shelves, method: str, target: str) -> None:
    assert (await agent1.ask(method, target, b"{}" if method == "PUT" else b"", Content_Type="application/json")).status == 403
    assert shelves.asked == []


async def test_ACL_05_facts_of_another_are_not_stored(agent1: RawClient, shelves: Shelves) -> None:
    body = b'{"name":"agent2","values":{}}'
    assert (await agent1.ask("PUT", f"{V3}/facts/agent2{ENV}", body, Content_Type="application/json")).status == 403
    assert (await agent1.ask("PUT", f"{V3}/facts/agent1{ENV}", body, Content_Type="application/json")).status == 400
    assert (await agent1.ask("PUT", "/production/facts/agent1", body, Content_Type="text/pson")).status == 403
    assert shelves["facts"].instances == {}


async def test_ACL_06_reports_of_another_are_not_stored(agent1: RawClient, shelves: Shelves) -> None:
    body = b'{"host":"agent2","time":"2026-11-21T00:00:00Z","configuration_version":1,"report_format":12,"puppet_version":"7.23.0",'
    body += b'"status":"unchanged","environment":"production","logs":[],"metrics":{},"resource_statuses":{}}'
    assert (await agent1.ask("PUT", f"{V3}/report/agent2{ENV}", body, Content_Type="application/json")).status == 403
    answer = await agent1.ask("PUT", f"{V3}/report/agent1{ENV}", body, Content_Type="application/json")
    assert answer.status == 400
    assert shelves["report"].instances == {}


@pytest.mark.parametrize(
    "target",
    [
        "/puppet-ca/v1/certificate_requestX/a",
        "/puppet-ca/v1/certificate_request_evil",
        f"{V3}/catalogs/x{ENV}",
        f"{V3}/facts_search/x{ENV}",
        f"{V3}/nodes/x{ENV}",
        f"{V3}/file_contentX/modules/m/a{ENV}",
        "/status/v1/simpleX",
        "/production/catalogs/x",
        "/production/certificate_requestX/a",
        "/production/facts_search/x",
        "/production/file_contented/modules/m/a",
    ],
)
async def test_ACL_07_no_rule_matches_by_bare_prefix(agent1: RawClient, shelves: Shelves, target: str) -> None:
    assert (await agent1.ask("GET", target)).status in (403, 404)
    assert shelves.asked == []


@pytest.mark.parametrize(
    "key", ["agentx1", "agent1%0a", "agent1%0aagent2", "AGENT1", "agent1.", "agent", "agent11", "%61gent1%20", "$1", "[a]", "("]
)
async def test_ACL_08_names_are_compared_as_strings(agent1: RawClient, shelves: Shelves, key: str) -> None:
    for target in (f"{V3}/catalog/{key}{ENV}", f"/production/catalog/{key}"):
        assert (await agent1.ask("GET", target)).status in (400, 403)
    assert shelves.asked == []


async def test_ACL_08_a_dot_in_a_certname_is_a_dot(master: RunningMaster, shelves: Shelves) -> None:
    dotted = await master.client("agent.1")
    assert (await dotted.ask("GET", f"{V3}/catalog/agentx1{ENV}")).status == 403
    assert (await dotted.ask("GET", f"{V3}/catalog/agent.1{ENV}")).status == 404


@pytest.mark.parametrize("name", ["UPPER", "two words", "a/../b", "x" * 64, "agent1\n", "two"])
async def test_ACL_08_a_certificate_whose_name_breaks_the_rule_is_nobodys(master: RunningMaster, shelves: Shelves, name: str) -> None:
    good = name == "x" * 64
    made = master.ca.issue("odd") if good else issue_odd(master, name)
    assert made is not None
    client = await master.client("odd")
    answer = await client.ask("GET", f"{V3}/node/odd{ENV}")
    assert answer.status == (404 if good else 403)


def issue_odd(master: RunningMaster, name: str) -> object:
    """A certificate that our own CA would never sign, made past its checks."""
    from cryptography import x509

    from certs import certificates, keys
    from certs.keys import KeyKind

    ca = master.ca
    key = KeyKind("ec").generate()
    names = ["odd", "agent1"] if name == "two" else [name]
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each) for each in names])
    made = (
        certificates._builder(subject, ca.certificate.subject, key.public_key(), 4242)
        .not_valid_before(ca.now - certificates.BACKDATED)
        .not_valid_after(ca.now + certificates.BACKDATED)
        .sign(ca.key, certificates.digest_for(ca.key))  # type: ignore[attr-defined]
    )
    ca.certificate_of("odd").write_bytes(certificates.pem(made))
    keys.save(ca.key_of("odd"), key)
    return made


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", f"{V3}/resource/user/root{ENV}"),
        ("PUT", f"{V3}/run/x{ENV}"),
        ("PUT", f"{V3}/status/x{ENV}"),
        ("GET", f"{V3}/key/agent1{ENV}"),
        ("GET", "/production/resource/user/root"),
        ("PUT", "/production/run/x"),
        ("PUT", "/production/status/x"),
        ("GET", "/production/key/agent1"),
        ("DELETE", "/puppet-admin-api/v1/environment-cache"),
        ("GET", "/puppet-admin-api/v1/jruby-pool/thread-dump"),
        ("GET", "/metrics/v2/list"),
    ],
)
async def test_ACL_10_closed_doors(agent1: RawClient, shelves: Shelves, method: str, target: str) -> None:
    assert (await agent1.ask(method, target, b"{}" if method == "PUT" else b"", Content_Type="application/json")).status in (403, 404)
    assert shelves.asked == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_strangers_reach_nothing_but_what_is_open(stranger: RawClient, shelves: Shelves, method: str) -> None:
    for name in ("catalog/agent1", "node/agent1", "report/agent1", "facts/agent1", "file_content/modules/m/a", "file_bucket_file/md5/x"):
        for target in (f"{V3}/{name}{ENV}", f"/production/{name}"):
            assert (await stranger.ask(method, target)).status in (403, 405)
    assert shelves.asked == []


async def test_FB_06_and_RPT_01_there_is_no_delete(agent1: RawClient, shelves: Shelves) -> None:
    for name in ("report/agent1", "file_bucket_file/md5/900150983cd24fb0d6963f7d28e17f72"):
        assert (await agent1.ask("DELETE", f"{V3}/{name}{ENV}")).status == 405
    assert shelves.asked == []


@pytest.mark.parametrize("host", ["..", ".", "a/b", "/x", "hello/..", "%2e%2e", "a%2fb", ".hello", "hi.."])
async def test_RPT_01_report_keys_are_certnames(agent1: RawClient, shelves: Shelves, host: str) -> None:
    for target in (f"{V3}/report/{host}{ENV}", f"/production/report/{host}"):
        assert (await agent1.ask("PUT", target, b"{}", Content_Type="application/json")).status in (400, 404)
    assert shelves.asked == []


@pytest.mark.parametrize("key", ["x%0a/etc/passwd", "md5/a%00", "md5/%0d", "y" * 5000])
async def test_FB_04_control_characters_never_reach_the_bucket(agent1: RawClient, shelves: Shelves, key: str) -> None:
    for target in (f"{V3}/file_bucket_file/{key}{ENV}", f"/production/file_bucket_file/{key}"):
        assert (await agent1.ask("PUT", target, b"x", Content_Type="text/plain")).status in (400, 431)
    assert shelves.asked == []


async def test_a_sites_auth_conf_opens_and_closes_doors(start: Start, shelves: Shelves, tmp_path: Path) -> None:
    path = tmp_path / "auth.conf"
    path.write_text("path ~ ^/catalog/([^/]+)$\nallow $1, agent1\npath /node\nallow agent2\npath /\nauth any\n")
    async with start(auth_conf=path) as master:
        client = await master.client("agent1")
        for base, query in ((V3, ENV), ("/production", "")):
            assert (await client.ask("GET", f"{base}/catalog/agent2{query}")).status == 200
            answer = await client.ask("GET", f"{base}/node/agent1{query}")
            assert answer.status == 403
        assert answer.text == "Forbidden request: agent1(127.0.0.1) access to /node/agent1 [find] authenticated  at :3"
