from datetime import timedelta

import pytest

from certs import ocsp
from shared.errors import BadData, PeerNotTrusted
from tests.support import ocsp_client


def test_a_question_and_its_answer_come_through(ca, now) -> None:
    leaf = ca.leaf("web1", serial=44)
    asked = ocsp.parse_request(ocsp_client.build_request(leaf, ca.certificate, nonce=b"n" * 16))
    assert (asked.serial, asked.nonce) == (44, b"n" * 16)
    assert ocsp.is_issued_by(asked, ca.certificate)
    good = ocsp.build_response(asked, "good", authority=ca.certificate, key=ca.key, now=now)
    assert ocsp_client.verify_response(good, certificate=leaf, issuer=ca.certificate, now=now, nonce=b"n" * 16).status == "good"
    revoked = ocsp.build_response(asked, "revoked", authority=ca.certificate, key=ca.key, now=now, revoked_at=now - timedelta(hours=3))
    said = ocsp_client.verify_response(revoked, certificate=leaf, issuer=ca.certificate, now=now)
    assert (said.status, said.revoked_at) == ("revoked", now - timedelta(hours=3))


def test_an_answer_is_not_believed_from_another_key_about_another_certificate_or_out_of_date(ca, stranger, now) -> None:
    leaf = ca.leaf("web1", serial=44)
    asked = ocsp.parse_request(ocsp_client.build_request(leaf, ca.certificate, nonce=b"a" * 16))
    forged = ocsp.build_response(asked, "good", authority=stranger.certificate, key=stranger.key, now=now)
    genuine = ocsp.build_response(asked, "good", authority=ca.certificate, key=ca.key, now=now)
    for response, certificate, when, nonce in (
        (forged, leaf, now, None),
        (genuine, ca.leaf("web2", serial=45), now, None),
        (genuine, leaf, now + timedelta(hours=2), None),
        (genuine, leaf, now - timedelta(hours=1), None),
        (genuine, leaf, now, b"b" * 16),
    ):
        with pytest.raises(PeerNotTrusted):
            ocsp_client.verify_response(response, certificate=certificate, issuer=ca.certificate, now=when, nonce=nonce)


def test_another_authority_is_told_apart(ca, stranger) -> None:
    asked = ocsp.parse_request(ocsp_client.build_request(ca.leaf("web1"), ca.certificate))
    assert not ocsp.is_issued_by(asked, stranger.certificate)


def test_a_refusal_and_junk_are_bad_data(ca, now) -> None:
    leaf = ca.leaf("web1")
    for response in (ocsp.build_refusal("unauthorized"), b"junk"):
        with pytest.raises(BadData):
            ocsp_client.verify_response(response, certificate=leaf, issuer=ca.certificate, now=now)
    with pytest.raises(BadData):
        ocsp.parse_request(b"junk")
    with pytest.raises(BadData):
        ocsp.parse_request(b"0" * 20000)
