"""A CA of Puppet 5.5.22 that becomes ours while its agents go on, and the real `puppet cert` on a CA that is ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.interop.pairs import said
from tests.interop.peers import PUPPET_5, OtherAgent
from tests.interop.ruby_master import RubyMaster, ruby_master
from tests.interop.stage import SITE, stage_of
from tests.interop.test_real_agent_certificates import serial_of, serials_in
from tests.support.processes import Done, MasterProcess, master

pytestmark = [
    pytest.mark.works_with("CAs and certificate commands of Puppet", "taking over the CA of 5.5.22, and its puppet cert with this CA"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_5.why_not()), reason=PUPPET_5.why_not()),
]


def agent_at(root: Path, name: str, port: int) -> OtherAgent:
    """A real agent called `name`.example.com, in a folder beside the master's."""
    folder = root.parent / name
    folder.mkdir(exist_ok=True)
    return OtherAgent(folder, port, f"{name}.example.com", {"stage_root": str(folder / "stage")}, PUPPET_5)


def inventory_of(ca: Path) -> dict[int, str]:
    """The names by serial."""
    lines = [line.split() for line in (ca / "inventory.txt").read_text().splitlines() if not line.startswith("#")]
    return {int(line[0], 16): line[3] for line in lines if line}


def next_serial(ca: Path) -> int:
    return int((ca / "serial").read_text().strip(), 16)


def crl_number(ca: Path) -> int:
    crl = x509.load_pem_x509_crl((ca / "ca_crl.pem").read_bytes())
    return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[RubyMaster]:
    """A 5.5 master that has ended; web1 has a certificate, web2's is revoked, web3's request waits."""
    with ruby_master(tmp_path / "theirs", autosign="false") as made:
        made.write(SITE)
        made.start()
        for name in ("web1", "web2", "web3"):
            assert agent_at(made.root, name, made.port).test().code == 1
        for words in (("sign", "web1.example.com", "web2.example.com"), ("revoke", "web2.example.com")):
            done = made.puppet("cert", *words)
            assert done.code == 0, done.text
        made.stop()
        ran = agent_at(made.root, "web1", made.start().port).test()
        assert ran.code == 2, ran.text
        made.stop()
        yield made


def goes_on(ours: MasterProcess, theirs: RubyMaster, before: dict[int, str], free: int) -> None:
    """What holds for a CA of theirs that is ours now, whichever way it came."""
    web1 = agent_at(theirs.root, "web1", ours.port)
    certificate = web1.certificate.read_bytes()
    (stage_of(web1) / "plain").unlink()
    ran = web1.test()
    assert ran.code == 2 and "Error:" not in said(ran), ran.text
    assert "Caching certificate for web1" not in ran and web1.certificate.read_bytes() == certificate

    web2 = agent_at(theirs.root, "web2", ours.port)
    revoked = web2.test()
    assert revoked.code == 1 and "revoked" in revoked.text, revoked.text
    ours.until_logged("Refused a TLS handshake of 127.0.0.1: certificate revoked")

    listed = ours.puppet("cert", "list")
    assert "web3.example.com" in listed and "web1" not in listed, listed.text
    signed = ours.puppet("cert", "sign", "web3.example.com")
    assert signed.code == 0, signed.text
    web3 = agent_at(theirs.root, "web3", ours.port)
    assert web3.test().code == 2
    assert serial_of(web3.certificate) == free and next_serial(ours.ca) == free + 1
    assert inventory_of(ours.ca) == {**before, free: "/CN=web3.example.com"}

    assert ours.puppet("cert", "clean", "web1.example.com").code == 0
    assert {serial_of(web1.certificate), serial_of(web2.certificate)} <= serials_in(ours.ca / "ca_crl.pem")
    ours.until_trust_is_read()
    assert web1.test().code == 1


def test_our_master_starts_on_its_ssldir_as_it_is_and_agents_go_on(theirs: RubyMaster) -> None:
    before, free, key = inventory_of(theirs.ca), next_serial(theirs.ca), (theirs.ca / "ca_key.pem").read_bytes()
    own = (theirs.ssl / "certs/localhost.pem").read_bytes()
    with master(theirs.root, autosign="false") as ours:
        ours.write(SITE)
        ours.start()
        assert (ours.ca / "ca_key.pem").read_bytes() == key
        assert (ours.ca.parent / "certs/localhost.pem").read_bytes() == own
        goes_on(ours, theirs, before, free)
        ours.stop()
    # And back: the one that made it still works with it.
    again = theirs.puppet("cert", "list", "--all")
    assert again.code == 0 and re.search(r'^\+ "web3\.example\.com"', again.text, re.MULTILINE), again.text
    assert re.search(r'^- "web2\.example\.com".*\(certificate revoked\)', again.text, re.MULTILINE), again.text
    theirs.start()
    assert agent_at(theirs.root, "web3", theirs.port).test().code == 0


def test_cert_adopt_takes_a_copy_and_agents_go_on(theirs: RubyMaster, tmp_path: Path) -> None:
    before, free = inventory_of(theirs.ca), next_serial(theirs.ca)
    kept = {path: path.read_bytes() for path in theirs.ca.rglob("*") if path.is_file()}
    with master(tmp_path / "ours", autosign="false") as ours:
        ours.write(SITE)
        adopted = ours.puppet("cert", "adopt", str(theirs.ca))
        assert adopted.code == 0, adopted.text
        assert ours.puppet("cert", "clean", "--force", "localhost").code == 0  # the key of that name stays behind with the other master
        ours.start()
        assert inventory_of(ours.ca)[free] == "/CN=localhost"
        goes_on(ours, theirs, {**before, free: "/CN=localhost"}, free + 1)
    assert {path: path.read_bytes() for path in theirs.ca.rglob("*") if path.is_file()} == kept


