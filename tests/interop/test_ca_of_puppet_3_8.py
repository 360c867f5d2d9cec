"""A CA that Puppet 3.8.5 made, taken over by our master: its agents, signed before, go on with the certificates that they have."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.peers import PUPPET_3, OtherAgent, agent_of
from tests.interop.puppetmaster import Puppetmaster, puppetmaster
from tests.interop.stage import SITE, stage_of
from tests.interop.test_real_agent_certificates import serial_of, serials_in
from tests.support.processes import MasterProcess, OurAgent, master

pytestmark = [
    pytest.mark.works_with("CAs and certificate commands of Puppet", "taking over the CA of 3.8.5"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_3.why_not()), reason=PUPPET_3.why_not()),
]


@dataclass
class Old:
    """A puppetmaster that is not running any more, and those it has dealt with."""

    server: Puppetmaster
    signed: OtherAgent
    ours: OurAgent
    revoked: OtherAgent
    waiting: OtherAgent

    @property
    def everybody(self) -> list[OurAgent | OtherAgent]:
        return [self.signed, self.ours, self.revoked, self.waiting]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    with puppetmaster(tmp_path / "old") as server:
        server.with_site().start()
        agents = [server.its_agent(tmp_path, each) for each in ("web1", "web3", "manual1")]
        found = Old(server, agents[0], server.agent(tmp_path, "web2"), agents[1], agents[2])
        assert [found.signed.test().code, found.ours.test().code, found.revoked.test().code] == [2, 2, 2]
        assert found.waiting.test().code == 1
        assert server.puppet("cert", "revoke", "web3.example.com").code == 0
        server.stop()
        yield found


@contextmanager
def taken_over(old: Old, root: Path, way: str) -> Iterator[MasterProcess]:
    """Our master with that CA, on the port that the agents know."""
    with master(root, autosign="false") as running:
        running.port = old.server.port
        running.write(SITE)
        if way == "the same ssldir":
            running.settings["ssldir"] = str(old.server.ssl)
        else:
            looked = running.puppet("cert", "adopt", str(old.server.ssl), "--noop")
            assert looked.code == 0 and not (running.ca / "ca_crt.pem").exists(), looked.text
            adopted = running.puppet("cert", "adopt", str(old.server.ssl))
            assert adopted.code == 0, adopted.text
            assert "localhost, has a certificate of this CA, but not its key" in adopted
            keys = running.root / "conf/ssl/private_keys"
            keys.mkdir(parents=True, mode=0o750)
            shutil.copy2(old.server.ssl / "private_keys/localhost.pem", keys)
        yield running.start()


@pytest.mark.parametrize("way", ["the same ssldir", "adopted"])
def test_agents_of_the_old_master_go_on(old: Old, tmp_path: Path, way: str) -> None:
    certificates = {agent.certname: agent.certificate.read_bytes() for agent in (old.signed, old.ours)}
    authority = (old.server.ca / "ca_crt.pem").read_bytes()
    with taken_over(old, tmp_path / "new", way) as running:
        ca = old.server.ca if way == "the same ssldir" else running.ca
        for agent in (old.signed, old.ours):
            (agent.root / "stage" / "facts").unlink()
            ran = agent.test()
            assert ran.code == 2, ran.text
            assert (agent.root / "stage" / "facts").read_text() == "ruby says hello\n"
            assert agent.certificate.read_bytes() == certificates[agent.certname]
            assert agent.test().code == 0
        assert (ca / "ca_crt.pem").read_bytes() == authority

        refused = old.revoked.test()
        assert refused.code == 1 and "revoked" in refused, refused.text
        listed = running.puppet("cert", "list", "--all")
        for line in (r"^  \"manual1\.example\.com\" ", r"^\+ \"web1\.example\.com\" ", r"^- \"web3\.example\.com\" .*revoked"):
            assert re.search(line, listed.text, re.MULTILINE), listed.text

        assert running.puppet("cert", "sign", "manual1.example.com").code == 0
        assert old.waiting.test().code == 2
        assert serial_of(old.waiting.certificate) == 1 + max(serial_of(each.certificate) for each in old.everybody[:3])

        fresh = agent_of(running, PUPPET_3, "web4.example.com")
        assert fresh.test().code == 1
        assert running.puppet("cert", "sign", "web4.example.com").code == 0
        assert fresh.test().code == 2 and (stage_of(fresh) / "plain").exists()
        assert serial_of(old.revoked.certificate) in serials_in(fresh.ssl / "crl.pem")
        assert running.puppet("cert", "revoke", "web4.example.com").code == 0
        assert fresh.test().code == 1
        inventory = (ca / "inventory.txt").read_text().splitlines()
        assert [line.rpartition("/CN=")[2] for line in inventory if "/CN=" in line][-3:] == [
            "web3.example.com",
            "manual1.example.com",
            "web4.example.com",
        ]


def test_the_old_master_can_take_its_ca_back(old: Old, tmp_path: Path) -> None:
    with taken_over(old, tmp_path / "new", "the same ssldir") as running:
        assert running.puppet("cert", "sign", "manual1.example.com").code == 0
        assert old.waiting.test().code == 2
        assert running.puppet("cert", "revoke", "web1.example.com").code == 0
        assert running.stop() == 0
    old.server.start()
    assert old.waiting.test().code in (0, 2)
    refused = old.signed.test()
    assert refused.code == 1 and "revoked" in refused, refused.text
    listed = old.server.puppet("cert", "list", "--all")
    assert listed.code == 0 and re.search(r'^\+ "manual1\.example\.com"', listed.text, re.MULTILINE), listed.text
    fresh = old.server.its_agent(tmp_path, "web5")
    assert fresh.test().code == 2
    assert serial_of(fresh.certificate) == 1 + serial_of(old.waiting.certificate)
