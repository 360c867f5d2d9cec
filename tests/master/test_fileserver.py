from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from master.termini.files import ContentServer, MetadataServer
from master.termini.mounts import FileServer, parse, served_mounts_of
from shared.errors import BadName, ConfigError, NotFound
from shared.indirector import Binding, Client, NotAuthorizedByTerminus, Request
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.wire.dialects import LEGACY, MODERN, Dialect


def matcher(allow: Sequence[str], deny: Sequence[str], client: Client) -> bool | None:
    """Stands in for the patterns of auth.conf: exact names and `*`."""
    if "*" in allow or client.name in allow:
        return True
    return False if client.name in deny else None


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for path, text in {
        "one/web/files/a.txt": "first",
        "one/web/files/dir/b.txt": "b",
        "one/web/lib/facter/x.py": "x",
        "one/web/facts.d/x.txt": "x=1",
        "two/web/files/a.txt": "hidden by the first",
        "two/db/lib/facter/x.py": "later",
        "two/db/lib/puppet/y.py": "y",
        "two/Not-A-Module/lib/z.py": "z",
        "mount/host.example.com/secret": "mine",
        "outside": "secret",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "one/web/files/escape").symlink_to("../../../outside")
    return tmp_path


def server(code: Path, conf: str = "") -> FileServer:
    (code / "fileserver.conf").write_text(conf)

    def modulepath(environment: str, version: str = "") -> list[Path]:
        if environment != "production":
            raise NotFound(f"Could not find environment '{environment}'")
        return [code / "one", code / "two", code / "missing"]

    return FileServer(code / "fileserver.conf", modulepath, matcher, filetimeout=0)


def asked(key: str, dialect: Dialect = MODERN, name: str = "host.example.com", **options: str) -> Request:  # type: ignore[type-arg]
    return Request(key=key, options=options, dialect=dialect, client=Client(name, "127.0.0.1", True))


async def text_of(files: FileServer, key: str) -> str | None:
    found = await Binding(FILE_CONTENT, ContentServer(files)).find(asked(key))
    return None if found is None else b"".join([chunk async for chunk in found.chunks()]).decode()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("modules/web/a.txt", "first"),
        ("modules/web/dir/b.txt", "b"),
        ("modules/web/nothing", None),
        ("modules/nobody/a", None),
        ("modules/Not-A-Module/a", None),
        ("modules/web/escape", None),
        ("plugins/facter/x.py", "x"),
        ("plugins/puppet/y.py", "y"),
        ("plugins/z.py", None),
        ("pluginfacts/x.txt", "x=1"),
    ],
)
async def test_a_key_names_a_file_of_a_module(code: Path, key: str, text: str | None) -> None:
    assert await text_of(server(code), key) == text


@pytest.mark.parametrize("key", ["modules/web/../../x", "modules/../x", "plugins/../../x", "modules/web/a\x00"])
async def test_a_key_that_climbs_is_refused(code: Path, key: str) -> None:
    with pytest.raises(BadName):
        await text_of(server(code), key)


@pytest.mark.parametrize("key", ["nomount/x", "modules&/x", "", "etc/passwd"])
async def test_an_unknown_mount_is_not_authorized(code: Path, key: str) -> None:
    with pytest.raises(NotAuthorizedByTerminus):
        await text_of(server(code), key)


async def test_a_custom_mount_fills_in_the_clients_name(code: Path) -> None:
    files = server(code, f"[private]\n  path {code}/mount/%H\n  allow *\n")
    assert await text_of(files, "private/secret") == "mine"
    other = await Binding(FILE_CONTENT, ContentServer(files)).find(asked("private/secret", name="other.example.com"))
    assert other is None


@pytest.mark.parametrize(("dialect", "served"), [(LEGACY, False), (MODERN, True)])
async def test_a_mount_without_patterns_is_closed_to_3x_and_open_to_later(code: Path, dialect: Dialect, served: bool) -> None:
    files = Binding(FILE_METADATA, MetadataServer(server(code, f"[m]\n  path {code}/mount\n"), digest="sha256"))
    if served:
        assert await files.find(asked("m/host.example.com/secret", dialect)) is not None
    else:
        with pytest.raises(NotAuthorizedByTerminus):
            await files.find(asked("m/host.example.com/secret", dialect))


async def test_patterns_decide_in_both(code: Path) -> None:
    files = server(code, f"[m]\n  path {code}/mount\n  allow good\n  deny *\n")
    for dialect in (LEGACY, MODERN):
        assert files.allowed(asked("m/x", dialect, name="good"))
        assert not files.allowed(asked("m/x", dialect, name="bad"))


