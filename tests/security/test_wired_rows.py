"""Rows that need the whole master: its own termini, CA and compiler behind the rules, as raw requests over TLS."""

from __future__ import annotations

import hashlib
import json
import ssl
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from certs import csr, keys
from certs.bundles import dump
from certs.keys import KeyKind
from master.testing import RawAnswer, RawClient
from master.wiring import Master, running
from shared import plainyaml
from shared.settings import MasterSettings, load

pytestmark = pytest.mark.slow

V3 = "/puppet/v3"
ENV = "?environment=production"
FORM = "application/x-www-form-urlencoded"
CANARY = "canary-5f2c"


@dataclass(slots=True)
class Site:
    """A whole master in a folder, and agents that have enrolled with it."""

    root: Path
    settings: MasterSettings
    master: Master
    open: list[RawClient] = field(default_factory=list)

    async def client(self, name: str | None = None) -> RawClient:
        """A connection as `name`, which is enrolled first when it must be; anonymous without one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.settings.cadir / "ca_crt.pem")
        if name is not None:
            certificate, key = self.root / f"{name}.pem", self.root / f"{name}.key"
            if not certificate.exists():
                await self.enrol(name)
            context.load_cert_chain(certificate, key)
        made = await RawClient.connect(self.master.port, context, server="localhost")
        self.open.append(made)
        return made

    async def enrol(self, name: str) -> None:
        key = KeyKind("ec").generate()
        stranger = await self.client()
        request = dump([csr.build(key, name)])
        assert (await stranger.ask("PUT", f"/puppet-ca/v1/certificate_request/{name}", request, Content_Type="text/plain")).status == 200
        keys.save(self.root / f"{name}.key", key)
        (self.root / f"{name}.pem").write_bytes((await stranger.ask("GET", f"/puppet-ca/v1/certificate/{name}")).body)

    async def catalog(
        self, client: RawClient, name: str, facts: dict[str, object], *, named: str = "", environment: str = "production"
    ) -> RawAnswer:
        document = json.dumps({"name": named or name, "values": facts})
        body = f"facts_format=application%2Fjson&facts={quote_plus(quote(document, safe=''))}".encode()
        return await client.ask("POST", f"{V3}/catalog/{name}?environment={environment}", body, Content_Type=FORM)

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the CA and of the stores, by path."""
        roots = [self.settings.cadir, self.settings.vardir]
        return {str(p): p.read_bytes() for root in roots for p in root.rglob("*") if p.is_file() and "code_cache" not in p.parts}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    environments = tmp_path / "conf" / "code" / "environments"
    for name, text in {
        "production/manifests/site.pp": """
            node 'agent2' { notify { 'canary-5f2c': } }
            node default { notify { "${trusted['certname']} ${facts['colour']}": } if $facts['role'] { include $facts['role'] } }
        """,
        "production/modules/open/files/a..b": "dots\n",
        "production/modules/open/manifests/init.pp": "class open { notify { 'opened': } }",
        "secret/manifests/site.pp": f"notify {{ '{CANARY}': }}",
        "secret/modules/hidden/lib/facter/x.py": f"# {CANARY}\n",
        "secret/modules/hidden/files/x": CANARY,
    }.items():
        (environments / name).parent.mkdir(parents=True, exist_ok=True)
        (environments / name).write_text(text)
    (tmp_path / "outside").write_text(CANARY)
    classifier = tmp_path / "enc"
    classifier.write_text("#!/bin/sh\nprintf 'environment: production\\nclasses: []\\n'\n")
    classifier.chmod(0o755)
    flags = {
        "confdir": str(tmp_path / "conf"), "vardir": str(tmp_path / "var"), "rundir": str(tmp_path / "run"),
        "logdir": str(tmp_path / "log"),
        "certname": "localhost", "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0",
        "node_terminus": "exec", "external_nodes": str(classifier), "compile_workers": "1",
    }  # fmt: skip
    settings = load(MasterSettings, section="master", flags=flags)
    async with running(settings) as master:
        made = Site(tmp_path, settings, master)
        try:
            yield made
        finally:
            for client in made.open:
                await client.close()


