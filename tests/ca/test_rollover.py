"""`puppet cert rollover`: who signs, what is served and what is refused at each step."""

import io
import json

import pytest
from cryptography import x509

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.service import CaService
from ca.setup.rollover import Rollover, next_name
from certs import certificates, crl, signatures, verify
from certs.files import bundles
from certs.keys import KeyKind
from shared.errors import ConfigError, Conflict
from tests.support.choices import in_gate

FRESH = KeyKind("ec").generate


@pytest.fixture
def started_site(empty_site):
    """A master's CA with a certificate of its own, and one agent's."""
    empty_site.bootstrap()
    return empty_site


@pytest.fixture
def authority(started_site, new_key):
    authority = started_site.open()
    authority.issue("web1", new_key().public_key(), by="t")
    return authority


@pytest.fixture
def rollover(authority, started_site):
    return Rollover(authority, started_site.ssldir, report=started_site.trail.append)


def names(things) -> list[str]:
    return [certificates.name_of(each) for each in things]


def verified(site, certificate, authorities=None) -> bool:
    lists = bundles.revocation_lists(site.files.cacrl.read_bytes())
    bundle = authorities or bundles.certificates(site.files.cacert.read_bytes())
    try:
        verify.verify(certificate, verify.TrustStore(tuple(bundle), lists), now=site.clock.now)
    except verify.NotVerified:
        return False
    return True


def switched(rollover, site):
    rollover.start(FRESH)
    site.clock.pass_(days=2)
    rollover.switch()


def test_start_gives_out_both_and_the_old_one_signs_on(rollover, authority, started_site, new_key) -> None:
    old = authority.certificate
    status = rollover.start(FRESH)
    assert (status.phase, status.signs.subject) == ("started", f"CN={certificates.name_of(old)}")
    assert names(authority.bundle) == [certificates.name_of(old), f"{certificates.name_of(old)} (2)"]
    assert started_site.ssldir.authorities() == authority.bundle
    served = bundles.revocation_lists(authority.crl_pem())
    assert [each.issuer for each in served] == [c.subject for c in authority.bundle]
    made = authority.issue("web2", new_key().public_key(), by="t")
    assert signatures.issued(made, old) and verified(started_site, made)
    assert verified(started_site, made, [old])  # agents that know nothing of the new one


def test_switch_waits_until_agents_have_had_time(rollover, started_site) -> None:
    rollover.start(FRESH)
    started_site.clock.pass_(days=1, hours=23)
    with pytest.raises(Conflict, match="too early"):
        rollover.switch()
    assert rollover.status().phase == "started"
    started_site.clock.pass_(hours=1)
    assert rollover.switch().phase == "switched"


def test_after_the_switch_the_new_one_signs_and_the_old_certificates_stay_valid(rollover, authority, started_site, new_key) -> None:
    old, before = authority.certificate, authority.signed_certificate("web1")
    switched(rollover, started_site)
    made = authority.issue("web2", new_key().public_key(), by="t")
    assert not signatures.issued(made, old) and authority.has_issued(made) and authority.has_issued(before)
    assert verified(started_site, made) and verified(started_site, before) and verified(started_site, started_site.ssldir.certificate())
    assert bundles.certificates(CaService(authority, None).authority_pem())[0] == authority.certificate  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", ["started", "switched"])
def test_a_revocation_holds_whoever_issued_it(rollover, authority, started_site, phase) -> None:
    rollover.start(FRESH)
    if phase == "switched":
        rollover.switch(at_once=True)
    first = authority.signed_certificate("web1")
    authority.revoke("web1", by="t")
    assert first.serial_number in authority.revoked() and not verified(started_site, first)
    lists = bundles.revocation_lists(authority.crl_pem())
    assert all(first.serial_number in crl.serials(each) for each in lists) and len(lists) == 2
    assert len({each.issuer for each in lists}) == 2


def test_what_was_revoked_before_is_on_the_new_ones_list_too(rollover, authority) -> None:
    authority.revoke("web1", by="t")
    before = authority.revoked()
    rollover.start(FRESH)
    rollover.switch(at_once=True)
    assert before and crl.serials(authority.crl()) == before


def test_both_lists_are_signed_again_before_they_end(rollover, authority, started_site) -> None:
    rollover.start(FRESH)
    started_site.clock.pass_(days=5 * 365 - 20)
    authority.refresh_crl_if_due()
    ends = [each.next_update_utc for each in bundles.revocation_lists(authority.crl_pem())]
    assert len(ends) == 2 and all((end - started_site.clock.now).days > 365 for end in ends)


