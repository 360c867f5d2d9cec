"""A master that is the CA and one that is not: what the one revokes the other refuses, and nothing else counts."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from certs import crl
from certs.files import bundles
from tests.support.processes import MasterProcess, master
from tests.support.raw_master import RawClient
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

NODE = "/puppet/v3/node/{name}?environment=production"


@pytest.fixture
def masters(tmp_path: Path) -> Iterator[tuple[MasterProcess, MasterProcess]]:
    """The CA, and another that knows the CA's certificate, its own, and no revocation list; only the first runs."""
    with master(tmp_path / "first", key_type="ec") as first, master(tmp_path / "second", certname="master2.test") as second:
        first.start()
        own, there = first.root / "conf/ssl", second.root / "conf/ssl"
        assert first.puppet("cert", "generate", "master2.test", "agent1.test", "agent2.test").code == 0
        for source, place in {
            "ca/ca_crt.pem": "certs/ca.pem",
            "certs/master2.test.pem": "certs/master2.test.pem",
            "private_keys/master2.test.pem": "private_keys/master2.test.pem",
        }.items():
            (there / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(own / source, there / place)
        conf = f"[master]\nca = false\nca_server = localhost\nca_port = {first.port}\ncrl_refresh_interval = 1s\n"
        (second.root / "conf/puppet.conf").write_text(conf)
        yield first, second


def stored(process: MasterProcess) -> Path:
    return process.root / "conf/ssl/crl.pem"


def asked(first: MasterProcess, second: MasterProcess, name: str) -> int:
    """The second master's answer to an agent about its own node; 0: no connection."""
    own = first.root / "conf/ssl"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(first.ca / "ca_crt.pem")
    context.load_cert_chain(own / f"certs/{name}.pem", own / f"private_keys/{name}.pem")

    async def ask() -> int:
        client = await RawClient.connect(second.port, context, server="master2.test")
        try:
            return (await client.ask("GET", NODE.format(name=name))).status
        finally:
            await client.close()

    try:
        return asyncio.run(ask())
    except (OSError, EOFError):
        return 0


def until_refused(first: MasterProcess, second: MasterProcess, name: str) -> None:
    wait_until(lambda: asked(first, second, name) != 200, describe=lambda: second.log)


def test_what_the_ca_revokes_the_other_master_refuses(masters: tuple[MasterProcess, MasterProcess]) -> None:
    first, second = masters
    second.start()
    second.until_logged("Took over the CRL of localhost")  # it had none, and fetched it before it listened
    assert (asked(first, second, "agent1.test"), asked(first, second, "agent2.test")) == (200, 200)
    assert first.puppet("cert", "revoke", "agent1.test").code == 0
    until_refused(first, second, "agent1.test")
    assert asked(first, second, "agent2.test") == 200
    assert stored(second).read_bytes() == (first.ca / "ca_crl.pem").read_bytes()
    # While the CA is away, what was known counts; once it is back, what happened meanwhile does.
    first.stop()
    second.until_logged("Could not refresh the CRL, so that revocations are not seen")
    assert (asked(first, second, "agent1.test"), asked(first, second, "agent2.test")) == (0, 200)
    assert first.puppet("cert", "revoke", "agent2.test").code == 0
    first.start()
    until_refused(first, second, "agent2.test")
    assert "Traceback" not in second.log


@contextmanager
def impostor(first: MasterProcess) -> Iterator[list[bytes]]:
    """Somebody with the CA's own certificate for TLS in its place; gives out the last of these lists."""
    given: list[bytes] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(given[-1])))
            self.end_headers()
            self.wfile.write(given[-1])

        def log_message(self, *words: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = first.root / "conf/ssl"
    context.load_cert_chain(own / "certs/localhost.pem", own / "private_keys/localhost.pem")
    with ThreadingHTTPServer(("127.0.0.1", first.port), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield given
        finally:
            server.shutdown()
            thread.join()


def test_a_false_list_is_refused_and_what_is_revoked_stays_so(masters: tuple[MasterProcess, MasterProcess]) -> None:
    first, second = masters
    second.start()
    earlier = (first.ca / "ca_crl.pem").read_bytes()
    assert first.puppet("cert", "revoke", "agent1.test").code == 0
    until_refused(first, second, "agent1.test")
    kept = stored(second).read_bytes()
    # Another one's, in the CA's name: with a higher number and nothing on it.
    (genuine,) = bundles.revocation_lists(kept)
    forger = ThrowAwayCa.new(genuine.issuer.rfc4514_string().removeprefix("CN="))
    false = crl.sign(forger.certificate, forger.key, number=crl.number_of(genuine) + 1, now=datetime.now(UTC))
    assert false.issuer == genuine.issuer
    first.stop()
    with impostor(first) as given:
        given.append(kept)
        for pem, said in (
            (bundles.dump([false]), "Invalid signature for CRL issued by"),
            (earlier, "is refused: its number"),
            (kept[:-100], "cut off"),
        ):
            given.append(pem)
            second.until_logged(said)
            assert stored(second).read_bytes() == kept
            assert (asked(first, second, "agent1.test"), asked(first, second, "agent2.test")) == (0, 200)


def test_a_master_that_cannot_get_a_list_does_not_start_and_says_where_it_looked(masters: tuple[MasterProcess, MasterProcess]) -> None:
    first, second = masters
    found = second.puppet("master", "--check", "--masterport", "0")
    assert f"There is no CRL {stored(second)} yet" in found
    assert f"fetches it from localhost:{first.port}" in found
    first.stop()
    with pytest.raises(RuntimeError) as caught:
        second.start()
    said = str(caught.value)
    assert f"Could not refresh the CRL, so that revocations are not seen: localhost:{first.port} could not be asked" in said
    assert "ca_server and ca_port" in said
    assert f"Could not read the CRL {stored(second)}" in said


def test_a_list_that_was_not_refreshed_for_long_is_found_by_check(masters: tuple[MasterProcess, MasterProcess]) -> None:
    first, second = masters
    shutil.copy(first.ca / "ca_crl.pem", stored(second))
    assert "out of date" not in second.puppet("master", "--check", "--masterport", "0")
    then = time.time() - 2 * 86400
    os.utime(stored(second), (then, then))
    found = second.puppet("master", "--check", "--masterport", "0")
    assert "is out of date: it was last refreshed on" in found
    assert f"fetches it from localhost:{first.port}" in found
