"""The CA's rows of names: one common name, as it was asked for, that keeps the rule."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type

from certs import certificates
from certs.files import bundles
from shared.errors import BadName, BadRequest, Conflict
from tests.support.ca_site import refused, request

HOSTILE_NAMES = [
    "../../etc/cron.d/x", "../private_keys/master", "..", "./x", "a\\b", "c:\\x", "%2e%2e%2fetc%2fx", "/etc/x",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_CA_01_CA_02_keys_that_climb_read_and_write_nothing(site, name: str) -> None:
    refused(site, name, request("web1"))
    registry = site.registry()
    for ask in (registry.status, registry.request, registry.authority.store.signed, lambda n: registry.delete(n, by="x")):
        with pytest.raises(BadRequest):
            ask(name)


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "..", "a/b"])
def test_CA_03_a_subject_that_climbs_is_stored_under_no_name(site, name: str) -> None:
    refused(site, "good", request(name), "does not match")


@pytest.mark.parametrize("name", ["", ".", "..", "-rf", "--help", " a", "a ", "a\n", "a\0b", "a\t", "a..b", "a.-b", "a-"])
def test_CA_04_names_that_break_the_rule_are_refused(site, name: str) -> None:
    refused(site, name, request("a"))


@pytest.mark.parametrize("name", ["_x._tcp.example.com", "a.example.com", "x"])
def test_CA_04_names_that_keep_the_rule_are_accepted(site, name: str) -> None:
    site.registry().submit(name, request(name), by="t")


@pytest.mark.parametrize("name", ["Agent.Example.COM", "ägent", "аgent", "agent․example", "ａｇｅｎｔ"])
def test_CA_05_names_are_never_folded_into_another(site, name: str) -> None:
    refused(site, name, request(name))
    refused(site, "agent", request(name))


@pytest.mark.parametrize("name", ["web\x08\x08\x08db", "web\x1b[2K\rdb", "web\u202edb"])
def test_CA_06_control_characters_are_refused_and_shown_escaped_when_they_are_on_disk(site, name: str) -> None:
    import io

    from ca.commands import puppet_cert
    from ca.commands.site import CaSite

    refused(site, "web", request(name), "does not match")
    (site.files.csrdir / f"{name}.pem").write_bytes(request(name))
    out, err = io.StringIO(), io.StringIO()
    place = CaSite(site.store(), site.ssldir, rules=site.rules, now=site.clock, report=site.trail.append)
    assert puppet_cert.cert(["list"], place, out=out, err=err) == 0
    assert out.getvalue().isascii()
    assert "\x1b" not in out.getvalue()
    assert "\\u{" in out.getvalue()
    assert puppet_cert.cert(["sign", name], place, out=out, err=err) == puppet_cert.FAILED
    assert site.open().revoked() == frozenset()
    assert site.files.serial.read_text() == "0002"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a" * 60 + "-.", "is not valid"), ("a-" * 5000, "is longer than 64 characters"), ("1a-" * 22000, "is longer than 64 characters")],
)
def test_CA_07_judging_a_name_is_cheap(site, name: str, reason: str) -> None:
    """A pattern would try all ways to divide the first one; of the others nothing but the length is looked at."""
    with pytest.raises(BadName, match=reason):
        site.registry().submit(name, b"", by="t")


def test_CA_08_a_request_for_another_name_is_refused_naming_both(site) -> None:
    error = refused(site, "web1", request("web2"))
    assert "web1" in error.message
    assert "web2" in error.message
    assert error.legacy == 'CSR subject common name "web2" does not match expected certname "web1"'
    with pytest.raises(Conflict):
        site.registry().sign("web1", by="t")


def names(*values: str, oid=x509.NameOID.COMMON_NAME, kind: _ASN1Type | None = None) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value, _type=kind) for value in values])


@pytest.mark.parametrize(
    "subject",
    [
        names("web1", "admin"),
        names("admin", "web1"),
        x509.Name([x509.RelativeDistinguishedName([*names("web1"), *names("o", oid=x509.NameOID.ORGANIZATION_NAME)])]),
        x509.Name([*names("web1"), *names("o", oid=x509.NameOID.ORGANIZATION_NAME)]),
        x509.Name([]),
        names("web1", kind=_ASN1Type.BMPString),
        names("web1", kind=_ASN1Type.T61String),
        names("web1\0"),
    ],
    ids=["two", "two-reversed", "multi-valued", "more", "none", "bmp", "t61", "nul"],
)
def test_CA_09_there_is_exactly_one_common_name_in_a_usual_string(site, subject: x509.Name) -> None:
    refused(site, "web1", request(subject))


@pytest.mark.filterwarnings("ignore:Attribute's length")
@pytest.mark.parametrize("length", [65, 255, 10_000])
def test_CA_10_a_name_that_is_too_long_is_refused_at_submission(site, length: int) -> None:
    name = "a" * length
    refused(site, name, request(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name, _validate=False)])))


def test_CA_11_an_address_is_an_opaque_name(site) -> None:
    registry = site.registry()
    registry.submit("10.0.0.5", request("10.0.0.5"), by="10.9.9.9")
    made = registry.sign("10.0.0.5", by="t")
    assert certificates.alternative_names(made) == ("DNS:10.0.0.5",)


@pytest.mark.parametrize("name", ["ca", "master.example.com"])
def test_CA_12_reserved_names_are_refused(site, name: str) -> None:
    refused(site, name, request(name), "reserved")


def test_CA_13_a_request_that_was_changed_or_signed_by_another_key_is_not_stored(site) -> None:
    good = x509.load_pem_x509_csr(request("web1")).public_bytes(Encoding.DER)
    changed = bytearray(good)
    changed[-1] ^= 1
    other = bytes(good).replace(b"web1", b"web2")
    for name, der in (("web1", bytes(changed)), ("web2", other)):
        refused(site, name, bundles.dump([x509.load_der_x509_csr(der)]), "does not correspond to the signing key")