def test_a_running_authority_sees_what_another_process_does(rollover, started_site, new_key) -> None:
    running = started_site.open()
    rollover.start(FRESH)
    assert len(running.bundle) == 2
    rollover.switch(at_once=True)
    made = running.issue("web3", new_key().public_key(), by="t")
    assert made.issuer == rollover.authority.certificate.subject and made.issuer != started_site.ssldir.authorities()[1].subject


def test_an_agent_renews_with_its_old_certificate(rollover, authority, started_site) -> None:
    old = authority.signed_certificate("web1")
    switched(rollover, started_site)
    renewed = authority.renew(old, by="web1")
    assert signatures.issued(renewed, authority.certificate)
    # It did not keep it, and asks again: the same one, and no further serial.
    assert authority.renew(old, by="web1") == renewed


def test_finish_refuses_while_somebody_has_a_certificate_of_the_old_one(rollover, authority, started_site) -> None:
    switched(rollover, started_site)
    with pytest.raises(Conflict, match=r"1 would be locked out.*: web1"):
        rollover.finish()
    assert rollover.status().blocking == ("web1",)
    authority.renew(authority.signed_certificate("web1"), by="web1")
    assert rollover.finish().phase == "none"


def test_the_revoked_and_the_expired_hold_nobody_up(rollover, authority, started_site, new_key) -> None:
    authority.issue("short", new_key().public_key(), ttl=3600, by="t")
    switched(rollover, started_site)
    authority.revoke("web1", by="t")
    rollover.finish()
    assert rollover.status().phase == "none"


def test_after_finish_there_is_one_ca_and_the_master_is_of_it(rollover, authority, started_site, new_key) -> None:
    old, names_before = authority.certificate, certificates.alternative_names(started_site.ssldir.certificate())
    switched(rollover, started_site)
    authority.revoke("web1", by="t")
    rollover.finish()
    own = started_site.ssldir.certificate()
    assert names(authority.bundle) == [f"{certificates.name_of(old)} (2)"] == names(started_site.ssldir.authorities())
    assert [each.issuer for each in bundles.revocation_lists(authority.crl_pem())] == [authority.certificate.subject]
    assert signatures.issued(own, authority.certificate) and certificates.alternative_names(own) == names_before
    assert certificates.authorization_extensions(own)["pp_cli_auth"] == "true"
    assert not authority.has_issued(authority.signed_certificate("web1"))
    (retired,) = started_site.files.cadir.glob("retired-*")
    assert bundles.certificate((retired / "old_crt.pem").read_bytes()) == old and retired.stat().st_mode & 0o777 == 0o700
    again = started_site.bootstrap()  # the next start of the master
    assert again.certificate == authority.certificate and started_site.ssldir.certificate() == own
    rollover.start(FRESH)
    assert names(authority.bundle)[1].endswith("(3)")


def test_the_same_key_needs_no_switch(rollover, authority, started_site, new_key) -> None:
    old, web1 = authority.certificate, authority.signed_certificate("web1")
    started_site.clock.pass_(days=4 * 365)
    status = rollover.start(FRESH, same_key=True)
    assert status.phase == "same-key" and status.blocking == ()
    assert authority.certificate.subject == old.subject and authority.certificate.not_valid_after_utc > old.not_valid_after_utc
    made = authority.issue("web2", new_key().public_key(), by="t")
    assert verified(started_site, made, [old]) and verified(started_site, made, [authority.certificate])
    assert verified(started_site, web1, [authority.certificate])
    with pytest.raises(Conflict, match="nothing to switch"):
        rollover.switch()
    rollover.finish()
    assert authority.bundle == (authority.certificate,) and verified(started_site, web1) and verified(started_site, made)
    assert started_site.bootstrap().certificate == authority.certificate


def test_certificates_that_name_the_issuers_serial_keep_it(rollover, authority, started_site, new_key) -> None:
    old = authority.certificate
    leaf = authority.signed_certificate("web1")
    identifier = x509.AuthorityKeyIdentifier(None, [x509.DirectoryName(old.subject)], old.serial_number)
    builder = x509.CertificateBuilder(
        old.subject, leaf.subject, leaf.public_key(), 77, leaf.not_valid_before_utc, leaf.not_valid_after_utc
    ).add_extension(identifier, critical=False)
    named = builder.sign(authority.key, leaf.signature_hash_algorithm)
    authority.store.save_signed("web1", certificates.pem(named))
    started_site.clock.pass_(days=30)
    rollover.start(FRESH, same_key=True)
    assert authority.certificate.serial_number == old.serial_number and authority.certificate != old


