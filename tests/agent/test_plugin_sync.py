"""Plugin sync: what is fetched, removed and left alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.plugins.pluginsync import LocalEntry, PluginLimits, PluginMount, PluginSync, local_entries, plan_sync
from agent.servers.sources import SourceRouter
from shared.errors import ConfigError, NotFound, TooLarge, Unsupported
from shared.indirector.core import Binding, Request, Terminus
from shared.models.file_content import FILE_CONTENT, FileContent
from shared.models.file_metadata import FILE_METADATA, FileMetadata
from shared.testing import pieces


def entry(relative: str, content: bytes | None = b"x", **changes: Any) -> FileMetadata:
    digest = hashlib.sha256(content or b"").hexdigest()
    data = {
        "path": "/m",
        "relative_path": relative,
        "type": "directory" if content is None else "file",
        "mode": 420,
        "checksum": {"type": "ctime", "value": "{ctime}x"} if content is None else {"type": "sha256", "value": "{sha256}" + digest},
    }
    return FileMetadata.from_data({**data, **changes})


ROOT = entry(".", None)


def planned(entries: Sequence[FileMetadata], local: dict[str, LocalEntry], ignore: Sequence[str] = ()) -> tuple[Any, ...]:
    found = plan_sync([ROOT, *entries], local, ignore, PluginLimits())
    return found.remove, found.directories, tuple(each.relative_path for each in found.files)


FILE, FOLDER, OTHER = LocalEntry("file", 0o644), LocalEntry("directory", 0o755), LocalEntry("other", 0o777)


@pytest.mark.parametrize(
    ("entries", "local", "ignore", "expected"),
    [
        ([], {}, [], ((), (), ())),
        ([entry("a"), entry("d", None), entry("d/b")], {}, [], ((), ("d",), ("a", "d/b"))),
        ([entry("a")], {"old": FILE, "dir": FOLDER, "dir/x": FILE}, [], (("dir", "old"), (), ("a",))),
        ([entry("a", None), entry("a/b")], {"a": FILE}, [], (("a",), ("a",), ("a/b",))),
        ([entry("a")], {"a": FOLDER, "a/b": FILE}, [], (("a",), (), ("a",))),
        ([entry("a")], {"a": OTHER}, [], (("a",), (), ("a",))),
        ([], {".git": FOLDER, ".git/x": FILE, "__pycache__": FOLDER, "y": FILE}, [".git"], (("y",), (), ())),
    ],
)
def test_the_plan_makes_the_local_tree_equal(
    entries: Sequence[FileMetadata], local: dict[str, LocalEntry], ignore: Sequence[str], expected: tuple[Any, ...]
) -> None:
    assert planned(entries, local, ignore) == expected


def test_more_entries_than_allowed_are_no_plan() -> None:
    with pytest.raises(TooLarge, match="over the limit of 2"):
        plan_sync([ROOT, entry("a"), entry("b")], {}, (), PluginLimits(files=2))


class Metadata(Terminus[FileMetadata]):
    def __init__(self, entries: list[FileMetadata] | None) -> None:
        self.entries = entries
        self.requests: list[Request[FileMetadata]] = []

    async def search(self, request: Request[FileMetadata]) -> list[FileMetadata] | None:
        self.requests.append(request)
        return self.entries


class Content(Terminus[FileContent]):
    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []

    async def find(self, request: Request[FileContent]) -> FileContent | None:
        self.asked.append(request.key)
        body = self.files.get(request.key)
        return None if body is None else FileContent(name=request.key, chunks=lambda: pieces(body))


class Site:
    """A master's plugins and a local directory."""

    def __init__(self, root: Path, files: dict[str, bytes] | None) -> None:
        self.destination = root / "lib"
        self.files = files or {}
        folders = {"/".join(name.split("/")[:depth]) for name in self.files for depth in range(1, name.count("/") + 1)}
        entries = [ROOT, *(entry(name, None) for name in folders), *(entry(name, body) for name, body in self.files.items())]
        self.metadata = Metadata(entries if files is not None else None)
        self.content = Content({f"plugins/{name}": body for name, body in self.files.items()})
        self.sync = PluginSync(
            SourceRouter(Binding(FILE_METADATA, self.metadata), Binding(FILE_CONTENT, self.content), environment="production")
        )
        self.mount = PluginMount("plugin", "puppet:///plugins", self.destination)

    def tree(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.destination)): p.read_bytes() for p in sorted(self.destination.rglob("*")) if p.is_file()}


