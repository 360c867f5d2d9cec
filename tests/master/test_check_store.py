"""What `puppet master --check` says about the store and about a PuppetDB: one thing wrong at a time."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest

from master.checks import ports, store
from master.checks.findings import Finding
from shared.settings import MasterSettings, load
from shared.settings.conf import parse
from shared.settings.store import SERVING_DEFAULTS
from tests.support.fake_puppetdb import ANSWERS, in_a_thread
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa

VERSION = Reply(body=b'{"version" : "7.12.1"}')
NO_OTHER = "store = auto, no PuppetDB configured"

Site = Callable[..., MasterSettings]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Makes the settings of a master from the lines of a puppet.conf and from files beside it."""

    def settings(*lines: str, files: Mapping[str, str] | None = None, **flags: Any) -> MasterSettings:
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        places = {
            "confdir": str(tmp_path),
            "vardir": str(tmp_path / "var"),
            "rundir": str(tmp_path),
            "user": "root",
            "certname": "localhost",
        }
        conf = parse("\n".join(["[server]", *lines]), tmp_path / "puppet.conf")
        return load(MasterSettings, section="master", flags={**places, **flags}, application=SERVING_DEFAULTS, conf=conf)

    return settings


def findings_of(settings: MasterSettings) -> list[tuple[str, str]]:
    """All findings but the notice, as severity and message; paths begin below confdir."""
    found = [finding for finding in store.check(settings) if finding.severity != "notice"]
    assert all(finding.area == "store" and finding.hint for finding in found)
    return [(finding.severity, finding.message.replace(f"{settings.confdir}/", "")) for finding in found]


CHOICES = {
    "nothing is said": ([], {}, "Using the built-in SQLite store in var/store", NO_OTHER),
    "storeconfigs": (
        ["storeconfigs = true"],
        {},
        "The built-in store is off",
        "store = auto, and storeconfigs (file: puppet.conf, line: 2) decides where facts, catalogs and reports go",
    ),
    "a file": (
        [],
        {"routes.yaml": ""},
        "The built-in store is off",
        "store = auto, and routes.yaml decides where facts, catalogs and reports go",
    ),
    "said": (
        ["ca = false", "store = sqlite"],
        {},
        "Using the built-in SQLite store in var/store",
        "store = sqlite (file: puppet.conf, line: 3)",
    ),
    "a file of SQLite": (
        ["store = sqlite:////x"],
        {},
        "Using the built-in SQLite store in /x",
        "store = sqlite:////x (file: puppet.conf, line: 2)",
    ),
    "PostgreSQL": (
        ["store = postgresql://me:secret@db:99/puppet?password=secret"],
        {},
        "Using the built-in store, on PostgreSQL at db:99/puppet",
        "store (file: puppet.conf, line: 2)",
    ),
    "a PuppetDB": (["store = puppetdb"], {}, "Using the PuppetDB of puppetdb.conf", "store = puppetdb (file: puppet.conf, line: 2)"),
}


@pytest.mark.parametrize(("lines", "files", "place", "reason"), CHOICES.values(), ids=CHOICES.keys())
def test_the_store_is_named_with_the_setting_or_file_that_decides(
    site: Site, lines: list[str], files: dict[str, str], place: str, reason: str
) -> None:
    settings = site(*lines, files=files)
    assert store.store_choice(settings).replace(f"{settings.confdir}/", "") == f"{place}: {reason}"


def test_an_option_of_the_command_line_is_named_as_such(site: Site) -> None:
    assert store.store_choice(site("store = sqlite", store="none")) == "The built-in store is off: store = none on the command line"


@pytest.mark.slow
def test_a_new_master_has_nothing_wrong_with_its_store(site: Site) -> None:
    settings = site()
    assert store.check(settings) == [Finding("store", "notice", f"Using the built-in SQLite store in {settings.store_dir}: {NO_OTHER}")]
    assert not settings.vardir.exists()


