"""The endpoints below /puppet-ca/v1 over a real CA."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from certs import csr
from certs.files.bundles import dump
from certs.keys import KeyKind
from master.endpoints.ca import CaEndpoints
from master.endpoints.limits import MasterLimits
from shared.indirector.core import Indirector
from tests.support.fakes import KnownEnvironments
from tests.support.raw_master import RawClient, RealCa, RunningMaster, master_server, running

CA = "/puppet-ca/v1"


def request_for(name: str) -> bytes:
    return dump([csr.build(KeyKind("ec").generate(), name)])


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[RunningMaster]:
    ca = RealCa(tmp_path)
    ca.issue("puppet")
    ca.administrator("admin")
    service = ca.service()
    server = master_server(
        indirector=Indirector([]),
        environments=KnownEnvironments(),
        trust=ca.trust("puppet"),
        limits=MasterLimits(),
        parts=[CaEndpoints(service, MasterLimits())],
    )
    service.on_revocation.append(server.tls.reload)
    async with running(server, ca) as started:
        yield started
    await service.close()


@pytest.fixture
async def stranger(master: RunningMaster) -> RawClient:
    return await master.client()


@pytest.fixture
async def admin(master: RunningMaster) -> RawClient:
    return await master.client("admin")


async def test_a_stranger_gets_from_request_to_certificate(stranger: RawClient, admin: RawClient) -> None:
    answer = await stranger.ask("GET", f"{CA}/certificate/web1?environment=production", Accept="text/plain")
    assert (answer.status, answer.text, answer.headers["content-type"]) == (404, "Could not find certificate web1", "text/plain")
    pem = request_for("web1")
    answer = await stranger.ask("PUT", f"{CA}/certificate_request/web1?environment=production", pem, Content_Type="text/plain")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"", "text/plain")
    assert (await stranger.ask("GET", f"{CA}/certificate_request/web1")).body == pem
    again = await stranger.ask("PUT", f"{CA}/certificate_request/web1", request_for("web1"))
    assert (again.status, again.text) == (400, "web1 already has a requested certificate; ignoring certificate request")
    status = await admin.ask("GET", f"{CA}/certificate_status/web1")
    assert (status.headers["content-type"], json.loads(status.body)["state"]) == ("application/json", "requested")
    signed = await admin.ask("PUT", f"{CA}/certificate_status/web1", b'{"desired_state":"signed"}')
    assert (signed.status, signed.headers["content-type"]) == (204, "text/plain")  # without a type, clients of 5.x call it an error
    made = x509.load_pem_x509_certificate((await stranger.ask("GET", f"{CA}/certificate/web1")).body)
    assert made.subject.rfc4514_string() == "CN=web1"
    assert (await stranger.ask("GET", f"{CA}/certificate_request/web1")).text == "Could not find certificate_request web1"


async def test_the_plural_of_5x_clients_is_understood_and_ruled_as_the_right_one(stranger: RawClient, admin: RawClient) -> None:
    for name in ("web1", "web2"):
        await stranger.ask("PUT", f"{CA}/certificate_request/{name}", request_for(name))
    await admin.ask("PUT", f"{CA}/certificate_status/web2", b'{"desired_state":"signed"}')
    listed = await admin.ask("GET", f"{CA}/certificate_statuss/*?environment=production")
    assert listed.body == (await admin.ask("GET", f"{CA}/certificate_statuses/*")).body
    both = "certificate&for=certificate_request"
    for kind, names in ((both, {"web1", "web2"}), ("certificate_request", {"web1"}), ("certificate", {"web2"}), ("key", set())):
        listed = await admin.ask("GET", f"{CA}/certificate_statuss/*?environment=production&for={kind}")
        assert {each["name"] for each in json.loads(listed.body)} & {"web1", "web2"} == names
    assert (await admin.ask("GET", f"{CA}/certificate_statuss/*?for=object")).status == 400
    denied = await stranger.ask("GET", f"{CA}/certificate_statuss/*")
    assert (denied.status, denied.text) == (403, (await stranger.ask("GET", f"{CA}/certificate_statuses/*")).text)


@pytest.mark.parametrize(("target", "file"), [("/certificate/ca", "ca_crt.pem"), ("/certificate_revocation_list/ca", "ca_crl.pem")])
async def test_ca_and_crl_are_open_and_not_sent_again_unchanged(stranger: RawClient, tmp_path: Path, target: str, file: str) -> None:
    written = time.time() - 3600
    os.utime(tmp_path / "ca" / file, (written, written))
    answer = await stranger.ask("GET", CA + target)
    assert answer.status == 200
    assert answer.body.startswith(b"-----BEGIN ")
    for known in (
        {"If_Modified_Since": answer.headers["last-modified"]},
        {"If_None_Match": answer.headers["etag"]},
        {"If_None_Match": f'"x", {answer.headers["etag"]}', "If_Modified_Since": formatdate(0, usegmt=True)},
    ):
        unchanged = await stranger.ask("GET", CA + target, **known)
        assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", answer.headers["etag"])
    for other in ({"If_Modified_Since": "Sat, 21 Nov 2020 01:02:30 GMT"}, {"If_None_Match": '"x"'}):
        assert (await stranger.ask("GET", CA + target, **other)).status == 200


async def test_HTTP_21_a_revocation_right_after_another_and_a_date_in_the_future_get_the_new_list(
    master: RunningMaster, stranger: RawClient, admin: RawClient, tmp_path: Path
) -> None:
    crl, path = f"{CA}/certificate_revocation_list/ca", tmp_path / "ca/ca_crl.pem"
    for name in ("web1", "web2"):
        await stranger.ask("PUT", f"{CA}/certificate_request/{name}", request_for(name))
        await admin.ask("PUT", f"{CA}/certificate_status/{name}", b'{"desired_state":"signed"}')
    await admin.ask("PUT", f"{CA}/certificate_status/web1", b'{"desired_state":"revoked"}')
    second = path.stat().st_mtime
    first = await stranger.ask("GET", crl)
    await admin.ask("PUT", f"{CA}/certificate_status/web2", b'{"desired_state":"revoked"}')
    os.utime(path, (second, second))  # the second list, in the same moment as the first
    fast = time.time() + 2 * 86400  # the clock of an agent
    for since in (first.headers.get("last-modified", ""), *(formatdate(each, usegmt=True) for each in (second, second + 1, fast, 4e9))):
        assert (await stranger.ask("GET", crl, If_Modified_Since=since)).status == 200, since
    newer = await stranger.ask("GET", crl, If_None_Match=first.headers["etag"])
    assert (newer.status, len(x509.load_pem_x509_crl(newer.body))) == (200, 2)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("PUT", "/certificate_status/web1", b"", 400, "Empty request body."),
        ("PUT", "/certificate_status/web1", b"x", 400, "Request body is not JSON."),
        ("PUT", "/certificate_status/web1", b"{}", 400, 'Missing required parameter "desired_state"'),
        (
            "PUT",
            "/certificate_status/web1",
            b'{"desired_state":"x"}',
            400,
            "State x invalid; Must specify desired state of 'signed' or 'revoked' for host web1.",
        ),
        ("PUT", "/certificate_status/web1", b'{"desired_state":"signed"}', 404, "Invalid certificate subject."),
        ("GET", "/certificate_status/web1", b"", 404, "Resource not found."),
        ("DELETE", "/certificate_status/web1", b"", 404, "Resource not found."),
        ("GET", "/certificate_statuses", b"", 400, "Missing URL Segment"),
        ("PUT", "/certificate_revocation_list", b"x", 400, "No valid CRLs submitted."),
        ("POST", "/sign", b'{"names":[]}', 422, None),
        ("PUT", "/clean", b'{"certnames":"x"}', 400, None),
        (
            "PUT",
            "/certificate_status/admin",
            b'{"desired_state":"signed"}',
            409,
            "Cannot sign certificate for host admin without a certificate request",
        ),
    ],
)
async def test_the_administrators_mistakes_are_told_as_puppetserver_does(
    admin: RawClient, method: str, path: str, body: bytes, status: int, text: str | None
) -> None:
    answer = await admin.ask(method, CA + path, body, Content_Type="application/json")
    assert answer.status == status, answer
    if text is not None:
        assert answer.text == text


async def test_signing_many_and_cleaning_them(stranger: RawClient, admin: RawClient) -> None:
    for name in ("a", "b"):
        assert (await stranger.ask("PUT", f"{CA}/certificate_request/{name}", request_for(name))).status == 200
    signed = await admin.ask("POST", f"{CA}/sign", b'{"certnames":["a","zz"]}', Content_Type="application/json")
    assert json.loads(signed.body) == {"signed": ["a"], "no-csr": ["zz"], "signing-errors": []}
    assert json.loads((await admin.ask("POST", f"{CA}/sign/all")).body)["signed"] == ["b"]
    states = json.loads((await admin.ask("GET", f"{CA}/certificate_statuses/x?state=signed")).body)
    assert [each["name"] for each in states] == ["a", "admin", "b", "puppet"]
    cleaned = await admin.ask("PUT", f"{CA}/clean", b'{"certnames":["a","zz"]}', Content_Type="application/json")
    assert cleaned.text == 'The following certs do not exist and cannot be revoked: ["zz"]'
    assert (await admin.ask("PUT", f"{CA}/clean", b'{"certnames":["b"]}')).text == "Successfully cleaned all certs."


async def test_an_agent_renews_its_certificate_and_a_stranger_does_not(master: RunningMaster, stranger: RawClient) -> None:
    agent = await master.client("web1")
    before = x509.load_pem_x509_certificate(master.ca.certificate_of("web1").read_bytes())
    renewed = x509.load_pem_x509_certificate((await agent.ask("POST", f"{CA}/certificate_renewal")).body)
    assert renewed.subject == before.subject
    assert renewed.serial_number != before.serial_number
    assert (await stranger.ask("POST", f"{CA}/certificate_renewal")).status == 403


async def test_expirations_are_for_all_with_a_certificate(admin: RawClient, stranger: RawClient) -> None:
    found = json.loads((await admin.ask("GET", f"{CA}/expirations")).body)
    assert set(found) == {"ca-certs", "crls"}
    assert (await stranger.ask("GET", f"{CA}/expirations")).status == 403


async def test_ocsp_answers_by_post_and_get(master: RunningMaster, admin: RawClient) -> None:
    certificate = master.ca.issue("web1")
    asked = ocsp.OCSPRequestBuilder().add_certificate(certificate, master.ca.certificate, SHA1()).build().public_bytes(Encoding.DER)
    posted = await admin.ask("POST", f"{CA}/ocsp", asked, Content_Type="application/ocsp-request")
    assert posted.headers["content-type"] == "application/ocsp-response"
    assert ocsp.load_der_ocsp_response(posted.body).certificate_status is ocsp.OCSPCertStatus.GOOD
    got = await admin.ask("GET", f"{CA}/ocsp/{quote(base64.b64encode(asked).decode(), safe='')}")
    assert ocsp.load_der_ocsp_response(got.body).certificate_status is ocsp.OCSPCertStatus.GOOD


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/certificate_status/web1"),
        ("GET", "/certificate_statuses/x"),
        ("PUT", "/clean"),
        ("POST", "/sign"),
        ("POST", "/sign/all"),
        ("PUT", "/certificate_revocation_list"),
        ("GET", "/certificate_requestX/a"),
        ("GET", "/certificates/x"),
        ("DELETE", "/certificate_request/web1"),
        ("GET", "/nothing"),
    ],
)
async def test_agents_without_the_right_are_denied(master: RunningMaster, method: str, path: str) -> None:
    agent = await master.client("web1")
    answer = await agent.ask(method, CA + path)
    assert answer.status == 403
    assert answer.text == f"Forbidden request: {CA}{path} (method :{method.lower()}). Please see the server logs for details."


async def test_a_revoked_agent_is_refused_on_its_open_connection(master: RunningMaster, admin: RawClient) -> None:
    agent = await master.client("web1")
    assert (await agent.ask("GET", f"{CA}/expirations")).status == 200
    assert (await admin.ask("PUT", f"{CA}/certificate_status/web1", b'{"desired_state":"revoked"}')).status == 204
    answer = await agent.ask("GET", f"{CA}/expirations")
    assert (answer.status, answer.headers["connection"]) == (403, "close")
    assert await agent.ended()
