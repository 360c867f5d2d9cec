import subprocess
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import crl
from tests.support.steps import steps_in


def test_a_new_list_is_empty_with_number_zero(ca, now) -> None:
    assert crl.number_of(ca.crl) == 0
    assert crl.serials(ca.crl) == frozenset()
    assert ca.crl.is_signature_valid(ca.certificate.public_key())


@pytest.mark.parametrize("hours", [1, 0, -1, -23])
def test_R_28_a_list_made_just_now_is_taken_by_a_clock_that_is_put_back(ca, now, tmp_path, hours: int) -> None:
    agent = ca.leaf("agent1", now=now)
    revised = crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=[5])
    for name, made in (("ca", ca.certificate), ("crl", revised), ("agent", agent)):
        (tmp_path / f"{name}.pem").write_bytes(made.public_bytes(Encoding.PEM))
    argv = ["openssl", "verify", "-crl_check", "-attime", str(int((now + timedelta(hours=hours)).timestamp()))]
    argv += [part for option in ("-CAfile ca.pem", "-CRLfile crl.pem") for part in option.split()]
    done = subprocess.run([*argv, "agent.pem"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_revised_list_keeps_all_entries_and_raises_the_number(ca, now) -> None:
    first = crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=[5, 3])
    later = now + timedelta(days=1)
    second = crl.successor_of(first, ca.certificate, ca.key, now=later, add=[5, 9])
    assert crl.number_of(second) == 2
    assert sorted(r.serial_number for r in second) == [3, 5, 9]
    five = second.get_revoked_certificate_by_serial_number(5)
    assert five is not None
    assert five.revocation_date_utc == now  # the first revocation stands
    assert five.extensions.get_extension_for_class(x509.CRLReason).value.reason == x509.ReasonFlags.key_compromise


def test_a_list_is_due_thirty_days_before_its_end(ca) -> None:
    end = ca.crl.next_update_utc
    assert end is not None
    assert not crl.is_due(ca.crl, end - timedelta(days=31))
    assert crl.is_due(ca.crl, end - timedelta(days=30))
    assert crl.is_due(ca.crl, end + timedelta(days=1))


@pytest.mark.slow
def test_ten_thousand_entries_are_revised_in_a_few_steps_each(ca, now) -> None:
    many = crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=range(2, 10_002))
    revised = []
    steps = steps_in(lambda: revised.append(crl.successor_of(many, ca.certificate, ca.key, now=now, add=[20_000])))
    assert len(crl.serials(revised[0])) == 10_001
    assert steps < 5 * 10_000