# --- the real `puppet cert` on ours


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[MasterProcess]:
    """Our master, with certificates of web1 and web2, and web3's request."""
    with master(tmp_path / "ours", autosign="false") as made:
        made.write(SITE)
        made.start()
        for name in ("web1", "web2", "web3"):
            assert agent_at(made.root, name, made.port).test().code == 1
        assert made.puppet("cert", "sign", "web1.example.com", "web2.example.com").code == 0
        for name in ("web1", "web2"):
            assert agent_at(made.root, name, made.port).test().code == 2
        yield made


def cert(ours: MasterProcess, *words: str) -> Done:
    """The real `puppet cert …` on our CA."""
    return RubyMaster(ours.root).puppet("cert", *words)


@pytest.mark.parametrize("stands_still", [True, False], ids=["stopped", "running"])
def test_the_real_cert_command_works_on_our_ca_and_our_master_goes_on(ours: MasterProcess, stands_still: bool) -> None:
    port, number = ours.port, crl_number(ours.ca)
    if stands_still:
        ours.stop()
    listed = cert(ours, "list", "--all")
    assert listed.code == 0, listed.text
    for name, mark in (("localhost", r"\+"), ("web1.example.com", r"\+"), ("web2.example.com", r"\+"), ("web3.example.com", " ")):
        assert re.search(rf'^{mark} "{re.escape(name)}"', listed.text, re.MULTILINE), listed.text
    assert cert(ours, "verify", "web1.example.com").code == 0
    printed = cert(ours, "print", "web1.example.com")
    assert printed.code == 0 and "CN = web1.example.com" in printed.text.replace("CN=", "CN = "), printed.text
    assert cert(ours, "fingerprint", "web1.example.com").text.split("\n")[0] in ours.puppet("cert", "fingerprint", "web1.example.com").text

    cleaned = cert(ours, "clean", "web2.example.com")  # before any other is revoked: this release's clean forgets those, on its own CA too
    assert cleaned.code == 0 and not (ours.ca / "signed/web2.example.com.pem").exists(), cleaned.text
    revoked = cert(ours, "revoke", "web1.example.com")
    assert revoked.code == 0, revoked.text
    verified = cert(ours, "verify", "web1.example.com")
    assert verified.code != 0 and "revoked" in verified.text, verified.text
    free = next_serial(ours.ca)
    signed = cert(ours, "sign", "web3.example.com")
    assert signed.code == 0, signed.text
    assert next_serial(ours.ca) == free + 1 and inventory_of(ours.ca)[free] == "/CN=web3.example.com"
    assert crl_number(ours.ca) > number

    if stands_still:
        ours.port = port
        ours.start()
    ours.until_trust_is_read()
    for name in ("web1", "web2"):
        refused = agent_at(ours.root, name, ours.port).test()
        assert refused.code == 1 and "revoked" in refused.text, refused.text
    web3 = agent_at(ours.root, "web3", ours.port)
    ran = web3.test()
    assert ran.code == 2, ran.text
    ours_listed = ours.puppet("cert", "list", "--all")
    assert '+ "web3.example.com"' in ours_listed and "web2.example.com" not in ours_listed, ours_listed.text
    assert re.search(r'^- "web1\.example\.com"', ours_listed.text, re.MULTILINE), ours_listed.text

    number = crl_number(ours.ca)
    assert ours.puppet("cert", "revoke", "web3.example.com").code == 0
    assert crl_number(ours.ca) == number + 1
    assert free in serials_in(ours.ca / "ca_crl.pem") and len(serials_in(ours.ca / "ca_crl.pem")) == 3
    made = ours.puppet("cert", "generate", "web4.example.com")
    assert made.code == 0 and next_serial(ours.ca) == free + 2, made.text
    assert cert(ours, "verify", "web4.example.com").code == 0


def test_the_real_reinventory_writes_what_we_read(ours: MasterProcess) -> None:
    before, free = inventory_of(ours.ca), next_serial(ours.ca)
    ours.stop()
    done = cert(ours, "reinventory")
    assert done.code == 0, done.text
    after = inventory_of(ours.ca)
    assert after.items() <= before.items() and {"/CN=web1.example.com", "/CN=web2.example.com"} <= set(after.values())
    ours.start()
    assert ours.puppet("cert", "sign", "web3.example.com").code == 0
    assert inventory_of(ours.ca)[free] == "/CN=web3.example.com"


def test_the_real_face_ca_works_on_our_ca(ours: MasterProcess) -> None:
    theirs = RubyMaster(ours.root)
    for words in (("sign", "web3.example.com"), ("verify", "web1.example.com"), ("revoke", "web2.example.com")):
        done = theirs.puppet("ca", *words)
        assert done.code == 0, done.text
    ours.until_trust_is_read()
    assert agent_at(ours.root, "web1", ours.port).test().code == 0
    assert agent_at(ours.root, "web2", ours.port).test().code == 1
    assert agent_at(ours.root, "web3", ours.port).test().code == 2