# The lines of puppet.conf, files, and the findings.
PUPPETDB = "[main]\nserver_urls = https://db:8081\n"
DISAGREEMENTS: dict[str, tuple[list[str], dict[str, str], list[tuple[str, str]]]] = {
    "a puppetdb.conf that nobody uses": (
        [],
        {"puppetdb.conf": PUPPETDB},
        [("warning", "puppetdb.conf is there, but nothing is sent to a PuppetDB")],
    ),
    "a puppetdb.conf beside a store": (
        ["store = sqlite"],
        {"puppetdb.conf": PUPPETDB},
        [("warning", "puppetdb.conf is not read: the master has a store of its own")],
    ),
    "storeconfigs off beside a store": (
        ["storeconfigs = false"],
        {},
        [("warning", "storeconfigs = false (file: puppet.conf, line: 2) does not count: a store switches it on")],
    ),
    "routes that lead past the store": (
        ["store = sqlite"],
        {"routes.yaml": "server:\n  facts: {terminus: yaml, cache: json}\n  catalog: {cache: json}\n"},
        [("warning", "The store gets no facts and no catalogs")],
    ),
    "routes that lead to the store": (["store = sqlite"], {"routes.yaml": "server:\n  facts: {terminus: puppetdb, cache: yaml}\n"}, []),
    "only reports": (["reports = puppetdb"], {"puppetdb.conf": PUPPETDB}, [("warning", "The PuppetDB gets no facts and no catalogs")]),
    "no reports": (["storeconfigs = true"], {"puppetdb.conf": PUPPETDB}, [("warning", "The PuppetDB gets no reports")]),
    "only a cache of catalogs": (
        ["catalog_cache_terminus = puppetdb"],
        {"puppetdb.conf": PUPPETDB},
        [("warning", "The PuppetDB gets no facts and no reports")],
    ),
    "everything": (["storeconfigs = true", "reports = store,puppetdb"], {"puppetdb.conf": PUPPETDB}, []),
    "no puppetdb.conf": (["store = puppetdb"], {}, [("warning", "There is no puppetdb.conf: the PuppetDB is https://puppetdb:8081")]),
    "settings that do not count": (
        ["store = puppetdb"],
        {"puppetdb.conf": f"{PUPPETDB}server_url = x\n[extra]\nserver_urls = https://a\ncolour = blue\n"},
        [
            ("warning", "Unknown setting server_url in [main] of puppetdb.conf. Did you mean server_urls?"),
            ("warning", "server_urls in [extra] of puppetdb.conf does not count: only [main] does"),
            ("warning", "Unknown setting colour in [extra] of puppetdb.conf."),
        ],
    ),
}


@pytest.mark.parametrize(("lines", "files", "expected"), DISAGREEMENTS.values(), ids=DISAGREEMENTS.keys())
@pytest.mark.slow
def test_settings_and_files_that_do_not_agree_are_named(
    site: Site, lines: list[str], files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    settings = site(*lines, files=files)
    assert [(severity, message.replace(f"{settings.confdir}/", "")) for severity, message in findings_of(settings)] == expected


class TestPuppetDbServers:
    """Each case: the answers of the servers, lines of puppetdb.conf, and of each server's finding severity and a part of the message."""

    CASES: ClassVar[dict[str, tuple[list[Reply | None], list[str], list[tuple[str, str]]]]] = {
        "it answers": ([VERSION], [], []),
        "nobody listens": ([None], [], [("error", "Cannot connect")]),
        "failures are forgiven": ([None], ["soft_write_failure = true"], [("warning", "Cannot connect")]),
        "another one answers": ([ANSWERS["503"], VERSION], [], [("warning", "not the answer of a PuppetDB: [503")]),
        "both have to": (
            [ANSWERS["silent"], VERSION],
            ["command_broadcast = true", "min_successful_submissions = 2", "server_url_timeout = 1"],
            [("error", "No answer within 1 seconds")],
        ),
        "not on its list": ([Reply(403, b"Permission denied: x")], [], [("error", "[403 ")]),
        "another program": ([Reply(200, b"[]")], [], [("error", "not the answer of a PuppetDB")]),
    }

    @pytest.fixture
    def serve(self, tmp_path: Path) -> Iterator[Callable[[list[Reply | None]], list[str]]]:
        ca = ThrowAwayCa.new()
        ca.ssldir(tmp_path / "ssl", "localhost")
        with ExitStack() as stack:

            def start(replies: list[Reply | None]) -> list[str]:
                urls = []
                for reply in replies:
                    if reply is None:
                        with socket.create_server(("127.0.0.1", 0)) as closed:
                            urls.append(f"https://localhost:{closed.getsockname()[1]}")
                        continue

                    def answer(ask: Ask, reply: Reply = reply) -> Reply:
                        assert (ask.path, ask.certname) == ("/pdb/meta/v1/version", "localhost")
                        return reply

                    server = FakeMaster(ca.serving(tmp_path), answer)
                    stack.enter_context(in_a_thread(server))
                    urls.append(f"https://localhost:{server.port}")
                return urls

            yield start

    @pytest.mark.parametrize(("replies", "lines", "expected"), CASES.values(), ids=CASES.keys())
    @pytest.mark.slow
    def test_its_servers_are_asked_with_the_certificate_of_this_host(
        self,
        site: Site,
        serve: Callable[[list[Reply | None]], list[str]],
        replies: list[Reply | None],
        lines: list[str],
        expected: list[tuple[str, str]],
    ) -> None:
        urls = serve(replies)
        conf = "\n".join(["[main]", f"server_urls = {', '.join(urls)}", *lines, ""])
        found = findings_of(site("ca = false", "store = puppetdb", files={"puppetdb.conf": conf}))
        assert [severity for severity, _ in found] == [severity for severity, _ in expected], found
        assert all(part in message for (_, message), (_, part) in zip(found, expected, strict=True)), found

    def test_a_server_with_a_certificate_of_another_ca_is_named(self, site: Site, tmp_path: Path) -> None:
        ThrowAwayCa.new().ssldir(tmp_path / "ssl", "localhost")
        server = FakeMaster(ThrowAwayCa.new().serving(tmp_path), lambda ask: VERSION)
        with in_a_thread(server):
            conf = f"[main]\nserver_urls = https://localhost:{server.port}\n"
            ((severity, message),) = findings_of(site("ca = false", "store = puppetdb", files={"puppetdb.conf": conf}))
        assert severity == "error" and "CERTIFICATE_VERIFY_FAILED" in message


def a_database(path: Path, statements: str) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(statements)
    connection.close()


# What store.sqlite holds, and what is said about it.
DATABASES = {
    "no database": ("not a database, but a text that is long enough to be looked at" * 20, "cannot be opened: file is not a database"),
    "tables of another program": ("CREATE TABLE reports (x)", "tables of the same names as the store's, but no version of them"),
    "a newer version": (
        "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('999')",
        "written by a newer version of this program",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "message"), DATABASES.values(), ids=DATABASES.keys())
def test_a_database_that_the_store_cannot_use_is_named(site: Site, content: str, message: str) -> None:
    settings = site()
    path = settings.store_dir / "store.sqlite"
    if content.startswith("CREATE"):
        a_database(path, content)
    else:
        path.parent.mkdir(parents=True)
        path.write_text(content)
    before = path.stat().st_mtime_ns
    ((severity, said),) = findings_of(settings)
    assert severity == "error" and message in said
    assert (path.stat().st_mtime_ns, list(path.parent.iterdir())) == (before, [path])


@pytest.mark.slow
def test_a_postgresql_that_does_not_answer_is_named(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ((severity, said),) = findings_of(site(f"store = postgresql://me:secret@127.0.0.1:{port}/puppet"))
    assert severity == "error" and "Connection refused" in said and "secret" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "names", "expected"),
    [
        (["store_port = 8081"], "web1.example.com\n# a comment\n\n", []),
        (["store_port = 8081"], None, [("error", "Could not read allowed: [Errno 2] No such file or directory: 'allowed'")]),
        (["store_port = 8081"], "Web 1\n", [("warning", "allowed: 'Web 1' is no certname: ")]),
        (["store_port = 8081"], "", [("warning", "allowed is empty: all clients are refused at store_port")]),
        ([], "web1.example.com\n", [("warning", "store_allowlist protects store_port only, which is 0")]),
    ],
)
def test_a_list_of_certnames_is_read(
    site: Site, tmp_path: Path, lines: list[str], names: str | None, expected: list[tuple[str, str]]
) -> None:
    files = {} if names is None else {"allowed": names}
    found = findings_of(site(f"store_allowlist = {tmp_path / 'allowed'}", *lines, files=files))
    assert len(found) == len(expected)
    for (severity, message), (expected_severity, part) in zip(found, expected, strict=True):
        assert severity == expected_severity and message.startswith(part)


