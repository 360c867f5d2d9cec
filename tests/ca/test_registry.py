from datetime import timedelta
from pathlib import Path

import pytest

from ca.policy import PolicyViolation, SigningPolicy
from certs import certificates, csr, oids
from certs.files import bundles
from certs.keys import KeyKind
from shared.errors import BadData, BadRequest, Conflict, NotFound, Unavailable
from shared.wire.dialects import LEGACY, MODERN
from tests.support.ca_site import Site

FILES_ONLY = pytest.mark.parametrize("site", ["folder"], indirect=True)


@pytest.fixture(params=["folder", "database"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A CA in each kind of store."""
    made: Site = Site(tmp_path) if request.param == "folder" else request.getfixturevalue("database_site")
    if request.param == "folder":
        made.create()
    return made


@FILES_ONLY
def test_a_new_ca_has_puppets_files(site) -> None:
    root = site.files.cadir
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.suffix != ".lock") == [
        "ca_crl.pem",
        "ca_crt.pem",
        "ca_key.pem",
        "ca_pub.pem",
        "inventory.txt",
        "requests",
        "serial",
        "signed",
    ]
    assert site.files.serial.read_text() == "0002"
    assert site.files.cert_inventory.read_text() == (
        "0x0001 2026-11-20T12:00:00UTC 2031-11-20T12:00:00UTC /CN=Puppet CA: master.example.com\n"
    )
    assert site.files.cakey.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("announces", "allowed", "ttl", "days"),
    [(True, True, None, 90), (False, True, None, 5 * 365), (True, False, None, 5 * 365), (True, True, 86400, 1)],
)
def test_the_first_certificate_is_short_lived_where_the_agent_renews_it(
    site, pem, announces: bool, allowed: bool, ttl: int | None, days: int
) -> None:
    registry = site.registry(allow_auto_renewal=allowed)
    registry.submit("web1", pem("web1", auto_renew=announces), by="t")
    certificate = registry.sign("web1", by="t", ttl=ttl)
    assert certificate.not_valid_after_utc - site.clock() == timedelta(days=days)


def test_a_signed_request_is_a_certificate_an_inventory_line_and_no_request(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    assert registry.status("web1").state == "requested"
    made = registry.sign("web1", by="t")
    assert (made.serial_number, registry.store.next_serial()) == (2, 3)
    assert str(registry.store.inventory().records[-1]) == "0x0002 2026-11-20T12:00:00UTC 2031-11-20T12:00:00UTC /CN=web1\n"
    assert (registry.store.request("web1"), registry.store.signed("web1")) == (None, certificates.pem(made))
    assert registry.status("web1").state == "signed"


def test_a_duplicate_is_refused_in_each_state_and_allowed_by_the_setting(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    for what, then in (
        ("requested", lambda: registry.sign("web1", by="t")),
        ("signed", lambda: registry.revoke("web1")),
        ("revoked", None),
    ):
        with pytest.raises(BadRequest, match=f"web1 already has a {what} certificate; ignoring certificate request"):
            registry.submit("web1", pem("web1"), by="t")
        if what == "signed":
            registry.authority.revoke("web1", by="t")
        elif then:
            then()
    again = site.registry(allow_duplicate_certs=True)
    again.submit("web1", pem("web1"), by="t")
    assert again.status("web1").state == "requested"
    again.sign("web1", by="t")
    assert again.status("web1").state == "signed"


def test_extensions_and_allowed_names_go_into_the_certificate(site, pem) -> None:
    registry = site.registry()
    attributes = csr.CsrAttributes(extensions={"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.2.1": "rack 7"})
    registry.submit("web1", pem("web1", attributes=attributes, dns_alt_names=["www", "IP:10.0.0.1"]), by="t")
    with pytest.raises(PolicyViolation, match="allow_subject_alt_names") as error:
        registry.sign("web1", by="t")
    assert error.value.legacy.endswith("Use `puppet cert --allow-dns-alt-names sign web1` to sign this request.")
    made = registry.sign("web1", by="t", policy_=SigningPolicy(allow_alternative_names=True))
    assert certificates.trusted_extensions(made) == {"pp_role": "web", "1.3.6.1.4.1.34380.1.2.1": "rack 7"}
    assert certificates.alternative_names(made) == ("DNS:web1", "DNS:www", "IP:10.0.0.1")


def test_a_three_eight_request_with_bare_bytes_is_signed_as_it_is(site) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    key = KeyKind("ec").generate()
    bare = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.1"), b"ED803750-E3C7")
    request = x509.CertificateSigningRequestBuilder().subject_name(csr.common_name("web1")).add_extension(bare, critical=False)
    registry = site.registry()
    registry.submit("web1", bundles.dump([request.sign(key, SHA256())]), by="t")
    assert certificates.trusted_extensions(registry.sign("web1", by="t")) == {"pp_uuid": "ED803750-E3C7"}


def test_authorization_extensions_need_the_setting_and_cli_auth_is_never_given(site, pem) -> None:
    registry = site.registry()
    role = csr.CsrAttributes(extensions={"1.3.6.1.4.1.34380.1.3.13": "admin"})
    registry.submit("web1", pem("web1", attributes=role), by="t")
    with pytest.raises(PolicyViolation, match="authorization extensions"):
        registry.sign("web1", by="t")
    with pytest.raises(BadRequest, match="pp_cli_auth"):
        registry.submit("web2", pem("web2", attributes=csr.CsrAttributes(extensions={oids.CLI_AUTH: "true"})), by="t")
    allowed = SigningPolicy(allow_authorization_extensions=True)
    assert certificates.authorization_extensions(registry.sign("web1", by="t", policy_=allowed)) == {"pp_auth_role": "admin"}


def test_states_are_set_and_wrong_ones_are_said(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    with pytest.raises(BadRequest, match='Missing required parameter "desired_state"'):
        registry.set_state("web1", None, by="t")
    for wrong in ("Signed", ["signed"], {}, 1, ""):
        with pytest.raises(BadRequest, match="Must specify desired state of 'signed' or 'revoked' for host web1"):
            registry.set_state("web1", wrong, by="t")
    for ttl in (-1, 0, "1y", True, 1.5):
        with pytest.raises(BadRequest, match="cert_ttl"):
            registry.set_state("web1", "signed", ttl=ttl, by="t")
    with pytest.raises(Conflict, match="Cannot revoke certificate for host web1 without a signed certificate"):
        registry.set_state("web1", "revoked", by="t")
    with pytest.raises(NotFound, match="Invalid certificate subject") as error:
        registry.set_state("other", "signed", by="t")
    assert error.value.legacy == "Cannot sign for host other without a certificate request"
    made = registry.set_state("web1", "signed", ttl=86400, by="t")
    assert (made.not_valid_after_utc - site.clock.now).total_seconds() == 86400
    with pytest.raises(Conflict, match="Cannot sign certificate for host web1 without a certificate request"):
        registry.set_state("web1", "signed", by="t")
    assert registry.set_state("web1", "revoked", by="t") == [2]
    assert registry.set_state("web1", "revoked", by="t") == [2]
    assert registry.status("web1").state == "revoked"


def test_a_status_has_the_fields_of_its_dialect(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    assert set(registry.status("web1").to_data(LEGACY)) == {"name", "state", "fingerprint", "fingerprints", "dns_alt_names"}
    registry.sign("web1", by="t")
    data = registry.status("web1").to_data(MODERN)
    assert data["subject_alt_names"] == ["DNS:web1"]
    assert (data["serial_number"], data["not_after"]) == (2, "2031-11-20T12:00:00UTC")
    assert set(data["fingerprints"]) == {"default", "SHA1", "SHA256", "SHA512"}


def test_clean_revokes_and_removes_and_names_those_that_never_had_one(site, pem) -> None:
    registry = site.registry()
    for name in ("a", "b"):
        registry.submit(name, pem(name), by="t")
        registry.sign(name, by="t")
    registry.submit("pending", pem("pending"), by="t")
    assert registry.clean(["a", "zz", "b", "pending"], by="t") == ["zz", "pending"]
    assert registry.authority.revoked() == {2, 3}
    assert registry.statuses() == []


def test_pending_requests_are_capped_by_count_and_bytes(site, pem) -> None:
    registry = site.registry(max_pending_requests=2)
    registry.submit("a", pem("a"), by="t")
    registry.submit("b", pem("b"), by="t")
    with pytest.raises(Unavailable, match="2 certificate requests are pending"):
        registry.submit("c", pem("c"), by="t")
    site.registry().store.remove_request("a")
    registry.submit("c", pem("c"), by="t")
    with pytest.raises(Unavailable):
        site.registry(max_pending_requests=100, max_pending_bytes=900).submit("d", pem("d"), by="t")


def test_a_damaged_request_is_ignored_and_may_be_replaced(site, pem) -> None:
    registry = site.registry()
    registry.store.save_request("web1", pem("web1")[:100])
    assert (registry.status("web1"), registry.request("web1"), registry.statuses()) == (None, None, [])
    registry.submit("web1", pem("web1"), by="t")
    assert registry.status("web1").state == "requested"


@FILES_ONLY
def test_reinventory_keeps_lines_whose_certificate_is_gone(site, pem) -> None:
    registry = site.registry()
    for name in ("a", "b"):
        registry.submit(name, pem(name), by="t")
        registry.sign(name, by="t")
    before = site.files.cert_inventory.read_text()
    registry.store.remove_signed("a")
    site.files.cert_inventory.write_text("junk\n" + before.splitlines(keepends=True)[1])
    assert registry.reinventory(by="t") == 3
    assert site.files.cert_inventory.read_text() == before


def test_each_decision_is_one_entry_of_the_audit_trail(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="web1 at 10.0.0.1")
    registry.sign("web1", by="admin")
    registry.authority.revoke("web1", by="admin")
    with pytest.raises(BadData):
        registry.submit("web2", b"junk", by="x")
    trail = [(e["action"], e["name"], e["by"]) for e in site.trail]
    assert trail[1:] == [
        ("request", "web1", "web1 at 10.0.0.1"),
        ("sign", "web1", "admin"),
        ("revoke", "web1", "admin"),
        ("request", "web2", "x"),
    ]
    assert site.trail[2]["serial"] == 2
    assert str(site.trail[-1]["result"]).startswith("refused: ")