def test_steps_can_be_repeated(rollover, authority, started_site) -> None:
    rollover.start(FRESH)
    before = started_site.snapshot()
    rollover.start(FRESH)
    assert started_site.snapshot() == before
    rollover.switch(at_once=True)
    before = started_site.snapshot()
    rollover.switch()
    assert started_site.snapshot() == before


REFUSED = {
    "switch before start": (lambda r: r.switch(), "No roll-over is under way"),
    "finish before start": (lambda r: r.finish(), "No roll-over is under way"),
    "finish before switch": (lambda r: (r.start(FRESH), r.finish()), "does not sign yet"),
    "the other kind": (lambda r: (r.start(FRESH), r.start(FRESH, same_key=True)), "Another roll-over is under way"),
    "a certificate that ends no later": (lambda r: r.start(FRESH, same_key=True), "no later than the present one"),
    "a name that is taken": (lambda r: r.start(FRESH, name="Puppet CA: master.example.com"), "is called"),
    "a long name": (lambda r: r.start(FRESH, name="x" * 65), "1 to 64 characters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_says_what_can(rollover, name) -> None:
    work, message = REFUSED[name]
    with pytest.raises((Conflict, ConfigError), match=message) as error:
        work(rollover)
    assert error.value.hint or name == "a long name"


def test_an_expired_ca_cannot_hand_over(rollover, started_site) -> None:
    started_site.clock.pass_(days=6 * 365)
    with pytest.raises(Conflict, match="expired on"):
        rollover.start(FRESH)


PLACES = {"start": ("made", "crl", "published"), "switch": ("published", "switched"), "finish": ("own", "alone")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "place"),
    in_gate([(step, place) for step, places in PLACES.items() for place in places], [("start", "crl"), ("finish", "own")]),
)
def test_a_step_that_was_killed_goes_on_where_it_was(started_site, step, place) -> None:
    """At each moment the CA is usable, and the same command brings it to the same end."""
    order = ["start", "switch", "finish"]
    for before in order[: order.index(step)]:
        assert started_site.in_child("rollover", before).returncode == 0
    killed = started_site.in_child("rollover", step, failpoints=f"ca.rollover-{place}=kill")
    assert killed.returncode == -9, killed.stderr
    middle = started_site.open()
    assert middle.has_issued(started_site.ssldir.certificate()) and verified(started_site, started_site.ssldir.certificate())
    if not (step == "finish" and place == "alone" and not (started_site.files.cadir / "rollover").exists()):
        again = started_site.in_child("rollover", step)
        assert again.returncode == 0, again.stderr
    phase = Rollover(started_site.open(), started_site.ssldir).status().phase
    assert phase == {"start": "started", "switch": "switched", "finish": "none"}[step]
    started_site.bootstrap()


@pytest.mark.parametrize(
    ("name", "following"),
    [("Puppet CA", "Puppet CA (2)"), ("Puppet CA (2)", "Puppet CA (3)"), ("x" * 64, "x" * 60 + " (2)"), ("CA (x)", "CA (x) (2)")],
)
def test_the_next_ca_has_the_next_number(name, following) -> None:
    assert next_name(name) == following


def test_the_command_tells_where_it_stands(authority, started_site) -> None:
    place = CaSite(started_site.store(), started_site.ssldir, rules=started_site.rules, generate=FRESH, now=started_site.clock)

    def command(*argv):
        out, err = io.StringIO(), io.StringIO()
        return puppet_cert.cert(["rollover", *argv], place, out=out, err=err), out.getvalue() + err.getvalue()

    assert "No roll-over is under way" in command("status")[1]
    code, text = command("start")
    assert code == 0 and "Next: 'switch', from 2026-11-23 12:00 UTC on" in text
    code, text = command("switch")
    assert code == 24 and "too early" in text
    code, text = command("switch", "--now")
    assert code == 0 and "when these 1 have certificates of the new CA: web1" in text
    code, text = command("status", "--json")
    assert code == 0 and json.loads(text)["blocking"] == ["web1"] and json.loads(text)["phase"] == "switched"
    assert command("finish")[0] == 24
    assert command("jump") == (
        24,
        "Error: rollover takes one of start, status, switch, finish, not 'jump'\n  puppet cert rollover status\n",
    )
