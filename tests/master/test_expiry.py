"""What is said about certificates that end, and when."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from httpd.tls.trust import TrustFiles
from master.checks.certificates import endings_found
from master.observability.metrics import Metrics
from master.service.expiry import Ending, Expiries, agent_endings, expiry_warnings, server_endings
from tests.support.ca_site import START, Clock, Site, empty_site, pem, site
from tests.support.waiting import until

__all__ = ["empty_site", "pem", "site"]


@pytest.mark.parametrize(("left", "step"), [(31, None), (30, 30), (8, 30), (7, 7), (1.5, 7), (1, 1), (0.1, 1), (0, 0), (-3, 0)])
def test_an_end_comes_nearer_in_steps(left: float, step: int | None) -> None:
    assert Ending("master", "web1", START + timedelta(days=left)).step(START) == step


@pytest.mark.parametrize(("left", "step"), [(30, None), (27.1, None), (27, 30), (7, 7), (0, 0)])
def test_an_agent_is_named_once_it_should_have_renewed_its_certificate(left: float, step: int | None) -> None:
    assert Ending("agent", "web1", START + timedelta(days=left)).step(START) == step


def test_the_most_urgent_is_said_first_and_agents_of_a_step_together() -> None:
    ends = [Ending("agent", f"web{number:02}", START + timedelta(days=6)) for number in range(12)]
    ends += [Ending("ca", "Puppet CA: x", START + timedelta(days=29)), Ending("master", "x", START - timedelta(days=1))]
    ends += [Ending("agent", "old", START - timedelta(days=1)), Ending("crl", "Puppet CA: x", START + timedelta(days=99))]
    found = expiry_warnings(ends, START)
    assert [sentence.partition(". ")[0] for sentence in found] == [
        "Certificates of agents have expired: old",
        "The certificate of this master 'x' expired on 2026-11-20T12:00:00UTC",
        "Certificates of agents expire within 7 days: web00, web01, web02, web03, web04, web05, web06, web07, web08, web09 and 2 more",
        "The CA's certificate 'Puppet CA: x' expires on 2026-12-20T12:00:00UTC",
    ]


@pytest.mark.parametrize(
    ("kind", "days", "severity"), [("master", -1, "error"), ("master", 1, "warning"), ("crl", -1, "error"), ("agent", -1, "warning")]
)
def test_a_certificate_that_has_expired_is_an_error_of_the_check_unless_it_is_an_agents(kind: Any, days: int, severity: str) -> None:
    (finding,) = endings_found([Ending(kind, "x", START + timedelta(days=days))], START)
    assert finding.severity == severity


def test_agents_whose_certificates_have_ended_are_not_said_to_renew_them() -> None:
    ended, ending = (expiry_warnings([Ending("agent", "web1", START + timedelta(days=days))], START)[0] for days in (-1, 1))
    assert "cannot renew themselves" in ended and "puppet cert clean NAME" in ended and "puppet ssl clean" in ended
    assert "These agents do not renew them" in ending and "cannot renew" not in ending


def test_each_end_is_said_once_a_step() -> None:
    clock = Clock()
    expiries = Expiries(lambda: [Ending("master", "x", START + timedelta(days=40))], now=clock)
    said = []
    for _ in range(42):
        said.append(len(expiries.new_warnings()))
        clock.pass_(days=1)
    assert [day for day, count in enumerate(said) if count] == [10, 33, 39, 40]
    assert sum(said) == 4


def test_a_renewed_certificate_is_not_said() -> None:
    clock, ends = Clock(), [Ending("agent", "web1", START + timedelta(days=5))]
    expiries = Expiries(lambda: ends, now=clock)
    assert len(expiries.new_warnings()) == 1
    ends[0] = Ending("agent", "web1", START + timedelta(days=90))
    assert expiries.new_warnings() == []


def test_what_ends_is_read_from_the_ca_and_the_masters_files(site: Site, pem: Any) -> None:
    registry = site.registry(master="master.example.com")
    site.bootstrap()
    for name, ttl in (("web1", 6), ("web2", 60), ("gone", 6)):
        registry.submit(name, pem(name), by="t")
        registry.sign(name, by="t", ttl=ttl * 86400)
    registry.authority.revoke("gone", by="t")
    ends = {(each.kind, each.name): (each.end - START).days for each in agent_endings(registry.authority)}
    assert ends == {("agent", "web1"): 6, ("agent", "web2"): 60}
    files = TrustFiles(site.ssldir.hostcert, site.ssldir.hostprivkey, site.files.cacert, site.files.cacrl)
    name = "Puppet CA: master.example.com"
    assert [(each.kind, each.name) for each in server_endings(files)] == [("master", "master.example.com"), ("ca", name), ("crl", name)]


def test_the_metrics_have_the_ends() -> None:
    ends = [Ending("agent", "web1", START + timedelta(days=6)), Ending("agent", "web2", START), Ending("ca", "x", START)]
    expiries, metrics = Expiries(lambda: ends, now=Clock()), Metrics()
    expiries.describe(metrics)
    expiries.new_warnings()
    lines = [line for line in metrics.text().splitlines() if line.startswith(("puppet_certificate", "puppet_agent"))]
    assert lines == [
        f'puppet_certificate_end_seconds{{kind="ca",name="x"}} {START.timestamp():.0f}',
        'puppet_agent_certificates_ending{days="0"} 1',
        'puppet_agent_certificates_ending{days="1"} 1',
        'puppet_agent_certificates_ending{days="7"} 2',
        'puppet_agent_certificates_ending{days="30"} 2',
    ]


async def test_files_that_cannot_be_read_do_not_end_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = TrustFiles(*(tmp_path / name for name in "abcd"))
    watching = asyncio.create_task(Expiries(lambda: server_endings(missing)).watch(every=0.01))
    await until(lambda: caplog.text.count("Could not read when certificates expire") > 1)
    assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
