"""docs/recovery.md as it stands: a master that is lost and restored, a CA whose machine is gone and another master that takes over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.support.documentation import Shell, block
from tests.support.needs import needs_root
from tests.support.processes import MasterProcess, OurAgent, master

pytestmark = [pytest.mark.slow, needs_root]

SITE = {"manifests/site.pp": "notify { \"catalog of ${trusted['certname']}\": }\n"}


def type_in(site: MasterProcess, title: str, **names: str) -> str:
    """Run the page's commands on that site, in place of /etc/puppet and /var/lib/puppet; returns what they print."""
    folders = {"/etc/puppet": site.root / "conf", "/var/lib/puppet": site.root / "var", "/var/backups": site.root.parent}
    places = {**{place: str(folder) for place, folder in folders.items()}, "-o puppet -g puppet": "", **names}
    return Shell(site.root.parent / f"shell for {title}", {"": site.options}, places, {}).type(block("docs/recovery.md", "sh", title).body)


def applied(agent: OurAgent) -> bool:
    """Whether a run of the agent applied its catalog, with the plain code of a changed run."""
    done = agent.test()
    return done.code == 2 and f"catalog of {agent.certname}" in done


def agent_of(folder: Path, process: MasterProcess, name: str) -> OurAgent:
    (folder / name).mkdir(exist_ok=True)
    return OurAgent(folder / name, process.port, name)


def serial_of(agent: OurAgent) -> int:
    return x509.load_pem_x509_certificate(agent.certificate.read_bytes()).serial_number


def crl_of(site: MasterProcess) -> set[int]:
    return {entry.serial_number for entry in x509.load_pem_x509_crl((site.ca / "ca_crl.pem").read_bytes())}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MasterProcess]:
    """A running master, which has signed and revoked before the back-up that is taken of it, and after."""
    with master(tmp_path / "site", key_type="ec", autosign="true", dns_alt_names="localhost") as process:
        process.write(SITE)
        yield process.start()


def test_a_restored_master_knows_its_agents_and_gives_no_serial_twice(site: MasterProcess, tmp_path: Path) -> None:
    before, after = agent_of(tmp_path, site, "before.test"), agent_of(tmp_path, site, "after.test")
    assert applied(before)
    type_in(site, "back-up")  # while it runs
    site.puppet("cert", "generate", "gone.test")
    site.revoke("gone.test")
    assert applied(after)
    site.stop()
    code = shutil.copytree(site.site, tmp_path / "code")
    for lost in ("conf", "var"):
        shutil.rmtree(site.root / lost)
    shutil.copytree(code, site.site)
    type_in(site, "restore")
    type_in(site, "revoked since", **{"cat crl.pem": f"cat {after.certificate.parents[1] / 'crl.pem'}"})
    site.start()
    assert crl_of(site) == {serial_of(after) - 1}
    assert applied(before) and applied(after)
    later = agent_of(tmp_path, site, "later.test")
    assert applied(later)
    assert serial_of(later) > 1000 > serial_of(after)
    listed = site.puppet("cert", "list", "--all")
    assert '"before.test"' in listed and '"later.test"' in listed and '"after.test"' not in listed
    type_in(site, "issued since", **{"NAME.pem /etc/puppet": f"{after.certificate} {site.root}/conf", "NAME": "after.test"})
    site.revoke("after.test")
    assert f"0x{serial_of(after):04x} " in (site.ca / "inventory.txt").read_text()
    assert not applied(after) and applied(before)


def test_a_back_up_that_is_unpacked_over_the_directory_undoes_no_revocation(site: MasterProcess, tmp_path: Path) -> None:
    node = agent_of(tmp_path, site, "node.test")
    assert applied(node)
    type_in(site, "back-up")
    site.revoke("node.test")
    site.stop()
    with pytest.raises(AssertionError, match="is older than one that was in use"):
        type_in(site, "restore")
    type_in(site, "older list")
    site.start()
    assert crl_of(site) == {serial_of(node)}
    assert not applied(node)


def test_another_master_takes_over_the_ca_whose_machine_is_gone(site: MasterProcess, tmp_path: Path) -> None:
    assert site.puppet("cert", "generate", "master2.test", "--dns_alt_names", "localhost").code == 0
    settings = {"key_type": "ec", "autosign": "true", "certname": "master2.test", "crl_refresh_interval": "0"}
    with master(tmp_path / "second", **settings) as second:
        own, ssl = site.root / "conf" / "ssl", second.root / "conf" / "ssl"
        for source, place in {
            own / "certs" / "master2.test.pem": ssl / "certs" / "master2.test.pem",
            own / "private_keys" / "master2.test.pem": ssl / "private_keys" / "master2.test.pem",
            site.ca / "ca_crt.pem": ssl / "certs" / "ca.pem",
            site.ca / "ca_crl.pem": ssl / "crl.pem",
        }.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
        second.write(SITE)
        (second.root / "conf" / "puppet.conf").write_text(f"[master]\nca = false\nca_server = localhost\nca_port = {site.port}\n")
        second.start()
        node = agent_of(tmp_path, site, "node.test")
        assert applied(node)
        type_in(site, "back-up")
        site.kill()
        shutil.rmtree(site.root)
        node.port = second.port
        assert applied(node), "an agent with a certificate goes on without the CA"
        second.stop()
        type_in(second, "promote")
        second.start()
        assert applied(node)
        newcomer = agent_of(tmp_path, second, "newcomer.test")
        assert applied(newcomer) and serial_of(newcomer) > 1000
        second.revoke("node.test", command="clean")
        assert not applied(node)
