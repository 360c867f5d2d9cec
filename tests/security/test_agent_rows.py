"""The agent's rows of the attack table: what it is given, and where it runs."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.facts.builtin.host import Host
from agent.facts.external import ExternalFactLimits as ProgramLimits
from agent.facts.external import external_facts
from agent.facts.facter import FactSources, gather
from agent.process.agent import state_directories
from agent.process.process_environment import clean_environment, public_directory_modes, secure_directories, set_search_path
from shared.errors import ConfigError
from shared.settings import AgentSettings, Conf, load
from tests.support.fake_server import Reply
from tests.support.needs import needs_root
from tests.support.scripted_master import JSON, NAME, Scripted, catalog, file, reply, root_entry


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


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
    cleaned = clean_environment(hostile, home="/root", user="root")
    assert set(cleaned) == {"LC_ALL", "FACTER_role", "PATH", "HOME", "USER", "LOGNAME"}
    assert cleaned["HOME"] == "/root"
    assert not cleaned["PATH"].startswith(".")


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


async def test_AG_09_a_catalog_with_a_type_that_is_not_known_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "applied"
    strange = {"type": "Nosuch", "title": "x", "tags": [], "exported": False, "kind": "compilable_type"}
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(strange, file(path, "x"), catalog_format=2))})
    assert await site.run() == 1
    assert not path.exists()
    assert "Failed to apply catalog: Could not find resource type 'nosuch'" in caplog.text


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
    folder, shared = tmp_path / "facts.d", tmp_path / "shared"
    folder.mkdir()
    shared.mkdir(mode=0o700)
    (shared / "own").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (shared / "own").chmod(0o755)
    shared.chmod(0o777)
    for name, mode, owner in (("world", 0o757, 0), ("group", 0o775, 0), ("foreign", 0o755, 4321)):
        path = folder / name
        path.write_text(f"#!/bin/sh\ntouch {ran}\necho {name}=1\n")
        path.chmod(mode)
        os.chown(path, owner, 4321)
    assert await external_facts([folder, shared], environ={"PATH": "/usr/bin:/bin"}) == {}
    assert not ran.exists()
    assert caplog.text.count("Not running the external fact") == 4
    assert "/shared': everybody may write to it" in caplog.text  # which of the two it is


async def test_AG_12_reserved_names_are_not_overridden(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.yaml").write_text("trusted: {certname: evil}\nclientcert: evil\nfacts: {}\nfine: 1\n")
    found = await gather(Host(environ={"PATH": "/bin", "FACTER_clientcert": "evil"}), FactSources(external=[tmp_path]), [])
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
        secure_directories([path])
    assert list(target.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_one_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"Could not create /proc/none/state: .*: /proc/none$") as error:
        secure_directories([Path("/proc/none/state")])  # where nobody can make one
    assert "--confdir" in error.value.hint


def test_AG_16_missing_directories_are_made_private_and_links_of_root_are_followed(tmp_path: Path) -> None:
    secure_directories([tmp_path / "a" / "b"])
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o750
    (tmp_path / "link").symlink_to(tmp_path / "a")
    secure_directories([tmp_path / "link"])


def test_AG_16_others_get_through_to_the_public_directory_and_see_nothing_else(tmp_path: Path) -> None:
    settings = load(AgentSettings, section="agent", flags={"vardir": str(tmp_path / "var")}, conf=Conf())
    made, _ = state_directories(settings)
    secure_directories(made, public_directory_modes(settings))
    open_to_others = {path.name: path.stat().st_mode & 0o007 for path in (settings.vardir, *settings.vardir.iterdir())}
    assert {name: mode for name, mode in open_to_others.items() if mode} == {"var": 0o001, "public": 0o005}


@pytest.mark.parametrize(
    ("path", "found"),
    [("none", "/bin"), ("/a:/b", "/a:/b:/usr/sbin:/sbin"), ("/sbin:/a", "/sbin:/a:/usr/sbin"), ("", "/usr/sbin:/sbin")],
)
def test_AG_07_programs_are_looked_for_where_the_setting_path_says(path: str, found: str) -> None:
    environ = {"PATH": "/bin"}
    set_search_path(path, environ)
    assert environ["PATH"] == found