async def test_metadata_is_summed_as_the_clients_age_expects(code: Path) -> None:
    files = Binding(FILE_METADATA, MetadataServer(server(code), digest="sha256"))
    for dialect, options, kind in [
        (LEGACY, {}, "md5"),
        (LEGACY, {"checksum_type": "sha256"}, "md5"),
        (MODERN, {}, "sha256"),
        (MODERN, {"checksum_type": "sha512"}, "sha512"),
    ]:
        found = await files.find(asked("modules/web/a.txt", dialect, **options))
        assert found is not None and found.checksum is not None
        assert found.checksum.type == kind and (found.checksum.value or "").startswith(f"{{{kind}}}")


async def test_plugins_are_the_trees_of_all_modules_merged(code: Path) -> None:
    files = Binding(FILE_METADATA, MetadataServer(server(code), digest="sha256"))
    found = await files.search(asked("plugins/ignored/sub/path", recurse="true"))
    assert {each.relative_path for each in found or []} == {".", "facter", "facter/x.py", "puppet", "puppet/y.py"}
    (fact,) = [each for each in found or [] if each.relative_path == "facter/x.py"]
    assert fact.path == str(code / "one/web/lib")


async def test_without_any_plugin_the_answer_is_the_root_alone(tmp_path: Path) -> None:
    (tmp_path / "modules" / "m" / "manifests").mkdir(parents=True)
    files = FileServer(tmp_path / "none", lambda environment, version="": [tmp_path / "modules"], matcher)
    found = await Binding(FILE_METADATA, MetadataServer(files, digest="sha256")).search(asked("locales", recurse="true"))
    assert [each.relative_path for each in found or []] == ["."]


async def test_without_any_module_folder_the_environment_itself_answers(tmp_path: Path) -> None:
    files = FileServer(
        tmp_path / "none", lambda environment, version="": [tmp_path / "missing"], matcher, root=lambda environment: tmp_path
    )
    found = await Binding(FILE_METADATA, MetadataServer(files, digest="sha256")).search(asked("plugins", recurse="true"))
    assert [(each.relative_path, each.path) for each in found or []] == [(".", str(tmp_path))]


async def test_a_tree_is_listed_from_its_root(code: Path) -> None:
    files = Binding(FILE_METADATA, MetadataServer(server(code), digest="sha256"))
    found = await files.search(asked("modules/web", recurse="true", ignore="dir"))
    assert [each.relative_path for each in found or []] == [".", "a.txt", "escape"]
    assert await files.search(asked("modules/web/nothing")) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path /x", "before the first"),
        ("[a]\npath = /x", "Invalid argument 'path'"),
        ("[a]\nfoo x", r"Invalid argument 'foo' \(line: 2\)"),
        ("[a]\n[a]", "already mounted"),
        ("[a b]\npath /x", "before the first"),
    ],
)
def test_a_broken_fileserver_conf_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


def test_what_cannot_be_served_is_left_out_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mounts = served_mounts_of(parse(f"[gone]\npath {tmp_path}/gone\n[nopath]\nallow *\n[modules]\npath /x\nallow a\n"))
    assert set(mounts) == {"modules", "plugins", "pluginfacts", "locales", "tasks", "scripts"}
    assert mounts["modules"].path is None and mounts["modules"].allow == ("a",)
    assert "Removing mount 'gone'" in caplog.text and "nopath" in caplog.text


def test_a_file_that_breaks_later_leaves_the_old_mounts(code: Path) -> None:
    files = server(code, f"[m]\npath {code}/mount\nallow *\n")
    assert "m" in files.mounts()
    (code / "fileserver.conf").write_text("[m]\nnonsense\n")
    assert "m" in files.mounts()


def test_the_mounts_are_read_again_before_their_time_when_everything_is_to_be(tmp_path: Path) -> None:
    conf, generation = tmp_path / "fileserver.conf", 0
    conf.write_text(f"[one]\npath {tmp_path}\nallow *\n")
    os.utime(conf, (1, 1))
    server = FileServer(
        conf, lambda name, version="": [], lambda allow, deny, client: True, filetimeout=3600, generation=lambda: generation
    )
    assert "one" in server.mounts()
    conf.write_text(f"[two]\npath {tmp_path}\nallow *\n")
    os.utime(conf, (1, 1))  # what differs is only in the content
    assert "two" not in server.mounts()
    generation = 1
    assert "two" in server.mounts()
