"""A master that is killed while it signs, revokes or stores: after a restart nothing is broken, and the next run converges."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from tests.support.kept import check_ca, check_facts_and_reports, issued, revoked, temporary_files
from tests.support.processes import MasterProcess, OurAgent, master

pytestmark = pytest.mark.slow

KILLED = -9
SITE = {
    "manifests/site.pp": """
        filebucket { 'main': path => false, server => 'localhost' }
        $root = "ROOT/${trusted['certname']}"
        file { $root: ensure => directory }
        file { "${root}/f": source => 'puppet:///modules/stage/f', backup => 'main' }
    """,
    "modules/stage/files/f": "from the master\n",
    "modules/stage/facts.d/outside.txt": "outside=yes\n",
}
AUTH = """
path ~ ^/catalog/([^/]+)$
method find
allow $1
path /certificate_status
method find, save, search
auth any
allow *
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MasterProcess]:
    """A master with autosign whose CA exists; it is stopped."""
    (tmp_path / "stage").mkdir()
    with master(tmp_path / "master", autosign="true", key_type="ec") as process:
        process.write({name: text.replace("ROOT", str(tmp_path / "stage")) for name, text in SITE.items()})
        (process.root / "conf").mkdir(exist_ok=True)
        (process.root / "conf" / "auth.conf").write_text(AUTH)
        process.start().stop()
        yield process


def restarted(process: MasterProcess, failpoints: str = "") -> MasterProcess:
    process.environ = {"BUNRAKU_FAILPOINTS": failpoints} if failpoints else {}
    return process.start()


def agent_of(process: MasterProcess, name: str) -> OurAgent:
    root = process.root.parent / name
    root.mkdir(exist_ok=True)
    return OurAgent(root, process.port, name)


def staged(process: MasterProcess, name: str) -> Path:
    return process.root.parent / "stage" / name / "f"


def check_converges(process: MasterProcess, agent: OurAgent) -> None:
    """The next run brings the machine to where it should be, and the one after has nothing to do."""
    ran = agent.test()
    assert ran.code in (0, 2), ran.text + process.log
    assert staged(process, agent.certname).read_text() == "from the master\n"
    again = agent.test()
    assert again.code == 0, again.text


SIGNING = ["ca.request-written", "ca.serial-stored", "ca.certificate-written"]
ALL_OF_SIGNING = [*SIGNING, "unrenamed:serial", "ca.inventory-written", "unrenamed:{name}.pem", "ca.request-removed"]


@pytest.mark.parametrize(
    ("scheme", "points"),
    [("a", SIGNING[:1]), ("b", SIGNING), pytest.param("b", ALL_OF_SIGNING, marks=pytest.mark.full)],
    ids=["a", "b", "b, everywhere"],
)
def test_R_01_a_master_killed_while_it_signs_repeats_no_serial_and_loses_no_request(
    site: MasterProcess, scheme: str, points: list[str]
) -> None:
    for number, point in enumerate(points):
        name = f"agent{number}.test"
        before = set(issued(site.ca).values())
        restarted(site, f"{point.format(name=name)}=kill")
        agent = agent_of(site, name)
        agent.settings = {"scheme": scheme}
        assert agent.test("--waitforcert", "0").code == 1, point
        assert site.wait() == KILLED, point
        restarted(site)
        check_converges(site, agent)
        check_ca(site.ca)
        assert before < set(issued(site.ca).values()), point
        assert not (site.ca / "requests" / f"{name}.pem").exists(), point
        assert f'"{name}"' in site.puppet("cert", "list", "--all"), point
        site.stop()
    assert len(issued(site.ca)) == number + 2


