"""`puppet ssl` with our own CA: what goes wrong is said, and nothing is removed that is still needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs import keys
from certs.keys import KeyKind
from tests.support.processes import MasterProcess, OurAgent, master

pytestmark = pytest.mark.slow


@pytest.fixture
def running(tmp_path: Path) -> Iterator[MasterProcess]:
    with master(tmp_path / "master", autosign="true", key_type="ec") as process:
        yield process.start()


def agent_of(running: MasterProcess, name: str) -> OurAgent:
    root = running.root.parent / name
    root.mkdir()
    return OurAgent(root, running.port, name)


def test_a_certificate_is_verified_until_it_is_revoked_or_its_key_is_another(running: MasterProcess) -> None:
    agent = agent_of(running, "web1.example.com")
    done = agent.puppet("ssl", "bootstrap")
    assert done.code == 0 and "Completed SSL initialization" in done, done.text
    assert "Verified client certificate 'CN=web1.example.com'" in agent.puppet("ssl", "verify")

    kept = agent.key.read_bytes()
    keys.save(agent.key, KeyKind("ec").generate())
    other = agent.puppet("ssl", "verify")
    assert other.code == 1 and "does not match the agent's private key" in other, other.text
    agent.key.write_bytes(kept)

    running.revoke("web1.example.com")
    assert "The master reports that our certificate is revoked." in agent.test()
    os.utime(agent.ssl / "crl.pem", (1, 1))
    refreshed = agent.puppet("ssl", "bootstrap", "--crl_refresh_interval", "1")
    assert refreshed.code == 1 and "revoked" in refreshed, refreshed.text
    revoked = agent.puppet("ssl", "verify")
    assert revoked.code == 1 and "Certificate 'CN=web1.example.com' is revoked" in revoked, revoked.text


def test_the_cas_own_host_is_not_cleaned_while_the_ca_knows_it(running: MasterProcess) -> None:
    host = OurAgent(running.root, running.port, "localhost", {"confdir": str(running.root / "conf")})
    key = running.root / "conf/ssl/private_keys/localhost.pem"
    refused = host.puppet("ssl", "clean")
    assert refused.code == 1 and "The certificate localhost must be cleaned from the CA first" in refused, refused.text
    assert key.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "An action must be specified"),
        (("sing",), "Unknown action 'sing'"),
        (("verify", "x"), "puppet ssl verify takes 0 arguments, but you gave 1"),
        (("clean", "--target", "router"), "puppet ssl --target is for devices, which are not supported"),
        (("verify",), "The CA certificates are missing from"),
        (("show",), "The client certificate is missing from"),
    ],
)
def test_a_wrong_call_is_one_clear_error(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = OurAgent(tmp_path, 1, "web1.example.com").puppet("ssl", *words)
    assert done.code == 1 and message in done, done.text
    assert "Traceback" not in done
