import hashlib

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from certs import fingerprints
from shared.errors import BadRequest


def test_fingerprint_is_upper_case_pairs_of_the_der_digest(ca) -> None:
    wanted = hashlib.sha256(ca.certificate.public_bytes(Encoding.DER)).hexdigest().upper()
    assert fingerprints.fingerprint(ca.certificate).replace(":", "") == wanted
    assert fingerprints.labelled(ca.certificate, "sha1").startswith("(SHA1) ")


def test_an_unknown_digest_is_named_with_the_ones_there_are(ca) -> None:
    with pytest.raises(BadRequest, match="'crc32'") as error:
        fingerprints.fingerprint(ca.certificate, "crc32")
    assert "SHA256" in error.value.hint


def test_a_pinned_fingerprint_matches_with_and_without_colons() -> None:
    assert fingerprints.matches("aabb", "AA:BB")
    assert fingerprints.matches("aa:bb", "AA:BB")
    assert not fingerprints.matches("", "AA:BB")
    assert not fingerprints.matches("aabc", "AA:BB")