async def test_CA_02_a_name_escaped_twice_is_refused_and_nothing_is_read_or_written(site: Site) -> None:
    client = await site.client()
    before = site.snapshot()
    for key in ("%252e%252e%252fetc%252fx", "%25%32%65%25%32%65", "..%252fprivate_keys%252flocalhost", "%2e%2e%2fprivate_keys%2flocalhost"):
        for target in (f"/puppet-ca/v1/certificate_request/{key}", f"/production/certificate_request/{key}"):
            for method, body in (("GET", b""), ("PUT", b"x")):
                answer = await client.ask(method, target, body, Content_Type="text/plain")
                assert answer.status in (400, 404), (method, target, answer)
                assert b"PRIVATE KEY" not in answer.body
    assert site.snapshot() == before


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "certificate_status/{name}", b""),
        ("PUT", "certificate_status/{name}", b'{"desired_state":"revoked"}'),
        ("DELETE", "certificate_status/{name}", b""),
        ("GET", "certificate_statuses/any", b""),
        ("PUT", "clean", b'{"certnames":["agent2"]}'),
        ("POST", "sign", b'{"certnames":["agent2"]}'),
        ("POST", "sign/all", b""),
        ("PUT", "certificate_revocation_list", b"x"),
    ],
)
async def test_CA_20_an_agent_may_not_manage_certificates(site: Site, method: str, target: str, body: bytes) -> None:
    await site.enrol("agent2")
    client = await site.client("agent1")
    before = site.snapshot()
    answers = []
    for name in ("agent1", "agent2", "never-seen"):
        answer = await client.ask(method, "/puppet-ca/v1/" + target.format(name=name), body, Content_Type="application/json")
        answers.append((answer.status, answer.text.replace(name, "NAME")))
    assert {status for status, _ in answers} == {403} and len(set(answers)) == 1, answers
    legacy = target.format(name="agent2")
    if legacy.startswith("certificate_status"):
        assert (await client.ask(method, f"/production/{legacy}", body, Content_Type="text/pson")).status == 403
    assert site.snapshot() == before


async def test_ACL_02_and_03_identity_is_the_certificates_whatever_the_facts_say(site: Site) -> None:
    client = await site.client("agent1")
    forged = {
        "colour": "blue", "clientcert": "agent2", "fqdn": "agent2", "hostname": "agent2", "certname": "agent2",
        "trusted": {"certname": "agent2"}, "server_facts": {"servername": "x"}, "environment": "secret", "facts": {"colour": "forged"},
    }  # fmt: skip
    wrong = await site.catalog(client, "agent1", forged, named="agent2")
    assert wrong.status == 400 and CANARY not in wrong.text
    assert not (site.settings.yamldir / "facts").exists()
    answer = await site.catalog(client, "agent1", forged)
    assert answer.status == 200, answer.text
    titles = [each["title"] for each in json.loads(answer.body)["resources"] if each["type"] == "Notify"]
    assert titles == ["agent1 blue"]
    assert json.loads(answer.body)["environment"] == "production"


async def test_the_canary_is_there_for_whom_it_is_meant(site: Site) -> None:
    """So that its absence in the other rows means something."""
    answer = await site.catalog(await site.client("agent2"), "agent2", {})
    assert CANARY in answer.text


async def test_ACL_09_the_classifiers_environment_wins_over_the_agents(site: Site) -> None:
    client = await site.client("agent1")
    node = await client.ask("GET", f"{V3}/node/agent1?environment=secret")
    assert json.loads(node.body)["environment"] == "production"
    catalog = await site.catalog(client, "agent1", {"colour": "x"}, environment="secret")
    assert catalog.status == 200 and CANARY not in catalog.text
    assert json.loads(catalog.body)["environment"] == "production"


@pytest.mark.parametrize("role", ["../../x", "::", "a b", "::..::..::outside", "/etc/passwd", "a" * 10_000, "open\n"])
async def test_ACL_11_a_fact_as_class_name_opens_no_file_elsewhere(site: Site, role: str) -> None:
    client = await site.client("agent1")
    answer = await site.catalog(client, "agent1", {"colour": "x", "role": role})
    assert answer.status == 500, answer.text
    assert CANARY not in answer.text and "Evaluation Error" in answer.text
    assert (await site.catalog(client, "agent1", {"colour": "x", "role": "open"})).status == 200


@pytest.mark.parametrize(
    "key",
    [
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "file:///etc/passwd",
        "modules&/x",
        "../x",
        "%2e%2e/outside",
        "unknown/x",
        "modules/open/..%2f..%2f..%2foutside",
    ],
)
async def test_FS_02_only_mounts_are_served(site: Site, key: str) -> None:
    client = await site.client("agent1")
    for kind in ("file_content", "file_metadata", "file_metadatas"):
        for target in (f"{V3}/{kind}/{key}{ENV}", f"/production/{kind}/{key}"):
            answer = await client.ask("GET", target)
            assert answer.status in (400, 404), (target, answer)
            assert CANARY.encode() not in answer.body and b"root:" not in answer.body


async def test_FS_01_a_name_that_merely_has_dots_is_served(site: Site) -> None:
    client = await site.client("agent1")
    assert (await client.ask("GET", f"{V3}/file_content/modules/open/a..b{ENV}")).body == b"dots\n"


