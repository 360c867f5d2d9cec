"""Rows of the security reference about the agent: false masters, hostile answers, prepared directories."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.bootstrap import Bootstrap, Options
from agent.facts.external import Limits as ProgramLimits
from agent.facts.external import external_facts
from agent.facts.facter import Sources, gather
from agent.facts.host import Host
from agent.http import Client
from agent.server import Spoken
from agent.sites import Limits, Site
from agent.surroundings import clean, secure
from agent.testing import Ask, FakeMaster, Reply
from agent.tls import Verifier
from certs import bundles, fingerprints
from certs.keys import KeyKind
from certs.ssldir import SslDir
from certs.testing import ThrowAwayCa, server_context
from shared.dialects import MODERN
from shared.errors import BadData, ConfigError, PeerAnswered, PeerError, PeerNotTrusted, PuppetError, TooLarge
from tests.scripted_master import JSON, NAME, Scripted, catalog, file, reply, root_entry

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files have to be given to somebody else")


@pytest.fixture(scope="module")
def ca() -> ThrowAwayCa:
    return ThrowAwayCa.new()


def verifier(layout: SslDir, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Verifier:
    return Verifier(layout.localcacert, layout.hostcrl, "chain", now, layout.hostcert, layout.hostprivkey)


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# --- TLS


def presented(ca: ThrowAwayCa, root: Path, kind: str) -> Any:
    """A server context whose certificate is wrong in one way."""
    if kind == "expired":
        return ca.serving(root, "localhost", ttl=60, now=datetime.now(UTC) - timedelta(days=30))
    if kind == "wrong host":
        return ca.serving(root, "elsewhere.test")
    if kind == "names for others":
        return ca.serving(root, "other.test", names=("other.test", "another.test"))
    if kind == "an agent's":
        return ca.serving(root, "agent2.test", names=())
    if kind == "self-signed":
        return ThrowAwayCa.new("localhost").serving(root, "localhost")
    stranger = ThrowAwayCa.new()  # the same name, another key
    return stranger.serving(root, "localhost")


@pytest.mark.parametrize("kind", ["wrong host", "names for others", "another CA's", "self-signed", "expired", "an agent's"])
async def test_TLS_12_TLS_13_a_master_that_is_not_ours_gets_not_one_byte(ca: ThrowAwayCa, tmp_path: Path, kind: str) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    before = snapshot(tmp_path / "ssl")
    master = FakeMaster(presented(ca, tmp_path, kind), lambda ask: Reply())
    async with master.running(), Client(verifier(layout)) as client:
        with pytest.raises(PeerNotTrusted) as caught:
            await client.request(Site("localhost", master.port), "GET", "/puppet/v3/node/x", {})
    assert master.asked == []
    assert snapshot(tmp_path / "ssl") == before
    expected = {
        "wrong host": "Server hostname 'localhost' did not match server certificate; expected elsewhere.test",
        "names for others": "expected one of another.test, other.test",
        "another CA's": "Invalid signature for certificate",
        "self-signed": "The issuer 'CN=localhost' of certificate",
        "expired": "has expired, verify time is synchronized",
        "an agent's": "expected agent2.test",
    }
    assert expected[kind] in str(caught.value)
    assert caught.value.hint


async def test_TLS_12_a_revoked_master_gets_not_one_byte(ca: ThrowAwayCa, tmp_path: Path) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    own = ThrowAwayCa(ca.key, ca.certificate, serial=5000)
    key = KeyKind("ec").generate()
    certificate = own.sign("localhost", key.public_key(), names=("localhost",))
    own.revoked.append(certificate.serial_number)
    layout.save_crls(own.crl_pem())
    master = FakeMaster(server_context(tmp_path, key, certificate, ca.pem), lambda ask: Reply())
    async with master.running(), Client(verifier(layout)) as client:
        with pytest.raises(PeerNotTrusted, match="Certificate 'CN=localhost' is revoked"):
            await client.request(Site("localhost", master.port), "GET", "/x", {})
    assert master.asked == []


async def test_a_master_that_does_not_take_our_certificate_is_told_from_one_that_is_lost(ca: ThrowAwayCa, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    stranger = ThrowAwayCa.new("Another CA").ssldir(tmp_path / "a" / "ssl", NAME)
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    trust = Verifier(layout.localcacert, layout.hostcrl, "chain", lambda: datetime.now(UTC), stranger.hostcert, stranger.hostprivkey)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply())
    async with master.running(), Client(trust) as client:
        with pytest.raises(PeerNotTrusted, match=r"our certificate|unknown ca") as caught:
            await client.request(Site("localhost", master.port), "GET", "/x", {})
    assert "CA" in caught.value.hint
    assert master.asked == []


def bootstrapping(root: Path, master: FakeMaster, **options: Any) -> Bootstrap:
    return Bootstrap(
        SslDir(root, NAME),
        Site("localhost", master.port),
        Options(key=KeyKind("ec"), waitforcert=0, **options),
        Client,
        Spoken(fixed=MODERN),
        now=lambda: datetime.now(UTC),
        tell=lambda text: None,
    )


def ca_master(ca: ThrowAwayCa, root: Path, crl: bytes | None = None, body: bytes | None = None) -> FakeMaster:
    """A CA that shows its certificate and CRL and signs nothing."""

    def answer(ask: Ask) -> Reply:
        if ask.path.endswith("/certificate/ca"):
            return Reply(body=ca.pem if body is None else body)
        if "certificate_revocation_list" in ask.path:
            return Reply(body=ca.crl_pem() if crl is None else crl)
        return Reply() if ask.method == "PUT" else Reply(404)

    return FakeMaster(ca.serving(root), answer)


async def test_TLS_14_a_pinned_fingerprint_keeps_a_false_ca_out(tmp_path: Path) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    master = ca_master(false, tmp_path)
    async with master.running():
        with pytest.raises(PeerNotTrusted, match="did not match expected digest"):
            await bootstrapping(tmp_path / "ssl", master, ca_fingerprint=fingerprints.of_bundle(real.pem)).run()
    assert not (tmp_path / "ssl" / "certs" / "ca.pem").exists()
    assert [ask.path for ask in master.asked] == ["/puppet-ca/v1/certificate/ca"]


@pytest.mark.parametrize("pin", [lambda ca: fingerprints.of_bundle(ca.pem), lambda ca: fingerprints.fingerprint(ca.certificate).lower()])
async def test_TLS_14_the_right_fingerprint_lets_the_ca_in(tmp_path: Path, pin: Callable[[ThrowAwayCa], str]) -> None:
    real = ThrowAwayCa.new()
    master = ca_master(real, tmp_path)
    async with master.running():
        with pytest.raises(PuppetError, match="waitforcert"):
            await bootstrapping(tmp_path / "ssl", master, ca_fingerprint=pin(real)).run()
    assert (tmp_path / "ssl" / "certs" / "ca.pem").read_bytes() == real.pem


async def test_TLS_14_without_a_pin_the_first_ca_is_shown_and_a_second_one_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = ThrowAwayCa.new(), ThrowAwayCa.new()
    master = ca_master(first, tmp_path)
    async with master.running():
        with pytest.raises(PuppetError, match="waitforcert"):
            await bootstrapping(tmp_path / "ssl", master).run()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert fingerprints.fingerprint(first.certificate) in warnings[0]
    false = ca_master(second, tmp_path)
    async with false.running():
        with pytest.raises(PeerNotTrusted):
            await bootstrapping(tmp_path / "ssl", false).run()
    assert (tmp_path / "ssl" / "certs" / "ca.pem").read_bytes() == first.pem
    assert false.asked == []


@pytest.mark.parametrize("kind", ["another key", "another CA", "cut off", "html"])
async def test_TLS_15_AG_17_a_crl_that_our_ca_did_not_make_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    crl = {
        "another key": ThrowAwayCa.new().crl_pem(),
        "another CA": ThrowAwayCa.new("Other CA").crl_pem(),
        "cut off": real.crl_pem()[:-20],
        "html": b"<html>no such page</html>",
    }[kind]
    master = ca_master(real, tmp_path, crl)
    async with master.running():
        with pytest.raises(PeerNotTrusted, match="Could not download CRLs"):
            await bootstrapping(tmp_path / "ssl", master).run()
    assert not (tmp_path / "ssl" / "crl.pem").exists()


async def test_TLS_15_a_refresh_keeps_the_old_files_when_what_comes_is_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    before = snapshot(tmp_path / "ssl")
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in (layout.localcacert, layout.hostcrl):
        os.utime(path, (old, old))
    master = ca_master(real, tmp_path, crl=false.crl_pem(), body=false.pem)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, ca_refresh=86400, crl_refresh=86400).run()
    assert [ask.path for ask in master.asked] == ["/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"]
    after = snapshot(tmp_path / "ssl")
    after.pop("ssl.lock", None)
    assert after == before
    assert caplog.text.count("keeping the old one") == 2


async def test_TLS_15_an_older_crl_does_not_replace_a_newer_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    real = ThrowAwayCa.new()
    older = real.crl_pem()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    real.revoked.append(4711)
    layout.save_crls(real.crl_pem())
    os.utime(layout.hostcrl, (1, 1))
    newer = layout.hostcrl.read_bytes()
    master = ca_master(real, tmp_path, crl=older)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, crl_refresh=86400).run()
    assert layout.hostcrl.read_bytes() == newer
    assert "is refused" in caplog.text


async def test_TLS_15_no_refresh_over_a_connection_that_does_not_verify(tmp_path: Path) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    os.utime(layout.hostcrl, (1, 1))
    master = ca_master(false, tmp_path)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, crl_refresh=86400).run()
    assert master.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "https://127.0.0.1:{port}/x",
        "https://localhost:{other}/x",
        "http://localhost:{port}/x",
        "file:///etc/passwd",
        "//evil.test/x",
        "https://u@localhost:{port}/x",
    ],
)
async def test_TLS_16_no_redirect_leads_to_another_server(ca: ThrowAwayCa, tmp_path: Path, status: int, location: str) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply(status, headers={"Location": target}))
    async with master.running(), Client(verifier(layout)) as client:
        target = location.format(port=master.port, other=master.port + 1)
        with pytest.raises(PeerAnswered, match="not followed"):
            await client.request(Site("localhost", master.port), "PUT", "/puppet/v3/report/x", {}, b"secret")
    assert len(master.asked) == 1


# --- AG


def test_AG_07_the_callers_environment_does_not_reach_what_we_start() -> None:
    hostile = {
        "LD_PRELOAD": "/tmp/x.so",
        "LD_LIBRARY_PATH": "/tmp",
        "PYTHONPATH": "/tmp",
        "PYTHONSTARTUP": "/tmp/x.py",
        "BASH_ENV": "/tmp/x",
        "ENV": "/tmp/x",
        "IFS": "x",
        "HOME": "/tmp/x",
        "PATH": ".:/tmp",
        "HTTPS_PROXY": "http://evil.test",
        "https_proxy": "http://evil.test",
        "SSL_CERT_FILE": "/tmp/ca.pem",
        "RUBYLIB": "/tmp",
        "LC_ALL": "de_DE.UTF-8",
        "FACTER_role": "db",
    }
    cleaned = clean(hostile, home="/root", user="root")
    assert set(cleaned) == {"LC_ALL", "FACTER_role", "PATH", "HOME", "USER", "LOGNAME"}
    assert cleaned["HOME"] == "/root"
    assert not cleaned["PATH"].startswith(".")


async def test_AG_07_neither_proxy_variables_nor_netrc_are_used(ca: ThrowAwayCa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login u password p\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply())
    async with master.running(), Client(verifier(layout)) as client:
        answer = await client.request(Site("localhost", master.port), "GET", "/x", {})
        assert answer.status == 200
    assert "authorization" not in master.asked[0].headers


BAD_CATALOGS: dict[str, Callable[[Path], Reply]] = {
    "of another node": lambda path: reply(catalog(file(path, "x"), name="other.test")),
    "with a resource twice": lambda path: reply(catalog(file(path, "x"), file(path, "y"))),
    "with an edge to nothing": lambda path: reply(catalog(file(path, "x"), edges=[{"source": "Class[main]", "target": "File[/none]"}])),
    "with a dependency on nothing": lambda path: reply(catalog(file(path, "x", require="File[/none]"))),
    "that is not JSON": lambda path: Reply(body=b"<html>", headers=JSON),
    "that is a page": lambda path: Reply(body=b"<html>", headers={"Content-Type": "text/html"}),
    "that is a list": lambda path: reply([1]),
    "that is nested too deep": lambda path: Reply(body=b"[" * 100_000 + b"]" * 100_000, headers=JSON),
    "that is cut off": lambda path: Reply(body=reply(catalog(file(path, "x"))).body, headers=JSON, cut=50),
    "of the wrong length": lambda path: Reply(
        body=reply(catalog(file(path, "x"))).body, headers={**JSON, "Content-Length": "100000"}, cut=400
    ),
    "that is too large": lambda path: Reply(body=gzip.compress(b" " * 40_000_000), headers={**JSON, "Content-Encoding": "gzip"}),
    "without a content type": lambda path: Reply(body=reply(catalog(file(path, "x"))).body, headers={"Content-Type": ""}),
}


@pytest.mark.parametrize("kind", list(BAD_CATALOGS))
async def test_AG_10_AG_17_R_31_R_40_a_catalog_that_is_wrong_changes_nothing(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(file(good, "good")))})
    assert await site.run() == 2
    kept = site.cached.read_bytes()
    site.answers["/catalog/"] = BAD_CATALOGS[kind](bad)
    assert await site.run(usecacheonfailure=False, max_catalog_body="1MiB") == 1
    assert not bad.exists()
    assert site.cached.read_bytes() == kept
    assert "Traceback" not in caplog.text
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"


async def test_AG_10_resources_in_a_circle_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(file(one, "1", require=f"File[{two}]"), file(two, "2", require=f"File[{one}]")))})
    assert await site.run() == 1
    assert not one.exists()
    assert "dependency cycle" in caplog.text


async def test_AG_10_environments_that_never_settle_end_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    count = iter(range(100))
    site = Scripted(tmp_path, {"/catalog/": lambda ask: reply(catalog(environment=f"e{next(count)}"))})
    assert await site.run(pluginsync=False) == 1
    assert "Catalog environment didn't stabilize after 4 fetches, aborting run" in caplog.text
    assert sum("/catalog/" in line for line in site.asked()) == 5


async def test_AG_09_a_type_that_is_not_known_fails_and_the_rest_is_applied(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "applied"
    strange = {"type": "Nosuch", "title": "x", "tags": [], "exported": False, "kind": "compilable_type"}
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(strange, file(path, "x"), catalog_format=2))})
    assert await site.run() == 6
    assert path.exists()
    assert "nosuch" in caplog.text.lower()


def plugin(relative: str, content: bytes = b"x", **changes: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    entry = {"relative_path": relative, "type": "file", "mode": 420, "checksum": {"type": "sha256", "value": "{sha256}" + digest}}
    return root_entry(**{**entry, **changes})


HOSTILE = {
    "climbing": [plugin("../../evil")],
    "absolute": [plugin("/etc/cron.d/evil")],
    "through dots": [plugin("a/../../evil")],
    "nul": [plugin("a\0b")],
}
REFUSED = {
    "a link": [plugin("link", type="link", destination="/etc")],
    "a file through a link": [plugin("link", type="link", destination="/etc"), plugin("link/evil")],
    "a fifo": [plugin("fifo", type="fifo")],
    "a file below a file": [plugin("f"), plugin("f/evil")],
    "without its directory": [plugin("nodir/evil")],
    "twice": [plugin("good"), plugin("good", b"other")],
}


@pytest.mark.parametrize("kind", [*HOSTILE, *REFUSED])
async def test_AG_11_plugin_sync_stays_inside_and_makes_no_links(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    entries = {**HOSTILE, **REFUSED}[kind]
    site = Scripted(
        tmp_path,
        {
            "recurse=false": reply([root_entry()]),
            "/file_metadatas/plugins": reply([root_entry(), *entries]),
            "/file_content/": Reply(body=b"x", headers={"Content-Type": "application/octet-stream"}),
        },
    )
    canary = snapshot(tmp_path)
    await site.run()
    lib = site.agent_root / "var" / "lib"
    found = sorted(str(path.relative_to(lib)) for path in lib.rglob("*"))
    assert [name for name in found if "evil" in name or "link" in name or "fifo" in name] == []
    assert found in ([], ["f"], ["good"])
    assert not any("evil" in name for name in snapshot(tmp_path).keys() - canary.keys())
    assert "Refusing a part of" in caplog.text or "Could not retrieve plugin" in caplog.text
    assert "Traceback" not in caplog.text


async def test_AG_11_a_plugin_is_only_kept_with_the_checksum_it_was_announced_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = [
        root_entry(),
        plugin("bad.rb", b"announced"),
        plugin("good.rb", b"fine"),
        plugin("none.rb", checksum={"type": "none", "value": "{none}"}),
    ]
    bodies = {"bad.rb": b"something else", "good.rb": b"fine", "none.rb": b"x"}
    site = Scripted(
        tmp_path,
        {
            "/file_metadatas/plugins": reply(entries),
            "/file_content/": lambda ask: Reply(
                body=bodies[ask.path.rpartition("/")[2]], headers={"Content-Type": "application/octet-stream"}
            ),
        },
    )
    assert await site.run() == 0
    lib = site.agent_root / "var" / "lib"
    assert sorted(path.name for path in lib.iterdir()) == ["good.rb"]
    assert "its content has the checksum" in caplog.text
    assert "gives no checksum" in caplog.text


async def test_AG_11_more_files_than_allowed_are_not_brought(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/file_metadatas/plugins": reply([root_entry(), *(plugin(f"f{n}") for n in range(20))])})
    assert await site.run(max_plugin_files=10) == 0
    assert "over the limit of 10" in caplog.text
    assert not any("/file_content/" in line for line in site.asked())


async def test_AG_11_a_local_link_in_the_plugin_directory_is_removed_not_followed(tmp_path: Path) -> None:
    site = Scripted(tmp_path)
    lib = site.agent_root / "var" / "lib"
    lib.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    (lib / "facter").symlink_to(outside)
    (lib / "old.rb").write_text("gone on the master")
    assert await site.run() == 0
    assert list(lib.iterdir()) == []
    assert (outside / "canary").read_text() == "canary"


async def test_AG_11_pluginfacts_keep_their_mode_but_not_a_dangerous_one(tmp_path: Path) -> None:
    entries = [root_entry(), plugin("run.sh", b"#!/bin/sh\necho a=1\n", mode=0o6777)]
    site = Scripted(
        tmp_path,
        {
            "/file_metadatas/pluginfacts": reply(entries),
            "/file_content/": Reply(body=b"#!/bin/sh\necho a=1\n", headers={"Content-Type": "application/octet-stream"}),
        },
    )
    assert await site.run() == 0
    assert (site.agent_root / "var" / "facts.d" / "run.sh").stat().st_mode & 0o7777 == 0o755


@needs_root
async def test_AG_12_programs_that_others_can_change_are_not_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ran = tmp_path / "ran"
    folder = tmp_path / "facts.d"
    folder.mkdir()
    for name, mode, owner in (("world", 0o757, 0), ("group", 0o775, 0), ("foreign", 0o755, 4321)):
        path = folder / name
        path.write_text(f"#!/bin/sh\ntouch {ran}\necho {name}=1\n")
        path.chmod(mode)
        os.chown(path, owner, 4321)
    assert await external_facts([folder], environ={"PATH": "/usr/bin:/bin"}) == {}
    assert not ran.exists()
    assert caplog.text.count("Not running the external fact") == 3


async def test_AG_12_reserved_names_are_not_overridden(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.yaml").write_text("trusted: {certname: evil}\nclientcert: evil\nfacts: {}\nfine: 1\n")
    found = await gather(Host(environ={"PATH": "/bin", "FACTER_clientcert": "evil"}), Sources(external=[tmp_path]), [])
    assert (found.get("trusted"), found.get("clientcert"), found["fine"]) == (None, None, 1)
    assert "these names are reserved" in caplog.text


@pytest.mark.slow
async def test_R_37_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    path = tmp_path / "stuck"
    path.write_text(f"#!/bin/sh\ntrap '' TERM\n(trap '' TERM; sleep 300) &\necho $! > {pid}\nwait\n")
    path.chmod(0o755)
    assert await external_facts([tmp_path], environ={"PATH": "/usr/bin:/bin"}, limits=ProgramLimits(seconds=0.5)) == {}
    child = Path(f"/proc/{pid.read_text().strip()}")
    assert not child.exists() or "Z" in (child / "stat").read_text()


@needs_root
@pytest.mark.parametrize("kind", ["link", "foreign", "open", "file", "dangling"])
def test_AG_16_a_directory_that_somebody_prepared_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "state"
    target = tmp_path / "target"
    target.mkdir()
    if kind in ("link", "dangling"):
        path.symlink_to(target if kind == "link" else tmp_path / "none")
        os.lchown(path, 4321, 4321)
    elif kind == "file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777 if kind == "open" else 0o755)
        if kind == "foreign":
            os.chown(path, 4321, 4321)
    with pytest.raises(ConfigError):
        secure([path])
    assert list(target.iterdir()) == []


def test_AG_16_missing_directories_are_made_private_and_links_of_root_are_followed(tmp_path: Path) -> None:
    secure([tmp_path / "a" / "b"])
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o750
    (tmp_path / "link").symlink_to(tmp_path / "a")
    secure([tmp_path / "link"])


@pytest.mark.parametrize("kind", ["html", "cut off", "no authority", "10,000", "empty", "large"])
async def test_AG_17_a_ca_certificate_that_cannot_be_one_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    leaf = bundles.dump([real.sign("x", KeyKind("ec").generate().public_key())])
    body = {
        "html": b"<html>-----BEGIN</html>",
        "cut off": real.pem[:-30],
        "no authority": leaf,
        "10,000": real.pem * 10_000,
        "empty": b"",
        "large": b"x" * 5_000_000,
    }[kind]
    master = ca_master(real, tmp_path, body=body)

    def connect(trust: Verifier | None) -> Client:
        return Client(trust, limits=Limits(body=2_000_000))

    bootstrap = bootstrapping(tmp_path / "ssl", master)
    bootstrap._connect = connect
    async with master.running():
        bootstrap.site = Site("localhost", master.port)
        with pytest.raises((PeerError, TooLarge, BadData)):
            await bootstrap.run()
    assert not (tmp_path / "ssl" / "certs" / "ca.pem").exists()


@pytest.mark.parametrize("kind", ["html", "cut off", "of another"])
async def test_AG_17_an_own_certificate_that_cannot_be_read_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    other = bundles.dump([real.sign(NAME, KeyKind("ec").generate().public_key())])
    body = {"html": b"<html>", "cut off": other[:-40], "of another": other}[kind]
    master = ca_master(real, tmp_path)
    plain = master.answer
    master.answer = lambda ask: Reply(body=body) if ask.path.endswith(f"/certificate/{NAME}") else plain(ask)
    async with master.running():
        with pytest.raises(PuppetError):
            await bootstrapping(tmp_path / "ssl", master).run()
    assert not (tmp_path / "ssl" / "certs" / f"{NAME}.pem").exists()
