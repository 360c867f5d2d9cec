import asyncio
import os
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ca.policy import SigningPolicy
from ca.setup.bootstrap import ensure_own_certificate
from certs import csr
from certs.files import bundles
from certs.files.bundles import dump
from shared.client import Client
from shared.errors import BadRequest, NotFound, OutOfSpace, Unavailable
from tests.support import ocsp_client
from tests.support.ca_site import key
from tests.support.waiting import until

ADMIN = Client("admin", "10.0.0.9", True)


async def test_a_request_waits_and_is_signed_on_demand(site, pem) -> None:
    ca = site.service()
    assert await ca.submit_request("web1", pem("web1"), client=Client("10.0.0.5", "10.0.0.5", False)) is False
    assert await ca.certificate("web1") is None
    assert b"CERTIFICATE REQUEST" in (await ca.request("web1") or b"")
    made = await ca.set_state("web1", "signed", client=ADMIN)
    assert made == await ca.certificate("web1")
    assert (await ca.request("web1"), await ca.requests()) == (None, [])
    assert site.trail[-1]["by"] == "admin at 10.0.0.9"
    await ca.close()


async def test_autosign_signs_at_once(site, pem) -> None:
    ca = site.service(autosign=True)
    assert await ca.submit_request("web1", pem("web1")) is True
    assert (await ca.status("web1")).state == "signed"
    await ca.close()


async def test_an_autosigned_request_that_the_policy_refuses_stays_pending_with_the_reason(site, pem) -> None:
    ca = site.service(autosign=True)
    with pytest.raises(BadRequest, match="extra subject alternative names"):
        await ca.submit_request("web1", pem("web1", dns_alt_names=["puppet"]))
    assert (await ca.status("web1")).state == "requested"
    allowed = site.service(autosign=True, policy=SigningPolicy(allow_alternative_names=True))
    assert await allowed.submit_request("web2", pem("web2", dns_alt_names=["www"])) is True
    await ca.close()
    await allowed.close()


async def test_the_same_request_again_asks_autosign_again(site, pem, tmp_path) -> None:
    """The first submission may have been cut off between storing and signing; an agent then sends the same text again."""
    names = tmp_path / "autosign.conf"
    ca = site.service(autosign=names)
    text = pem("web1")
    assert await ca.submit_request("web1", text) is False
    with pytest.raises(BadRequest, match="already has a requested certificate"):
        await ca.submit_request("web1", text)
    names.write_text("# all of them\n*.example.com\nweb1\n")
    with pytest.raises(BadRequest, match="already has a requested certificate"):
        await ca.submit_request("web1", pem("web1"))
    assert await ca.submit_request("web1", text) is True
    await ca.close()


async def test_a_request_for_the_same_that_was_signed_anew_asks_autosign_again(site, new_key, tmp_path) -> None:
    """An agent with an EC key makes another signature each time."""
    names = tmp_path / "autosign.conf"
    ca = site.service(autosign=names)
    key = new_key()
    first, again = (dump([csr.build(key, "web1")]) for _ in range(2))
    other = dump([csr.build(key, "web1", dns_alt_names=["puppet"])])
    assert first != again
    assert await ca.submit_request("web1", first) is False
    names.write_text("web1\n")
    with pytest.raises(BadRequest, match="already has a requested certificate"):
        await ca.submit_request("web1", other)
    assert await ca.submit_request("web1", again) is True
    await ca.close()


async def test_what_a_killed_master_left_undecided_is_decided_at_the_next_start(site, pem, tmp_path) -> None:
    names = tmp_path / "autosign.conf"
    first = site.service(autosign=names)
    for name in ("old", "left", "unlisted"):
        assert await first.submit_request(name, pem(name)) is False
    os.utime(first.store.request_path("old"), (0, 0))
    await first.close()
    names.write_text("old\nleft\n")
    lock = site.files.cadir / "master.lock"
    lock.write_text("99999")
    os.utime(lock, (1000, 1000))
    second = site.service(autosign=names)
    async with second.running():
        # The certificate is there a moment before the trail says so.
        await until(lambda: any(each["by"] == "autosign after a crash" for each in site.trail))
        assert await second.certificate("left") is not None
        assert [await second.certificate(name) for name in ("old", "unlisted")] == [None, None]
        assert site.trail[-1]["by"] == "autosign after a crash"


async def test_after_an_orderly_end_nothing_is_decided_again(site, pem) -> None:
    first = site.service()
    async with first.running():
        assert await first.submit_request("web1", pem("web1")) is False
    second = site.service(autosign=True)
    started: list[str] = []
    second.supervisor.start = lambda name, work: started.append(name)
    async with second.running():
        assert started == []  # neither this task, which asks autosign again, nor another one
        assert await second.certificate("web1") is None


async def test_the_ca_certificate_comes_under_its_own_name(site) -> None:
    ca = site.service()
    assert bundles.certificates(await ca.certificate("ca") or b"") == (ca.authority.certificate,)
    await ca.close()