@pytest.mark.parametrize("point", ["unrenamed:ca_crl.pem", pytest.param("ca.crl-written", marks=pytest.mark.full)])
def test_R_01_a_revocation_that_was_told_is_never_lost_and_one_that_was_not_can_be_repeated(site: MasterProcess, point: str) -> None:
    restarted(site)
    agents = [agent_of(site, f"agent{number}.test") for number in range(3)]
    for agent in agents:
        assert agent.test().code == 2
    serials = issued(site.ca)
    first, second, third = agents

    site.revoke(first.certname)
    killed = site.puppet("cert", "revoke", second.certname, failpoints=f"{point}=kill")
    assert killed.code == KILLED
    assert {serials[first.certname]} <= revoked(site.ca) <= {serials[first.certname], serials[second.certname]}
    site.revoke(second.certname)
    assert revoked(site.ca) == {serials[first.certname], serials[second.certname]}
    assert second.test().code == 1
    site.until_logged("certificate revoked")
    site.stop()

    restarted(site, f"{point}=kill")
    with pytest.raises(OSError):  # however the connection ends
        revoke(site, third)
    assert site.wait() == KILLED
    restarted(site)
    assert {serials[first.certname], serials[second.certname]} <= revoked(site.ca)
    if serials[third.certname] not in revoked(site.ca):
        assert third.test().code == 0
        site.revoke(third.certname)
    assert revoked(site.ca) == {serials[each.certname] for each in agents}
    for agent in agents:
        assert agent.test().code == 1
    check_ca(site.ca)
    fresh = agent_of(site, "agent9.test")
    assert fresh.test().code == 2
    assert issued(site.ca)[fresh.certname] not in revoked(site.ca) | set(serials.values())


def revoke(process: MasterProcess, agent: OurAgent) -> int:
    """Revoke an agent's certificate over HTTP, as that agent; the answer's status."""
    context = ssl.create_default_context(cafile=str(agent.ssl / "certs" / "ca.pem"))
    context.load_cert_chain(agent.certificate, agent.key)
    connection = HTTPSConnection("localhost", process.port, context=context, timeout=30)
    try:
        path = f"/production/certificate_status/{agent.certname}"
        connection.request("PUT", path, b'{"desired_state":"revoked"}', {"Content-Type": "text/pson", "Accept": "pson, s"})
        return connection.getresponse().status
    finally:
        connection.close()


STORING = ["unrenamed:agent1.test.yaml", "unlinked:agent1.test", "bucket.received"]
ALL_OF_STORING = [*STORING, "facts.written", "report.store", "report.written", "bucket.stored"]


@pytest.mark.parametrize("points", [STORING, pytest.param(ALL_OF_STORING, marks=pytest.mark.full)], ids=["once of each kind", "everywhere"])
def test_R_01_a_master_killed_while_it_stores_has_the_old_or_the_new_and_goes_on(site: MasterProcess, points: list[str]) -> None:
    restarted(site)
    agent = agent_of(site, "agent1.test")
    assert agent.test().code == 2
    site.stop()
    for number, point in enumerate(points):
        staged(site, agent.certname).write_text(f"changed by hand {number}\n")
        stored = len(reports(site, agent.certname))
        restarted(site, f"{point}=kill")
        killed = agent.test()
        assert site.wait() == KILLED, f"{point}: {killed.text}"
        check_stores(site, agent.certname)
        restarted(site)
        check_converges(site, agent)
        check_stores(site, agent.certname)
        assert len(reports(site, agent.certname)) >= stored + 1, point
        assert f"changed by hand {number}\n" in buckets(site) + kept_by(agent), point
        site.stop()
    age(site.root / "var")
    restarted(site).stop()
    assert temporary_files(site.root / "var" / "yaml", site.reports) == []


def reports(process: MasterProcess, name: str) -> list[Path]:
    return sorted((process.reports / name).glob("*.yaml"))


def buckets(process: MasterProcess) -> list[str]:
    return [path.read_text() for path in (process.root / "var" / "bucket").rglob("contents")]


def kept_by(agent: OurAgent) -> list[str]:
    return [path.read_text() for path in (agent.root / "vardir" / "clientbucket").rglob("contents")]


def check_stores(process: MasterProcess, name: str) -> None:
    """All that is stored is whole."""
    check_facts_and_reports(process.root / "var", name)
    for text in buckets(process):
        assert text.startswith(("changed by hand", "from the master"))


def age(folder: Path) -> None:
    """Make all temporary files look a day old."""
    for path in folder.rglob("*.tmp"):
        os.utime(path, (0, 0))
