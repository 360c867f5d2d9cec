"""Rows about serial numbers: no certificate gets one that another has had, whatever somebody does to the CA's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from ca.registry import CertificateRegistry
from ca.storage.serials import LARGEST_SERIAL
from shared.errors import Conflict
from tests.support.ca_site import Site
from tests.support.wired_site import WiredSite

Pem = Callable[..., bytes]


def sign(registry: CertificateRegistry, pem: Pem, *names: str) -> list[int]:
    """Sign a new certificate for each name; returns their serials."""
    for name in names:
        registry.submit(name, pem(name), by="t")
    return [registry.sign(name, by="t").serial_number for name in names]


def back_up(*paths: Path) -> Callable[[], None]:
    """Returns a function that puts back the content that the files have now, as an administrator does with an old back-up."""
    contents = {path: path.read_bytes() for path in paths}

    def restore() -> None:
        for path, content in contents.items():
            path.write_bytes(content)

    return restore


RESTORED = {
    "serial": lambda files: [files.serial],
    "serial and inventory": lambda files: [files.serial, files.cert_inventory],
    "serial, inventory and CRL": lambda files: [files.serial, files.cert_inventory, files.cacrl],
}


@pytest.mark.parametrize("restart", [False, True], ids=["while it runs", "before a start"])
@pytest.mark.parametrize("restored", RESTORED)
def test_CA_26_files_from_an_old_back_up_give_no_serial_twice(
    site: Site, pem: Pem, caplog: pytest.LogCaptureFixture, restored: str, restart: bool
) -> None:
    registry = site.registry()
    sign(registry, pem, "a1", "a2")
    restore = back_up(*RESTORED[restored](site.files))
    before = sign(registry, pem, *(f"b{number}" for number in range(5)))
    restore()
    if restart:
        registry = site.registry()
    assert sign(registry, pem, "c1", "c2") == [before[-1] + 1, before[-1] + 2]
    assert "used already" in caplog.text


@pytest.mark.slow
def test_CA_26_what_another_process_issued_counts_although_serial_and_inventory_went_back(site: Site, pem: Pem) -> None:
    running = site.registry()
    first = sign(running, pem, "a1")[0]
    restore = back_up(site.files.serial, site.files.cert_inventory)
    assert site.in_child("many", "x", "3").returncode == 0
    restore()
    assert sign(running, pem, "a2") == [first + 4]


def test_CA_26_a_cleaned_certificate_counts_by_the_revocation_list(site: Site, pem: Pem) -> None:
    registry = site.registry()
    restore = back_up(site.files.serial, site.files.cert_inventory)
    last = sign(registry, pem, "a1", "a2")[-1]
    registry.clean(["a1", "a2"], by="t")
    restore()
    assert sign(site.registry(), pem, "a3") == [last + 1]


def test_CA_26_serials_beyond_64_bits_are_not_given_twice_either(site: Site, pem: Pem) -> None:
    site.files.serial.write_text(f"{2**100:X}")
    registry = site.registry()
    restore = back_up(site.files.serial)
    issued = sign(registry, pem, "a1", "a2")
    restore()
    assert sign(site.registry(), pem, "a3") == [issued[-1] + 1]


def test_CA_26_a_file_that_is_ahead_is_followed(site: Site, pem: Pem, caplog: pytest.LogCaptureFixture) -> None:
    registry = site.registry()
    sign(registry, pem, "a1")
    site.files.serial.write_text("0100")
    assert sign(registry, pem, "a2") == [0x100]
    assert caplog.text == ""


@pytest.mark.parametrize("number", [LARGEST_SERIAL + 1, int("FF" * 20, 16), int("FF" * 400, 16)])
def test_CA_27_the_end_of_the_range_is_a_clear_error_and_the_request_stays(site: Site, pem: Pem, number: int) -> None:
    registry = site.registry()
    sign(registry, pem, "a1")
    registry.submit("a2", pem("a2"), by="t")
    site.files.serial.write_text(f"{number:X}")
    with pytest.raises(Conflict, match="no serial number left") as error:
        registry.sign("a2", by="t")
    assert str(site.files.serial) in error.value.hint and len(str(error.value)) < 1000
    status = registry.status("a2")
    assert status is not None and status.state == "requested"


def test_CA_27_the_last_number_of_the_range_is_given_out(site: Site, pem: Pem) -> None:
    site.files.serial.write_text(f"{LARGEST_SERIAL:X}")
    registry = site.registry()
    assert sign(registry, pem, "a1") == [LARGEST_SERIAL]
    assert isinstance(registry.authority.signed_certificate("a1"), x509.Certificate)
    with pytest.raises(Conflict):
        sign(registry, pem, "a2")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/puppet-ca/v1/certificate_request/web1", "/production/certificate_request/web1"])
async def test_CA_28_a_stranger_gets_no_path_of_the_master_when_its_files_are_broken(
    wired: WiredSite, pem: Pem, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    (wired.settings.cadir / "serial").write_text("")
    stranger = await wired.client()
    answer = await stranger.ask("PUT", target, pem("web1"), Content_Type="text/plain")
    assert answer.status == 500
    assert "incident" in answer.text.lower() and str(wired.root) not in answer.text and "serial" not in answer.text
    assert str(wired.settings.cadir / "serial") in caplog.text, "the administrator must find the reason in the log"