async def test_listeners_hear_of_a_revocation_before_the_caller_does(site, pem) -> None:
    ca = site.service(autosign=True)
    heard: list[frozenset[int]] = []

    async def listen() -> None:
        heard.append(ca.authority.revoked())

    ca.on_revocation.append(listen)
    await ca.submit_request("web1", pem("web1"))
    assert heard == []
    await ca.set_state("web1", "revoked")
    assert heard == [frozenset({2})]
    await ca.set_state("web1", "revoked")
    assert len(heard) == 1
    await ca.close()


async def test_a_revocation_by_another_process_is_seen(site, pem) -> None:
    ca = site.service(autosign=True)
    await ca.submit_request("web1", pem("web1"))
    site.registry().authority.revoke("web1", by="puppet cert")
    assert (await ca.status("web1")).state == "revoked"
    assert b"X509 CRL" in await ca.crl()
    await ca.close()


async def test_bulk_signing_says_which_went_which_way(site, pem) -> None:
    ca = site.service()
    await ca.submit_request("a", pem("a"))
    await ca.submit_request("b", pem("b", dns_alt_names=["www"]))
    await ca.submit_request("c", pem("c"))
    assert await ca.sign(["a", "b", "zz"], client=ADMIN) == {"signed": ["a"], "no-csr": ["zz"], "signing-errors": ["b"]}
    assert await ca.sign_all(client=ADMIN) == {"signed": ["c"], "no-csr": [], "signing-errors": ["b"]}
    assert await ca.clean(["a", "zz"]) == ["zz"]
    await ca.close()


async def test_renewal_keeps_key_names_and_extensions(site, pem) -> None:
    ca = site.service(autosign=True)
    await ca.submit_request("web1", pem("web1"))
    old = x509.load_pem_x509_certificate(await ca.certificate("web1") or b"")
    new = x509.load_pem_x509_certificate(await ca.renew(old.public_bytes(Encoding.DER)))
    assert (new.subject, new.public_key()) == (old.subject, old.public_key())
    assert new.serial_number == old.serial_number + 1
    assert (new.not_valid_after_utc - site.clock.now).days == 90
    assert await ca.certificate("web1") == new.public_bytes(Encoding.PEM)
    with pytest.raises(BadRequest, match="No valid certificate found in renewal request"):
        await ca.renew(None)
    off = site.service(allow_auto_renewal=False)
    with pytest.raises(NotFound, match="Not Found"):
        await off.renew(old.public_bytes(Encoding.DER))
    await ca.close()
    await off.close()


async def test_expirations_name_the_chain(site) -> None:
    ca = site.service()
    name = "Puppet CA: master.example.com"
    assert await ca.expirations() == {"ca-certs": {name: "2031-11-20T12:00:00UTC"}, "crls": {name: "2031-11-20T12:00:00UTC"}}
    await ca.close()


async def test_ocsp_answers_from_the_records(site, pem) -> None:
    ca = site.service(autosign=True)
    for name in ("a", "b"):
        await ca.submit_request(name, pem(name))
    await ca.set_state("b", "revoked")
    own, now = ca.authority.certificate, site.clock.now
    for name, wanted in (("a", "good"), ("b", "revoked")):
        leaf = x509.load_pem_x509_certificate(await ca.certificate(name) or b"")
        said = ocsp_client.verify_response(await ca.ocsp(ocsp_client.build_request(leaf, own)), certificate=leaf, issuer=own, now=now)
        assert said.status == wanted
    assert x509.ocsp.load_der_ocsp_response(await ca.ocsp(b"junk")).response_status.name == "MALFORMED_REQUEST"
    await ca.close()


async def test_a_full_disk_is_507_and_passes(site, pem, monkeypatch) -> None:
    ca = site.service()
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", "ca.request-written=enospc")
    with pytest.raises(OutOfSpace):
        await ca.submit_request("web1", pem("web1"))
    monkeypatch.delenv("BUNRAKU_FAILPOINTS")
    assert await ca.submit_request("web2", pem("web2")) is False
    await ca.close()


async def test_R_14_a_second_master_is_refused_with_the_owner_named(site) -> None:
    import os

    async with site.service().running():
        with pytest.raises(Unavailable, match=f"process {os.getpid()}"):
            async with site.service().running():
                pass
    async with site.service().running():
        pass


async def test_keep_fresh_signs_the_list_again_and_ends_when_cancelled(site) -> None:
    ca = site.service()
    site.clock.pass_(days=5 * 365 - 29)
    before = await ca.crl()
    task = asyncio.create_task(ca.keep_fresh(every=60))
    await until(lambda: ca.authority.crl_pem() != before)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ca.close()


async def test_keep_fresh_renews_the_masters_own_certificate_with_the_same_key(site) -> None:
    site.rules = replace(site.rules, ca_ttl=365 * 86400)
    site.bootstrap()
    before = x509.load_pem_x509_certificate(site.ssldir.hostcert.read_bytes())
    site.clock.pass_(days=340)
    ca = site.service()
    ca.renew_own = lambda: ensure_own_certificate(ca.authority, site.ssldir, dns_alt_names=(), generate=key)
    task = asyncio.create_task(ca.keep_fresh(every=60))
    await until(lambda: x509.load_pem_x509_certificate(site.ssldir.hostcert.read_bytes()) != before)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ca.close()
    after = x509.load_pem_x509_certificate(site.ssldir.hostcert.read_bytes())
    assert after.serial_number > before.serial_number
    assert after.public_key() == before.public_key()
