"""Debian's puppet agent 7.23 while our CA is replaced: it refreshes CRLs, but fetches no CA certificate anew."""

import os
from pathlib import Path

import pytest

from certs.files import bundles
from tests.support.processes import MasterProcess, RealAgent, has_real_puppet, master

pytestmark = [
    pytest.mark.works_with("CAs and certificate commands of Puppet", "agents while the CA is replaced"),
    pytest.mark.interop,
    pytest.mark.slow,
]

NAME = "web1.example.com"


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not has_real_puppet():
        pytest.fail("Debian's puppet-agent is not installed: apt-get install puppet-agent")


@pytest.fixture
def running(tmp_path: Path):
    with master(tmp_path / "master", autosign="true") as process:
        process.write({"manifests/site.pp": "node default { notify { 'applied': } }\n"})
        yield process.start()


def agent_of(running: MasterProcess, name: str = NAME) -> RealAgent:
    root = running.root.parent / name
    root.mkdir()
    return RealAgent(root, running.port, name)


def step(running: MasterProcess, *words: str) -> None:
    done = running.puppet("cert", "rollover", *words)
    assert done.code == 0, done.text
    running.until_trust_is_read()


def applied(agent: RealAgent, *options: str) -> None:
    done = agent.test(*options)
    assert done.code == 2 and "applied" in done, done.text


def served(running: MasterProcess, agent: RealAgent) -> None:
    """What an administrator hands to agents that fetch no CA: both files, as the CA has them."""
    for name, target in (("ca_crt.pem", "certs/ca.pem"), ("ca_crl.pem", "crl.pem")):
        (agent.ssl / target).write_bytes((running.ca / name).read_bytes())


def issuer_of(agent: RealAgent) -> str:
    return bundles.certificate((agent.ssl / "certs" / f"{agent.certname}.pem").read_bytes()).issuer.rfc4514_string()


def test_it_works_on_through_every_phase(running: MasterProcess) -> None:
    agent = agent_of(running)
    applied(agent)
    step(running, "start")
    os.utime(agent.ssl / "crl.pem", (0, 0))
    applied(agent, "--crl_refresh_interval", "1d")  # gets a CRL of a CA that it does not know
    assert len(bundles.revocation_lists((agent.ssl / "crl.pem").read_bytes())) == 2
    served(running, agent)
    applied(agent)

    step(running, "switch", "--now")
    applied(agent)
    newcomer = agent_of(running, "newcomer.example.com")  # gets both with its first run
    applied(newcomer)
    applied(newcomer)
    assert issuer_of(newcomer).endswith("(2)") and not issuer_of(agent).endswith("(2)")

    refused = running.puppet("cert", "rollover", "finish")
    assert refused.code == 24 and f"certificates are of the old CA: {NAME}" in refused, refused.text
    assert running.puppet("cert", "clean", NAME).code == 0
    assert agent.puppet("ssl", "clean").code == 0
    running.until_trust_is_read()
    applied(agent)
    assert issuer_of(agent).endswith("(2)")

    step(running, "finish")
    applied(agent)
    applied(newcomer)
    assert running.stop() == 0
    running.start()
    applied(agent)
    applied(agent_of(running, "last.example.com"))


def test_one_that_was_given_nothing_works_until_finish(running: MasterProcess) -> None:
    agent = agent_of(running)
    applied(agent)
    step(running, "start")
    applied(agent)
    step(running, "switch", "--now")
    applied(agent)
    assert running.puppet("cert", "rollover", "finish").code == 24


def test_the_same_key_with_later_dates_needs_nothing_of_it(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true", ca_ttl="1y") as process:
        process.write({"manifests/site.pp": "node default { notify { 'applied': } }\n"})
        process.start()
        agent = agent_of(process)
        applied(agent)
        process.settings["ca_ttl"] = "5y"
        step(process, "start", "--same-key")
        applied(agent)
        newcomer = agent_of(process, "newcomer.example.com")
        applied(newcomer)
        step(process, "finish")
        applied(agent)
        served(process, agent)
        applied(agent)
        applied(newcomer)
