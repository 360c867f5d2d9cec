"""Nodes in OpenLDAP's own server, over every kind of connection; whom we believe it to be is what its own client believes."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from certs import keys
from certs.files import bundles
from certs.keys import KeyKind
from master.termini.ldap import Ldap, LdapSearch, LdapServer
from master.termini.ldap_conf import LdapTrust
from shared.errors import PeerNotTrusted, PuppetError
from shared.indirector import Binding
from shared.models.node import NODE
from tests.support.ports import reserved_port
from tests.support.processes import clean_environment
from tests.support.throwaway_ca import ThrowAwayCa

pytestmark = [pytest.mark.works_with("LDAP", "nodes in OpenLDAP's slapd"), pytest.mark.interop, pytest.mark.slow]
pytest.importorskip("ldap3")

PROGRAMS = {name: shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in ("slapd", "slapadd", "ldapsearch")}
SCHEMA = """
attributetype ( 1.3.6.1.4.1.34380.1.1.3.10 NAME 'puppetClass' EQUALITY caseIgnoreIA5Match SYNTAX 1.3.6.1.4.1.1466.115.121.1.26 )
attributetype ( 1.3.6.1.4.1.34380.1.1.3.9 NAME 'parentNode' EQUALITY caseIgnoreIA5Match SYNTAX 1.3.6.1.4.1.1466.115.121.1.26 SINGLE-VALUE )
attributetype ( 1.3.6.1.4.1.34380.1.1.3.11 NAME 'environment' EQUALITY caseIgnoreIA5Match SYNTAX 1.3.6.1.4.1.1466.115.121.1.26 )
attributetype ( 1.3.6.1.4.1.34380.1.1.3.12 NAME 'puppetVar' EQUALITY caseIgnoreIA5Match SYNTAX 1.3.6.1.4.1.1466.115.121.1.26 )
objectclass ( 1.3.6.1.4.1.34380.1.1.1.2 NAME 'puppetClient' SUP top AUXILIARY MAY ( puppetClass $ parentNode $ environment $ puppetVar ) )
"""
CONF = """
include /etc/ldap/schema/core.schema
include {root}/puppet.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {root}/pid
TLSCertificateFile {root}/server.pem
TLSCertificateKeyFile {root}/server.key
database mdb
suffix "dc=example"
rootdn "cn=master,dc=example"
rootpw hidden
directory {root}/db
access to * by anonymous auth
"""
ENTRIES = """
dn: dc=example
objectClass: organization
objectClass: dcObject
o: example
dc: example

dn: cn=base,dc=example
objectClass: device
objectClass: puppetClient
cn: base
puppetClass: ntp
puppetVar: site=prague