@pytest.mark.slow
def test_a_disk_with_less_room_than_the_queue_may_take_is_named(site: Site) -> None:
    ((severity, message),) = findings_of(site("store_queue_bytes = 1000000GiB"))
    assert severity == "warning" and message.endswith("; pending commands may take 1024000000 MiB")


@pytest.mark.slow
def test_a_socket_whose_path_is_too_long_is_named(site: Site) -> None:
    ((severity, message),) = findings_of(site(f"store_socket = /{'x' * 107}"))
    assert (severity, message) == ("error", f"The path of the store's socket has more than 107 bytes: /{'x' * 107}")


def test_ports_and_the_socket_of_the_store_are_tried(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket(socket.AF_UNIX) as another:
        port = other.getsockname()[1]
        another.bind(str(tmp_path / "s"))
        another.listen()
        lines = [f"store_port = {port}", "store_bindaddress = 127.0.0.1", f"store_plain_port = {port}", f"store_socket = {tmp_path / 's'}"]
        found = list(ports.check(site(*lines, masterport="0")))
    assert [finding.message for finding in found] == [
        f"Cannot listen at {tmp_path / 's'}: Address already in use",
        f"Cannot listen on 127.0.0.1 port {port}: Address already in use",
        f"Cannot listen on 127.0.0.1 port {port}: Address already in use",
    ]
    assert [finding.hint.rpartition(" ")[2] for finding in found] == ["store_socket.", "store_port.", "store_plain_port."]


def test_two_settings_with_one_port_are_noticed(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = [f"store_port = {port}", "store_bindaddress = 127.0.0.1", f"store_plain_port = {port}"]
    (finding,) = ports.check(site(*lines, masterport="0"))
    assert finding.message == f"Cannot listen on 127.0.0.1 port {port}: Address already in use" and "store_plain_port" in finding.hint
