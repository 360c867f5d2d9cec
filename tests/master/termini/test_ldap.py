"""Nodes in a directory: what they are made of, and whom the master talks to about them."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from master.termini.ldap import Ldap, LdapSearch, LdapServer
from master.termini.ldap_conf import LdapTrust
from shared.errors import ConfigError, PeerNotTrusted, PuppetError
from shared.indirector import Binding
from shared.models.node import NODE
from tests.support.throwaway_ca import ThrowAwayCa

ldap3 = pytest.importorskip("ldap3")


def ldap_with(entries: dict[str, dict[str, Any]], **more: Any) -> Ldap:
    server = LdapServer("fake", 389)
    search = LdapSearch("ou=Hosts,dc=example", "(&(objectclass=puppetClient)(cn=%s))", ("puppetclass",), "parentnode", **more)
    terminus = Ldap(server, search, strategy=ldap3.MOCK_SYNC)
    made = terminus._connection

    def filled(refused: Any) -> Any:
        connection = made(refused)
        for name, attributes in entries.items():
            connection.strategy.add_entry(f"cn={name},ou=Hosts,dc=example", {"objectclass": "puppetClient", "cn": name, **attributes})
        return connection

    terminus._connection = filled  # type: ignore[method-assign]
    return terminus


async def test_ldap_says_classes_parameters_and_inherits_from_a_parent() -> None:
    terminus = ldap_with(
        {
            "web1": {"puppetclass": ["apache", "ssl"], "parentnode": "base", "colour": "blue", "environment": "test"},
            "base": {"puppetclass": ["ntp"], "colour": "red", "size": "big"},
        }
    )
    node = await Binding(NODE, terminus).find("web1")
    assert node is not None
    assert list(node.class_parameters()) == ["apache", "ssl", "ntp"]
    assert node.environment == "test"
    assert {key: node.parameters[key] for key in ("colour", "size")} == {"colour": "blue", "size": "big"}


async def test_ldap_stacks_variables_over_those_of_the_parent() -> None:
    terminus = ldap_with(
        {
            "web1": {"parentnode": "base", "puppetvar": ["role=web", "formula=a=b", "odd"], "colour": "blue"},
            "base": {"puppetvar": ["role=none", "site=prague"]},
        },
        stacked_attributes=["puppetvar"],
    )
    node = await Binding(NODE, terminus).find("web1")
    assert node is not None
    assert {key: node.parameters[key] for key in ("role", "formula", "site", "colour")} == {
        "role": "web", "formula": "a=b", "site": "prague", "colour": "blue"
    }  # fmt: skip
    assert not {"odd", "puppetvar"} & set(node.parameters)


async def test_ldap_takes_the_attributes_that_are_named_only() -> None:
    entries = {"web1": {"puppetclass": "apache", "colour": "blue", "size": "big", "environment": "test"}}
    node = await Binding(NODE, ldap_with(entries, attributes=("colour",))).find("web1")
    assert node is not None
    assert (dict(node.parameters), list(node.class_parameters()), node.environment) == ({"colour": "blue"}, ["apache"], "test")


async def test_ldap_knows_no_stranger_and_ends_a_circle() -> None:
    assert await Binding(NODE, ldap_with({"somebody": {}})).find("nobody") is None
    with pytest.raises(PuppetError, match="loop"):
        await Binding(NODE, ldap_with({"a": {"parentnode": "b"}, "b": {"parentnode": "a"}})).find("a")


async def test_a_base_that_is_not_there_is_an_error_and_not_an_unknown_node() -> None:
    with pytest.raises(PuppetError, match=r"Could not find web1 in LDAP: .*noSuchObject"):
        await Binding(NODE, ldap_with({})).find("web1")


# --- over TLS

Tls = Literal["", "from the start", "by StartTLS"]
STARTTLS = b"1.3.6.1.4.1.1466.20037"
PASSWORD = b"very hidden"
SUCCESS = b"\x0a\x01\x00\x04\x00\x04\x00"


def answer(request: bytes) -> bytes:
    """`success` for a request of LDAP: its number, and the answer that goes with its kind."""
    head = 2 if request[1] < 128 else 2 + request[1] - 128
    number, kind = request[head : head + 3], request[head + 3]
    done = bytes({0x60: [0x61], 0x63: [0x65], 0x77: [0x78]}[kind])
    body = number + done + bytes([len(SUCCESS)]) + SUCCESS
    return b"\x30" + bytes([len(body)]) + body


class Directory:
    """An LDAP server that knows nobody and remembers what it was told, by whether TLS was there."""

    def __init__(self, context: ssl.SSLContext, tls: Tls) -> None:
        self.context, self.tls = context, tls
        self.plain: list[bytes] = []
        self.told: list[bytes] = []

    @contextmanager
    def running(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(10)
            thread = threading.Thread(target=self._serve, args=(listener,))
            thread.start()
            try:
                yield listener.getsockname()[1]
            finally:
                thread.join(10)
        assert not thread.is_alive()

    def _serve(self, listener: socket.socket) -> None:
        plain, _ = listener.accept()
        with plain:
            plain.settimeout(10)
            try:
                if self.tls == "by StartTLS":
                    self.plain.append(plain.recv(4096))
                    plain.sendall(answer(self.plain[0]))
                with self.context.wrap_socket(plain, server_side=True) as secured:
                    while data := secured.recv(4096):
                        self.told.append(data)
                        if data[2 + 3] != 0x42:  # the end has no answer
                            secured.sendall(answer(data))
            except OSError:
                return  # that is what a client who does not believe us looks like


def terminus(port: int, tls: Tls, trust: LdapTrust | None, host: str = "localhost") -> Ldap:
    server = LdapServer(host, port, "cn=master", PASSWORD.decode(), tls=tls, trust=trust or LdapTrust(), timeout=5)
    return Ldap(server, LdapSearch("ou=Hosts,dc=example", "(cn=%s)", ("puppetclass",), "parentnode"))


@pytest.fixture
def ca() -> ThrowAwayCa:
    return ThrowAwayCa.new()


@pytest.fixture
def believed(ca: ThrowAwayCa, tmp_path: Path) -> LdapTrust:
    (tmp_path / "ca.pem").write_bytes(ca.pem)
    return LdapTrust(tmp_path / "ca.pem")


@pytest.mark.parametrize("tls", ["from the start", "by StartTLS"])
async def test_a_server_whose_ca_is_believed_gets_the_password_over_tls(
    tls: Tls, ca: ThrowAwayCa, believed: LdapTrust, tmp_path: Path
) -> None:
    directory = Directory(ca.serving(tmp_path), tls)
    with directory.running() as port:
        assert await Binding(NODE, terminus(port, tls, believed)).find("web1") is None
    assert PASSWORD in directory.told[0] and b"web1" in directory.told[1]
    assert all(PASSWORD not in each for each in directory.plain) and len(directory.plain) == (tls == "by StartTLS")


@pytest.mark.parametrize("tls", ["from the start", "by StartTLS"])
async def test_a_server_is_found_at_a_later_one_of_its_addresses_and_the_refused_sockets_are_closed(
    tls: Tls, ca: ThrowAwayCa, believed: LdapTrust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where localhost is also ::1, which nobody listens on; a socket that stays open is a ResourceWarning, which is an error."""
    directory = Directory(ca.serving(tmp_path), tls)
    with directory.running() as port:
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.2", "127.0.0.3", "127.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *asked: addresses)
        assert await Binding(NODE, terminus(port, tls, believed)).find("web1") is None
    assert PASSWORD in directory.told[0]


