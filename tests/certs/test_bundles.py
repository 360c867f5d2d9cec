import pytest

from certs.files import bundles
from shared.errors import BadData, TooLarge


def test_all_certificates_of_a_bundle_are_read_in_order(ca, stranger) -> None:
    text = b"# our CA\n" + bundles.dump([ca.certificate, stranger.certificate]) + b"trailing words\n"
    assert bundles.certificates(text) == (ca.certificate, stranger.certificate)


def test_other_blocks_are_passed_over(ca) -> None:
    both = bundles.dump([ca.crl, ca.certificate])
    assert bundles.certificates(both) == (ca.certificate,)
    assert [c.issuer for c in bundles.revocation_lists(both)] == [ca.crl.issuer]


@pytest.mark.parametrize("cut", [5, 20, 40, 200, -2, -28])
def test_a_cut_off_bundle_is_refused_and_not_read_as_a_shorter_one(ca, cut: int) -> None:
    one = bundles.dump([ca.certificate])
    with pytest.raises(BadData):
        bundles.certificates(one + one[:cut] if cut not in (5,) else one[:cut])


def test_a_block_that_is_not_base64_is_refused(ca) -> None:
    with pytest.raises(BadData, match="not base64"):
        bundles.certificates(b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")


def test_limits_of_bytes_and_blocks_hold(ca) -> None:
    one = bundles.dump([ca.certificate])
    with pytest.raises(TooLarge):
        bundles.blocks(one, bundles.CERTIFICATE, max_bytes=len(one) - 1)
    with pytest.raises(TooLarge):
        bundles.blocks(one * 3, bundles.CERTIFICATE, max_blocks=2)


def test_a_text_without_a_certificate_says_so() -> None:
    with pytest.raises(BadData, match="no certificate"):
        bundles.certificates(b"hello")