async def test_FB_01_nothing_that_a_client_says_moves_the_bucket(site: Site) -> None:
    client = await site.client("agent1")
    body = b"kept"
    digest = hashlib.sha256(body).hexdigest()
    elsewhere = site.root / "elsewhere"
    elsewhere.mkdir()
    target = f"{V3}/file_bucket_file/sha256/{digest}/etc/x{ENV}&bucket_path={elsewhere}"
    assert (await client.ask("PUT", target, body, Content_Type="application/octet-stream")).status == 200
    assert list(elsewhere.iterdir()) == []
    assert (await client.ask("GET", f"{V3}/file_bucket_file/sha256/{digest}{ENV}&bucket_path=/etc")).body == body
    refused = await client.ask("GET", f"{V3}/file_bucket_file/https://127.0.0.1:1/x{ENV}")
    assert refused.status == 400


def report(host: str = "agent1", **changes: object) -> bytes:
    data = {
        "host": host, "time": "2026-11-21T00:00:00.000000000+00:00", "configuration_version": 1, "report_format": 12,
        "puppet_version": "7.23.0",
        "status": "unchanged", "environment": "production", "logs": [], "metrics": {}, "resource_statuses": {},
        "transaction_completed": True,
        "noop": False, "noop_pending": False, "corrective_change": False,
    }  # fmt: skip
    return json.dumps({**data, **changes}).encode()


async def test_RPT_02_what_is_stored_of_nodes_is_not_for_everybody(site: Site) -> None:
    client = await site.client("agent1")
    assert (await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(), Content_Type="application/json")).status == 200
    assert (await site.catalog(client, "agent1", {"colour": "x"})).status == 200
    stored = [p for root in (site.settings.reportdir, site.settings.yamldir) for p in [root, *root.rglob("*")]]
    assert len([p for p in stored if p.is_file()]) >= 3
    for path in stored:
        assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0, path


@pytest.mark.parametrize(
    "changes",
    [
        {"time": "9999-12-31T23:59:59Z"}, {"time": "1970-01-01T00:00:00Z"}, {"time": "not a time"}, {"status": "unheard-of"}, {"status": 5},
        {"report_format": 99}, {"report_format": "x"},
        {"metrics": {"time": {"name": "time", "label": "Time", "values": [["total", "Total", -5]]}}},
        {"metrics": []}, {"logs": "x"}, {"unknown_field": {"a": 1}}, {"resource_statuses": {"File[/x]": {"title": "/x"}}}, {"host": None},
        {"resource_statuses": {f"Notify[{i}]": {} for i in range(5000)}},
    ],
)  # fmt: skip
async def test_RPT_03_an_odd_report_is_stored_or_refused_and_named_by_our_clock(site: Site, changes: dict[str, object]) -> None:
    client = await site.client("agent1")
    answer = await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(**changes), Content_Type="application/json")
    assert answer.status in (200, 400), answer.text
    folder = site.settings.reportdir / "agent1"
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    assert len(names) == (1 if answer.status == 200 else 0)
    assert all(not name.startswith(("9999", "1970")) for name in names)
    assert (await client.ask("GET", "/status/v1/simple")).text == "running"


async def test_RPT_04_messages_are_stored_as_they_were_sent(site: Site) -> None:
    client = await site.client("agent1")
    text = "<script>alert(1)</script> \x1b[31mred =cmd()|' \u202eright to left\nsecond line"
    line = {
        "level": "notice",
        "message": text,
        "source": "Puppet",
        "tags": ["notice"],
        "time": "2026-11-21T00:00:00Z",
        "file": None,
        "line": None,
    }
    assert (await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(logs=[line]), Content_Type="application/json")).status == 200
    (path,) = (site.settings.reportdir / "agent1").iterdir()
    assert plainyaml.loads(path.read_bytes())["logs"][0]["message"] == text


async def test_HTTP_18_an_anonymous_status_names_no_host(site: Site) -> None:
    client = await site.client()
    for target in ("/status/v1/simple", "/status/v1/services", "/status/v1/services?level=debug"):
        answer = await client.ask("GET", target)
        assert "localhost" not in answer.text and str(site.root) not in answer.text
        assert "aiohttp" not in json.dumps(answer.headers).lower() and "python" not in json.dumps(answer.headers).lower()


async def test_TLS_02_a_revoked_agent_is_refused_on_the_connection_it_has(site: Site) -> None:
    client = await site.client("agent1")
    assert (await client.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200
    status = site.master.indirector.certificate_status
    wish = status.indirection.model.from_data({"desired_state": "revoked"}).model_copy(update={"name": "agent1"})
    await status.save(wish)
    assert (await client.ask("GET", f"{V3}/node/agent1{ENV}")).status == 403
    assert await client.ended()
    with pytest.raises((ssl.SSLError, OSError, EOFError)):
        again = await site.client("agent1")
        await again.ask("GET", f"{V3}/node/agent1{ENV}")