@pytest.mark.parametrize("tls", ["from the start", "by StartTLS"])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("a stranger", "self-signed certificate in certificate chain|unable to get local issuer certificate"),
        ("another server", "Hostname mismatch"),
        ("a certificate that has ended", "certificate has expired"),
        ("nobody is believed but the system's", "self-signed certificate in certificate chain|unable to get local issuer certificate"),
    ],
)
async def test_a_server_that_cannot_be_believed_is_told_nothing(
    case: str, message: str, tls: Tls, ca: ThrowAwayCa, believed: LdapTrust, tmp_path: Path
) -> None:
    context = {
        "a stranger": lambda: ThrowAwayCa.new().serving(tmp_path),
        "another server": lambda: ca.serving(tmp_path, "ldap2.example.com"),
        "a certificate that has ended": lambda: ca.serving(tmp_path, ttl=-3600),
        "nobody is believed but the system's": lambda: ca.serving(tmp_path),
    }[case]()
    directory = Directory(context, tls)
    trust = None if case.startswith("nobody") else believed
    with directory.running() as port, pytest.raises(PeerNotTrusted, match=f"localhost:{port} is not trusted: .*({message})") as caught:
        await Binding(NODE, terminus(port, tls, trust)).find("web1")
    assert "TLS_CACERT in ldap.conf" in caught.value.hint
    assert directory.told == [] and all(STARTTLS in each and PASSWORD not in each for each in directory.plain)


