"""The CA through the indirector, in the words of both dialects."""

from __future__ import annotations

import pytest
from cryptography import x509

from certs.files import bundles
from master.termini.ca import CaCertificates, CaCrls, CaOcsp, CaRequests, CaStatuses, NoCa
from shared.errors import BadRequest, Conflict, NotFound
from shared.indirector.core import Binding, request_for
from shared.models.certificate import CERTIFICATE, Certificate
from shared.models.certificate_request import CERTIFICATE_REQUEST, CertificateRequest
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.models.certificate_status import CERTIFICATE_STATUS, CertificateStatus
from shared.models.ocsp import OCSP, key_of
from shared.wire.dialects import LEGACY, MODERN
from tests.support import ocsp_client
from tests.support.ca_site import empty_site, new_key, pem, site

__all__ = ["empty_site", "new_key", "pem", "site"]


@pytest.fixture
async def ca(site):
    made = site.service()
    yield made
    await made.close()


async def test_a_request_becomes_a_certificate_through_the_status(ca, pem) -> None:
    requests, states = Binding(CERTIFICATE_REQUEST, CaRequests(ca)), Binding(CERTIFICATE_STATUS, CaStatuses(ca))
    certificates = Binding(CERTIFICATE, CaCertificates(ca))
    sent = CertificateRequest.from_bytes(pem("web1"))
    assert sent.name == "web1"
    assert await requests.save(sent) is None
    assert (await requests.find("web1")).pem == sent.pem
    assert [each.name for each in await requests.search("x")] == ["web1"]
    wish = CertificateStatus.from_data({"desired_state": "signed"})
    text = await states.save(wish, "web1")
    assert text.encode() == (await certificates.find("web1")).pem
    assert [each.name for each in await certificates.search("x")] == ["web1"]
    assert await states.save(CertificateStatus.from_data({"desired_state": "revoked"}), "web1") == ["2"]
    assert [each.state for each in await states.search("x", state="revoked")] == ["revoked"]
    assert await states.destroy("web1") == "Deleted for web1: Puppet::SSL::Certificate"
    assert await states.destroy("web1") == "Nothing was deleted"
    assert await certificates.find("web1") is None


async def test_the_ca_and_its_list_are_found(ca) -> None:
    found = await Binding(CERTIFICATE, CaCertificates(ca)).find("ca")
    assert Certificate.from_bytes(found.pem).name == "Puppet CA: master.example.com"
    assert bundles.revocation_lists((await Binding(CERTIFICATE_REVOCATION_LIST, CaCrls(ca)).find("ca")).pem)


async def test_refusals_are_in_the_words_of_the_dialect(ca) -> None:
    states = CaStatuses(ca)
    body = CertificateStatus(name="web1", desired_state="signed")
    for dialect, words in ((LEGACY, "Cannot sign for host web1 without a certificate request"), (MODERN, "Invalid certificate subject.")):
        with pytest.raises(NotFound) as error:
            await states.save(request_for("web1", body=body, dialect=dialect))
        assert error.value.message == words


async def test_a_request_for_another_name_is_refused_before_the_ca_sees_it(ca, pem) -> None:
    with pytest.raises(BadRequest, match='Instance name "web2" does not match requested key "web1"'):
        await Binding(CERTIFICATE_REQUEST, CaRequests(ca)).save(CertificateRequest.from_bytes(pem("web2")), "web1")


async def test_ocsp_goes_through_an_indirection_like_any_other(ca, pem) -> None:
    await ca.submit_request("web1", pem("web1"))
    leaf = x509.load_pem_x509_certificate(await ca.set_state("web1", "signed"))
    own = ca.authority.certificate
    found = await Binding(OCSP, CaOcsp(ca)).find(key_of(ocsp_client.build_request(leaf, own)))
    assert ocsp_client.verify_response(found.content, certificate=leaf, issuer=own, now=ca.authority.now()).status == "good"
    with pytest.raises(BadRequest):
        await Binding(OCSP, CaOcsp(ca)).find("no base64!")


async def test_a_master_that_is_no_ca_says_so() -> None:
    with pytest.raises(Conflict, match="not configured as a certificate authority"):
        await Binding(CERTIFICATE, NoCa()).find("ca")