dn: cn=web1,dc=example
objectClass: device
objectClass: puppetClient
cn: web1
puppetClass: apache
parentNode: base
environment: test
description: a web server
"""


Tls = Literal["", "from the start", "by StartTLS"]


@dataclass(frozen=True)
class Directory:
    """A running slapd that shows a certificate of `ca` for 127.0.0.1."""

    root: Path
    ca: ThrowAwayCa
    port: int
    tls_port: int

    def terminus(self, tls: Tls, trust: LdapTrust | None = None, password: str = "hidden") -> Ldap:
        port = self.tls_port if tls == "from the start" else self.port
        server = LdapServer("127.0.0.1", port, "cn=master,dc=example", password, tls=tls, trust=trust or LdapTrust())
        query = "(&(objectclass=puppetClient)(cn=%s))"
        return Ldap(server, LdapSearch("dc=example", query, ("puppetClass",), "parentNode", stacked_attributes=("puppetVar",)))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serving(root: Path, ca: ThrowAwayCa, *names: str) -> Iterator[Directory]:
    """slapd with a certificate for these names, until the block ends."""
    missing = [name for name, path in PROGRAMS.items() if path is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: apt-get install slapd ldap-utils")
    key = KeyKind("rsa", 2048).generate()
    (root / "db").mkdir()
    files = {
        "ca.pem": ca.pem,
        "server.pem": bundles.dump([ca.sign("ldap.example.com", key.public_key(), alternative_names=list(names))]),
        "server.key": keys.private_pem(key),
        "puppet.schema": SCHEMA.encode(),
        "slapd.conf": CONF.format(root=root).encode(),
        "entries": ENTRIES.encode(),
    }
    for name, content in files.items():
        (root / name).write_bytes(content)
    with reserved_port() as port, reserved_port() as tls_port:
        made = Directory(root, ca, port, tls_port)
        conf = ["-f", str(root / "slapd.conf")]
        subprocess.run([str(PROGRAMS["slapadd"]), *conf, "-l", str(root / "entries")], check=True, env=clean_environment(), timeout=60)
        urls = f"ldap://127.0.0.1:{made.port} ldaps://127.0.0.1:{made.tls_port}"
        process = subprocess.Popen(
            [str(PROGRAMS["slapd"]), *conf, "-h", urls, "-d", "0"], env=clean_environment(), stderr=subprocess.DEVNULL
        )
        try:
            until = time.monotonic() + 20
            while not (listens(made.port) and listens(made.tls_port)):  # its pid file is there before
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)
            yield made
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    with serving(tmp_path, ThrowAwayCa.new(), "IP:127.0.0.1") as made:
        yield made


@pytest.mark.parametrize("tls", ["", "from the start", "by StartTLS"])
@pytest.mark.smoke
async def test_a_node_is_found_over(directory: Directory, tls: Tls) -> None:
    nodes = Binding(NODE, directory.terminus(tls, LdapTrust(directory.root / "ca.pem")))
    node = await nodes.find("web1")
    assert node is not None and node.environment == "test"
    assert list(node.class_parameters()) == ["apache", "ntp"]
    assert {name: node.parameters[name] for name in ("site", "description")} == {"site": "prague", "description": "a web server"}
    assert await nodes.find("web9") is None


async def test_what_the_server_refuses_is_an_error_and_not_an_unknown_node(directory: Directory) -> None:
    with pytest.raises(PuppetError, match=r"Could not find web1 in LDAP: .*invalidCredentials"):
        await Binding(NODE, directory.terminus("", password="wrong")).find("web1")


CONFS = {
    "nothing": "",
    "its CA": "TLS_CACERT <root>/ca.pem\n",
    "another CA": "TLS_CACERT <root>/other.pem\n",
    "another CA, try": "TLS_CACERT <root>/other.pem\nTLS_REQCERT try\n",
    "allow": "TLS_REQCERT allow\n",
    "never, in small letters": "tls_reqcert never\n",
    "a level that does not exist": "TLS_REQCERT maybe\nTLS_CACERT <root>/other.pem\n",
    "a folder of CAs": "TLS_CACERTDIR <root>/folder\n",
}


@pytest.mark.parametrize("names", ["IP:127.0.0.1", "DNS:elsewhere.example.com"])
@pytest.mark.parametrize("tls", ["from the start", "by StartTLS"])
def test_it_is_believed_when_ldapsearch_believes_it(tmp_path: Path, tls: Literal["from the start", "by StartTLS"], names: str) -> None:
    (tmp_path / "other.pem").write_bytes(ThrowAwayCa.new().pem)
    with serving(tmp_path, ThrowAwayCa.new(), names) as directory:
        (tmp_path / "folder").mkdir()
        shutil.copy(tmp_path / "ca.pem", tmp_path / "folder/ca.pem")
        subprocess.run(["openssl", "rehash", str(tmp_path / "folder")], check=True, timeout=60)
        expected, found = {}, {}
        for case, text in CONFS.items():
            (tmp_path / "ldap.conf").write_text(text.replace("<root>", str(tmp_path)))
            environ = {"LDAPCONF": str(tmp_path / "ldap.conf")}
            expected[case] = searched(directory, tls, environ)
            try:
                found[case] = asyncio.run(Binding(NODE, directory.terminus(tls, LdapTrust.read(environ))).find("web1")) is not None
            except PeerNotTrusted:
                found[case] = False
    assert found == expected
    assert expected["allow"] and expected["its CA"] == names.startswith("IP") and not expected["another CA"]


def searched(directory: Directory, tls: str, environ: dict[str, str]) -> bool:
    """Whether OpenLDAP's own client gets an answer."""
    url = f"ldaps://127.0.0.1:{directory.tls_port}" if tls == "from the start" else f"ldap://127.0.0.1:{directory.port}"
    words = ["-x", "-H", url, *([] if tls == "from the start" else ["-ZZ"]), "-D", "cn=master,dc=example", "-w", "hidden"]
    argv = [str(PROGRAMS["ldapsearch"]), *words, "-b", "dc=example", "(cn=web1)"]
    done = subprocess.run(argv, env=clean_environment(HOME=str(directory.root), **environ), capture_output=True, timeout=60)
    return done.returncode == 0 and b"a web server" in done.stdout