async def test_with_tls_reqcert_allow_nobody_looks_and_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = Directory(ThrowAwayCa.new().serving(tmp_path, "elsewhere"), "from the start")
    trust = LdapTrust(demanded=False, source="/etc/ldap/ldap.conf")
    with directory.running() as port:
        assert await Binding(NODE, terminus(port, "from the start", trust)).find("web1") is None
    assert PASSWORD in directory.told[0]
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING] == [
        "Nobody looks at the certificate of the LDAP server localhost: TLS_REQCERT in /etc/ldap/ldap.conf"
    ]


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_authorities_that_cannot_be_used_are_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(ConfigError, match=f"Could not use {tmp_path}/ca.pem, which ldap.conf names"):
        await Binding(NODE, terminus(1, "from the start", LdapTrust(tmp_path / "ca.pem"))).find("web1")


# --- what ldap.conf says


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("texts", "environ", "authorities", "demanded"),
    [
        ({}, {}, "", True),
        ({"system": "# TLS_CACERT /x\n\nURI ldap://a\ntls_cacert   /a b \n"}, {}, "/a b", True),
        ({"system": "TLS_REQCERT never\n"}, {}, "", False),
        ({"system": "TLS_REQCERT Allow\n"}, {}, "", False),
        ({"system": "TLS_REQCERT try\n"}, {}, "", True),
        ({"system": "TLS_REQCERT nonsense\n"}, {}, "", True),
        ({"system": "TLS_CACERT /system\n", "ldaprc": "TLS_CACERT /home\n"}, {}, "/home", True),
        ({"ldaprc": "TLS_CACERT /home\n", ".ldaprc": "TLS_CACERT /hidden\n"}, {}, "/hidden", True),
        ({".ldaprc": "TLS_CACERT /hidden\n", "given": "TLS_CACERT /given\n"}, {"LDAPCONF": "<folder>/given"}, "/given", True),
        ({".more": "TLS_CACERT /more\n", "given": "TLS_CACERT /given\n"}, {"LDAPCONF": "<folder>/given", "LDAPRC": "more"}, "/more", True),
        ({"system": "TLS_REQCERT never\n"}, {"LDAPTLS_REQCERT": "demand", "LDAPTLS_CACERT": "/env"}, "/env", True),
        ({"system": "TLS_CACERT /system\nTLS_REQCERT never\n"}, {"LDAPNOINIT": "1", "LDAPTLS_CACERT": "/env"}, "", True),
    ],
)
def test_ldap_conf_is_read_as_openldap_reads_it(
    tmp_path: Path, texts: dict[str, str], environ: dict[str, str], authorities: str, demanded: bool
) -> None:
    write(tmp_path, texts)
    given = {"HOME": str(tmp_path), **{name: value.replace("<folder>", str(tmp_path)) for name, value in environ.items()}}
    found = LdapTrust.read(given, [tmp_path / "system"])
    assert (found.authorities, found.demanded) == (Path(authorities) if authorities else None, demanded)


def test_where_it_is_said_that_nobody_looks_is_known(tmp_path: Path) -> None:
    write(tmp_path, {"system": "TLS_REQCERT never\n"})
    assert LdapTrust.read({}, [tmp_path / "system"]).source == str(tmp_path / "system")
    assert LdapTrust.read({"LDAPTLS_REQCERT": "allow"}, []).source == "the environment's LDAPTLS_REQCERT"
