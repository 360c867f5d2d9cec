"""What a master has on disk, looked at from outside: is all of it whole?"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509

from ca.storage import inventory
from certs import crl, signatures
from certs.files import bundles
from shared.data import plainyaml


def issued(ca: Path) -> dict[str, int]:
    """The serial of each certificate in signed/ of a CA's folder; all of them whole."""
    return {path.stem: x509.load_pem_x509_certificate(path.read_bytes()).serial_number for path in (ca / "signed").glob("*.pem")}


def revoked(ca: Path) -> set[int]:
    """The serials on the CRL, whose signature is good."""
    (found,) = bundles.revocation_lists((ca / "ca_crl.pem").read_bytes())
    assert signatures.crl_is_genuine(found, x509.load_pem_x509_certificate((ca / "ca_crt.pem").read_bytes()))
    return set(crl.serials(found))


def odd_of_ca(ca: Path) -> Iterator[str]:
    """A serial used twice or that will be, a certificate that is not on record or that openssl does not take."""
    records = list(inventory.inventory_entries((ca / "inventory.txt").read_text()))
    for serial, times in Counter(record.serial for record in records).items():
        if times > 1:
            yield f"the serial {serial} was given out {times} times"
    following = int((ca / "serial").read_text(), 16)
    if max(record.serial for record in records) >= following:
        yield f"the next serial, {following}, was given out already"
    for name, serial in issued(ca).items() - {(record.name, record.serial) for record in records}:
        yield f"{name} has a certificate {serial} which is not in the inventory"
    signed = sorted((ca / "signed").glob("*.pem"))
    for start in range(0, len(signed), 500):
        argv = ["openssl", "verify", "-CAfile", str(ca / "ca_crt.pem"), *map(str, signed[start : start + 500])]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"openssl does not take certificates of signed/: {done.stderr[-400:]}"


def check_ca(ca: Path) -> None:
    assert list(odd_of_ca(ca)) == []


def check_facts_and_reports(var: Path, name: str) -> None:
    """What is stored of an agent is whole."""
    facts = plainyaml.loads((var / "yaml" / "facts" / f"{name}.yaml").read_bytes(), aliases=True)
    assert facts["name"] == name
    for path in (var / "reports" / name).glob("*.yaml"):
        assert plainyaml.loads(path.read_bytes(), aliases=True)["host"] == name


def temporary_files(*folders: Path) -> list[Path]:
    """What a write that was not finished has left below these."""
    return [Path(place, name) for folder in folders for place, _, names in os.walk(folder) for name in names if name.endswith(".tmp")]
