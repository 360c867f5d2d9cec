"""Rows about the certificate with which a master serves: no command takes it away by accident."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.registry import CertificateRegistry
from shared.errors import Conflict
from tests.support.ca_site import Site

NAME = "master.example.com"
CALLS: dict[str, Callable[[CertificateRegistry], object]] = {
    "set_state": lambda registry: registry.set_state(NAME, "revoked", by="t"),
    "clean": lambda registry: registry.clean(["web1", NAME], by="t"),
    "revoke": lambda registry: registry.authority.revoke(NAME, by="t"),
    "revoke_serials": lambda registry: registry.authority.revoke_serials([2, 3], by="t"),
}
COMMANDS = {
    "cert clean": (puppet_cert.cert, ["clean", NAME]),
    "cert revoke": (puppet_cert.cert, ["revoke", NAME]),
    "cert revoke by the serial": (puppet_cert.cert, ["revoke", "0x2"]),
    "cert destroy": (puppet_cert.cert, ["destroy", NAME]),
    "ca destroy": (puppet_cert.ca, ["destroy", NAME]),
    "cert clean --all": (puppet_cert.cert, ["clean", "--all"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_CA_30_no_request_revokes_the_certificate_with_which_the_master_serves(empty_site: Site, call: str) -> None:
    authority = empty_site.bootstrap()
    before = empty_site.snapshot()
    with pytest.raises(Conflict, match=f"This master serves with the certificate of {NAME}"):
        CALLS[call](CertificateRegistry(authority))
    assert empty_site.snapshot() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_CA_30_a_command_that_takes_the_certificate_of_the_master_away_needs_force(
    empty_site: Site, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    empty_site.bootstrap()
    site = CaSite(empty_site.store(), empty_site.ssldir, rules=empty_site.rules, now=empty_site.clock)
    run, words = COMMANDS[command]
    assert run(words, site) != 0
    err = capsys.readouterr().err
    assert "This master serves with the certificate" in err and f"puppet cert clean --force {NAME}" in err
    assert empty_site.open().revoked() == frozenset()
    assert empty_site.ssldir.hostprivkey.exists() and empty_site.ssldir.hostcert.exists()
    assert run([*words, "--force"], site) == 0
    assert empty_site.open().revoked() == {2}