async def test_a_second_sync_fetches_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    site = Site(tmp_path, {"facter/a.rb": b"a", "puppet/type/t.rb": b"t" * 100_000, "with space & ü%41.rb": b"s"})
    first = await site.sync.sync(site.mount)
    assert sorted(first.fetched) == sorted(site.files)
    assert site.tree() == site.files
    assert (site.destination / "facter/a.rb").stat().st_mode & 0o777 == 0o644
    created = [record for record in caplog.records if record.getMessage() == "created"]
    assert [vars(each)["source"] for each in created] == [
        f"/File[{site.destination}/{folder}]/ensure" for folder in ("facter", "puppet", "puppet/type")
    ]
    caplog.clear()
    second = await site.sync.sync(site.mount)
    assert not second.changed
    assert len(site.content.asked) == 3
    assert "created" not in caplog.text


async def test_only_what_differs_is_fetched_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    site = Site(tmp_path, {"a.rb": b"a", "b.rb": b"b"})
    await site.sync.sync(site.mount)
    (site.destination / "a.rb").write_bytes(b"changed")
    (site.destination / "old" / "deep").mkdir(parents=True)
    (site.destination / "old" / "deep" / "x.rb").write_bytes(b"x")
    site.content.asked.clear()
    done = await site.sync.sync(site.mount)
    assert (done.fetched, done.removed, done.failed) == (["a.rb"], ["old"], 0)
    assert site.content.asked == ["plugins/a.rb"]
    assert site.tree() == site.files


@pytest.mark.parametrize(("legacy", "more"), [(True, {}), (False, {"max_files": "-1", "unserved": "true"})])
async def test_the_search_says_how_links_modes_and_checksums_are_wanted(tmp_path: Path, legacy: bool, more: dict[str, str]) -> None:
    site = Site(tmp_path, {})
    site.sync.legacy = legacy
    await site.sync.sync(site.mount)
    request = site.metadata.requests[0]
    assert (request.key, request.environment) == ("plugins", "production")
    assert request.options == {
        "recurse": "true",
        "links": "follow",
        "checksum_type": "sha256",
        "source_permissions": "ignore",
        "ignore": [".svn", "CVS", ".git", ".hg"],
        **more,
    }


async def test_plugins_may_come_from_a_directory_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "shared lib" / "facter").mkdir(parents=True)
    (tmp_path / "shared lib" / "facter" / "a.rb").write_bytes(b"a")
    site = Site(tmp_path, {})
    for source in (f"file://{tmp_path}/shared%20lib", f"{tmp_path}/shared lib"):
        done = await site.sync.sync(PluginMount("plugin", source, tmp_path / source.replace("/", "_")))
        assert done.fetched == ["facter/a.rb"]
    with pytest.raises(Unsupported, match="URI protocol 'ftp' is not currently supported for file serving"):
        await site.sync.sync(PluginMount("plugin", "ftp://host/plugins", site.destination))


async def test_a_mount_that_is_not_there_removes_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    site.destination.mkdir()
    (site.destination / "kept.rb").write_bytes(b"x")
    with pytest.raises(NotFound):
        await site.sync.sync(site.mount)
    assert site.tree() == {"kept.rb": b"x"}


async def test_a_file_that_fails_is_counted_and_the_others_come(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(tmp_path, {"a.rb": b"a", "b.rb": b"b"})
    del site.content.files["plugins/a.rb"]
    done = await site.sync.sync(site.mount)
    assert (done.fetched, done.failed) == (["b.rb"], 1)
    assert "Could not find the content of puppet:///plugins/a.rb" in caplog.text
    assert sorted(path.name for path in site.destination.iterdir()) == ["b.rb"]


async def test_a_file_that_is_too_large_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(tmp_path, {"big.rb": b"x" * 5000})
    site.sync.limits = PluginLimits(size=1000)
    done = await site.sync.sync(site.mount)
    assert done.failed == 1
    assert "larger than 1000 bytes" in caplog.text
    assert list(site.destination.iterdir()) == []


async def test_a_destination_that_is_a_link_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path, {"a.rb": b"a"})
    (tmp_path / "elsewhere").mkdir()
    site.destination.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is not a directory"):
        await site.sync.sync(site.mount)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_walking_follows_no_links(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("")
    (tmp_path / "l").symlink_to("/")
    assert {name: each.kind for name, each in local_entries(tmp_path, 100).items()} == {"d": "directory", "d/f": "file", "l": "other"}
