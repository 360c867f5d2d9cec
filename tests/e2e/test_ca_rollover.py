"""A CA replaced under a master that runs and agents that go on with their runs."""

import os
import time
from pathlib import Path

import pytest

from certs import certificates, signatures
from certs.files import bundles
from tests.support.pair import NAME
from tests.support.processes import MasterProcess, OurAgent, master

pytestmark = pytest.mark.slow

DAY = 86400
REFRESHING = {"ca_refresh_interval": "1d", "crl_refresh_interval": "1d"}
RENEWING = {**REFRESHING, "hostcert_renewal_interval": "10y"}


@pytest.fixture
def running(tmp_path: Path):
    with master(tmp_path / "master", autosign="true", key_type="ec") as process:
        process.write({"manifests/site.pp": "node default { notify { 'applied': } }\n"})
        yield process.start()


def agent_of(running: MasterProcess, name: str, settings: dict[str, str] = REFRESHING) -> OurAgent:
    root = running.root.parent / name
    root.mkdir(exist_ok=True)
    return OurAgent(root, running.port, name, settings)


def step(running: MasterProcess, *words: str) -> str:
    done = running.puppet("cert", "rollover", *words)
    assert done.code == 0, done.text
    running.until_trust_is_read()
    return done.text


def a_day_later(agent: OurAgent) -> None:
    """What the agent fetched, it fetched a day ago; the answer's date has seconds only."""
    before = time.time() - DAY - 5
    for path in (agent.ssl / "certs" / "ca.pem", agent.ssl / "crl.pem"):
        os.utime(path, (before, before))


def applied(agent: OurAgent) -> None:
    done = agent.test()
    assert done.code in (0, 2) and "applied" in done, done.text


def issuer_of(agent: OurAgent) -> str:
    return bundles.certificate(agent.certificate.read_bytes()).issuer.rfc4514_string()


def test_agents_work_on_through_every_phase_and_nobody_is_locked_out(running: MasterProcess) -> None:
    agent, away = agent_of(running, NAME), agent_of(running, "away.test")
    applied(agent)
    applied(away)
    step(running, "start")
    applied(away)  # has not fetched anything yet
    a_day_later(agent)
    applied(agent)
    assert len(bundles.certificates((agent.ssl / "certs" / "ca.pem").read_bytes())) == 2
    assert len(bundles.revocation_lists((agent.ssl / "crl.pem").read_bytes())) == 2

    assert running.puppet("cert", "rollover", "switch").code == 24  # too early
    step(running, "switch", "--now")
    applied(agent)
    applied(away)
    newcomer = agent_of(running, "newcomer.test")
    applied(newcomer)
    assert issuer_of(newcomer).endswith("(2)") and not issuer_of(agent).endswith("(2)")

    refused = running.puppet("cert", "rollover", "finish")
    assert refused.code == 24 and f"{NAME}, away.test" in refused, refused.text
    agent = agent_of(running, NAME, RENEWING)
    applied(agent)
    assert issuer_of(agent).endswith("(2)")
    away = agent_of(running, "away.test", RENEWING)
    a_day_later(away)
    applied(away)
    assert issuer_of(away).endswith("(2)")

    step(running, "finish")
    for each in (agent, away, newcomer):
        a_day_later(each)
        applied(each)
        authorities = bundles.certificates((each.ssl / "certs" / "ca.pem").read_bytes())
        assert [certificates.name_of(c)[-3:] for c in authorities] == ["(2)"]
    assert running.stop() == 0
    running.start()
    applied(agent)


def test_an_agent_that_was_away_all_the_time_keeps_its_old_certificate_until_it_has_the_new_ca(running: MasterProcess) -> None:
    """Its renewal cannot be used before it knows the new CA: it says so, and goes on."""
    agent = agent_of(running, NAME)
    applied(agent)
    step(running, "start")
    step(running, "switch", "--now")
    behind = agent_of(running, NAME, {"hostcert_renewal_interval": "10y"})
    done = behind.test()
    assert done.code in (0, 2) and "Could not renew the certificate" in done, done.text
    assert not issuer_of(agent).endswith("(2)")
    applied(agent_of(running, NAME, {"hostcert_renewal_interval": "0"}))


def test_an_agent_revoked_before_the_switch_is_refused_in_every_phase(running: MasterProcess) -> None:
    agent = agent_of(running, NAME)
    applied(agent)
    step(running, "start")
    running.revoke(NAME)
    assert agent.test().code == 1
    step(running, "switch", "--now")
    assert agent.test().code == 1


def test_the_same_key_with_later_dates_needs_nothing_of_the_agents(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true", key_type="ec", ca_ttl="1y") as process:
        process.write({"manifests/site.pp": "node default { notify { 'applied': } }\n"})
        process.start()
        agent = agent_of(process, NAME, {})
        applied(agent)
        before = bundles.certificate((agent.ssl / "certs" / "ca.pem").read_bytes())
        process.settings["ca_ttl"] = "5y"
        step(process, "start", "--same-key")
        applied(agent)
        newcomer = agent_of(process, "newcomer.test", {})
        applied(newcomer)
        assert signatures.issued(bundles.certificate(newcomer.certificate.read_bytes()), before)
        step(process, "finish")
        applied(agent)  # still with the old certificate of the CA alone
        assert bundles.certificates((agent.ssl / "certs" / "ca.pem").read_bytes()) == (before,)
        applied(newcomer)
