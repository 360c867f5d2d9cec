"""The type file on a real file system: what the recorded cases of `puppet apply` do not cover."""

import asyncio
import hashlib
import os
import stat
import subprocess
import sys

import pytest

from agent.providers.file.source_metadata import Inlined
from shared.filesystem.checksums import Checksum
from shared.models.catalog import Catalog
from shared.ral import Origin
from shared.types.file import File
from shared.types.filebucket import Filebucket
from tests.support.fake_commands import MemorySources, apply, metadata_of


def names(folder):
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_is_written_once_and_then_left_alone(tmp_path):
    path = tmp_path / "a"
    first = await apply(File(str(path), {"content": "hello\n", "mode": "0640"}))
    assert path.read_text() == "hello\n" and stat.S_IMODE(path.stat().st_mode) == 0o640
    inode = path.stat().st_ino
    second = await apply(File(str(path), {"content": "hello\n", "mode": "0640"}))
    assert len(first.events) == 1 and second.events == [] and path.stat().st_ino == inode
    assert names(tmp_path) == ["a"]


async def test_a_source_is_asked_for_metadata_and_only_for_content_when_it_differs(tmp_path):
    path = tmp_path / "a"
    sources = MemorySources({"puppet:///modules/m/f": b"content"})
    await apply(File(str(path), {"source": "puppet:///modules/m/f"}), sources=sources)
    assert path.read_bytes() == b"content"
    assert sources.asked == [("metadata", "puppet:///modules/m/f"), ("content", "puppet:///modules/m/f")]
    sources.asked.clear()
    await apply(File(str(path), {"source": "puppet:///modules/m/f"}), sources=sources)
    assert sources.asked == [("metadata", "puppet:///modules/m/f")]


async def test_a_diff_and_a_change_fetch_the_content_once(tmp_path):
    path = tmp_path / "a"
    path.write_text("old\n")
    sources = MemorySources({"puppet:///modules/m/f": b"new\n"})
    done = await apply(File(str(path), {"source": "puppet:///modules/m/f"}), sources=sources)
    assert any("-old\n+new\n" in message for message in done.messages)
    assert [kind for kind, _ in sources.asked] == ["metadata", "content"]


async def test_a_master_of_3x_that_answers_in_md5_is_understood(tmp_path):
    path = tmp_path / "a"
    url = "puppet:///modules/m/f"
    sources = MemorySources({url: b"x"}, told={url: metadata_of(url, b"x", algorithm="md5")})
    for events in (1, 0):
        done = await apply(File(str(path), {"source": url}), sources=sources)
        assert len(done.events) == events
    assert path.read_bytes() == b"x"


async def test_a_static_catalogs_metadata_spares_the_question(tmp_path):
    path = tmp_path / "a"
    url = "puppet:///modules/m/f"
    inlined = metadata_of("/x", b"content", source=url, content_uri="puppet:///modules/m/files/f")
    catalog = Catalog(name="n", metadata={str(path): inlined.model_dump()})
    sources = MemorySources({url: b"content"})
    await apply(File(str(path), {"source": url}), sources=sources, inlined=Inlined.of(catalog))
    assert path.read_bytes() == b"content"
    assert sources.asked == [("content", "puppet:///modules/m/files/f")]


async def test_a_static_catalogs_tree_spares_the_search(tmp_path):
    path = tmp_path / "d"
    url = "puppet:///modules/m/t"
    top = metadata_of("/t", b"").model_copy(update={"type": "directory", "relative_path": "."})
    entry = metadata_of("/t", b"one", relative_path="sub/one", content_uri="puppet:///modules/m/files/t/sub/one")
    folder = top.model_copy(update={"relative_path": "sub"})
    catalog = Catalog(name="n", recursive_metadata={str(path): {url: [path.model_dump() for path in (top, folder, entry)]}})
    sources = MemorySources({f"{url}/sub/one": b"one"})
    await apply(File(str(path), {"source": url, "recurse": True}), sources=sources, inlined=Inlined.of(catalog))
    assert (path / "sub" / "one").read_bytes() == b"one"
    assert sources.asked == [("content", "puppet:///modules/m/files/t/sub/one")]


async def test_a_remote_tree_is_copied_and_purged(tmp_path):
    path = tmp_path / "d"
    path.mkdir()
    (path / "extra").write_text("x")
    url = "puppet:///modules/m/t"
    top = metadata_of("/t", b"").model_copy(update={"type": "directory", "relative_path": "."})
    one = metadata_of("/t", b"one", relative_path="one")
    sources = MemorySources({f"{url}/one": b"one"}, trees={url: [top, one]})
    await apply(File(str(path), {"source": url, "recurse": True, "purge": True}), sources=sources)
    assert names(path) == ["one"] and (path / "one").read_bytes() == b"one"


@pytest.mark.parametrize(("given", "asked"), [({}, "md5"), ({"checksum": "mtime"}, "mtime")])
async def test_a_remote_tree_is_asked_for_with_the_sums_of_the_setting(tmp_path, given, asked):
    url = "puppet:///modules/m/t"
    top = metadata_of("/t", b"").model_copy(update={"type": "directory", "relative_path": "."})
    sources = MemorySources(trees={url: [top]})
    options_seen = []

    async def search(source, how):
        options_seen.append(how.checksum_type)
        return sources.trees[source]

    sources.search = search
    await apply(File(str(tmp_path / "d"), {"source": url, "recurse": True, **given}), sources=sources, algorithm="md5")
    assert options_seen == [asked]


@pytest.mark.parametrize("backup", [False, "false"])
async def test_what_is_purged_without_backups_is_gone(tmp_path, backup):
    path = tmp_path / "d"
    path.mkdir()
    (path / "extra").write_text("x")
    await apply(File(str(path), {"ensure": "directory", "recurse": True, "purge": True, "backup": backup}))
    assert names(path) == []


async def test_backups_go_to_the_bucket_that_is_named_and_content_comes_back_from_it(tmp_path):
    path = tmp_path / "a"
    path.write_text("old\n")
    bucket = Filebucket("mine", {"path": str(tmp_path / "bucket")})
    value = hashlib.sha256(b"old\n").hexdigest()
    await apply(File(str(path), {"content": "new\n", "backup": "mine"}), bucket)
    stored = (tmp_path / "bucket").joinpath(*value[:8], value)
    assert (stored / "contents").read_text() == "old\n" and (stored / "paths").read_text() == f"{path}\n"
    await apply(File(str(path), {"content": f"{{sha256}}{value}", "backup": "mine"}), bucket)
    assert path.read_text() == "old\n"


async def test_a_directory_that_goes_is_backed_up_file_by_file(tmp_path):
    folder = tmp_path / "d"
    (folder / "e").mkdir(parents=True)
    (folder / "a").write_text("a")
    (folder / "e" / "b").write_text("b")
    await apply(File(str(folder), {"ensure": "absent", "force": True, "backup": "puppet"}), bucket=tmp_path / "bucket")
    assert not folder.exists() and len(list((tmp_path / "bucket").rglob("contents"))) == 2


async def test_a_backup_that_fails_keeps_the_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    (tmp_path / "bucket").write_text("in the way")
    done = await apply(File(str(path), {"content": "new", "backup": "puppet"}), bucket=tmp_path / "bucket")
    assert path.read_text() == "old" and any("Could not back up" in message for message in done.messages)


async def test_an_extension_backup_keeps_owner_mode_and_time_but_no_set_id_bits(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o4711)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    await apply(File(str(path), {"content": "new", "backup": ".old"}))
    info = (tmp_path / "a.old").stat()
    assert (tmp_path / "a.old").read_text() == "old"
    assert (stat.S_IMODE(info.st_mode), info.st_mtime) == (0o711, 1_000_000_000)


async def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", "file.written=enospc")
    done = await apply(File(str(path), {"content": "new"}))
    assert path.read_text() == "old" and names(tmp_path) == ["a"]
    assert done.events[0][1] == "failure"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["file.written", "file.renamed"])
async def test_a_run_that_is_killed_leaves_the_old_or_the_new_file_and_the_next_run_tidies_up(tmp_path, point):
    path = tmp_path / "a"
    path.write_text("old")
    script = (
        "import asyncio; from tests.support.fake_commands import apply; from shared.types.file import File\n"
        f"asyncio.run(apply(File({str(path)!r}, {{'content': 'new', 'show_diff': False}})))"
    )
    environment = os.environ | {"BUNRAKU_FAILPOINTS": f"{point}=kill"}
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], env=environment, timeout=30)
    assert killed.returncode == -9
    assert path.read_text() == ("new" if point == "file.renamed" else "old")
    await apply(File(str(path), {"content": "next"}))
    assert path.read_text() == "next" and names(tmp_path) == ["a"]


async def test_a_change_keeps_the_rights_that_nobody_manages_but_set_id_bits(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o4750)
    await apply(File(str(path), {"content": "new"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o750 and path.read_text() == "new"


async def test_a_new_directory_keeps_the_group_that_its_folder_hands_down(tmp_path):
    tmp_path.chmod(0o2755)
    await apply(File(str(tmp_path / "d"), {"ensure": "directory"}))
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o2755


async def test_a_link_is_replaced_in_one_step(tmp_path):
    (tmp_path / "l").symlink_to("old")
    await apply(File(str(tmp_path / "l"), {"ensure": "link", "target": "new"}))
    assert str((tmp_path / "l").readlink()) == "new" and names(tmp_path) == ["l"]


async def test_a_file_can_be_written_in_a_staging_folder(tmp_path):
    (tmp_path / "stage").mkdir()
    path = tmp_path / "a"
    seen = tmp_path / "seen"
    parameters = {"content": "x", "staging_location": str(tmp_path / "stage"), "validate_cmd": f"/bin/sh -c 'echo % > {seen}'"}
    await apply(File(str(path), parameters))
    assert path.read_text() == "x" and names(tmp_path / "stage") == []
    assert seen.read_text().startswith(f"{tmp_path}/stage/a")


async def test_noop_says_what_it_would_do_and_touches_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_text("old\n")
    before = (path.stat().st_ino, path.stat().st_ctime_ns)
    done = await apply(File(str(path), {"content": "new\n", "mode": "0600", "backup": "puppet"}), noop=True, bucket=tmp_path / "bucket")
    assert {status for _, status, _ in done.events} == {"noop"} and any("+new" in message for message in done.messages)
    assert (path.stat().st_ino, path.stat().st_ctime_ns) == before and names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("http://host/x", "Files of web servers cannot be fetched here"),
        ("puppet://elsewhere/modules/m/f", "Files of another server"),
    ],
)
async def test_what_cannot_be_fetched_yet_says_so(tmp_path, source, message):
    from agent.servers.sources import SourceRouter
    from shared.indirector import Binding, Terminus
    from shared.models.file_content import FILE_CONTENT
    from shared.models.file_metadata import FILE_METADATA

    sources = SourceRouter(Binding(FILE_METADATA, Terminus()), Binding(FILE_CONTENT, Terminus()), environment="production")
    done = await apply(File(str(tmp_path / "a"), {"source": source}), sources=sources)
    assert any(message in message for message in done.messages) and not (tmp_path / "a").exists()


async def test_sources_ask_the_indirections_with_plain_keys(tmp_path):
    from agent.servers.sources import SourceRouter
    from shared.indirector import Binding, Terminus
    from shared.models.file_content import FILE_CONTENT, FileContent
    from shared.models.file_metadata import FILE_METADATA

    requests = []

    class Metadata(Terminus):
        async def find(self, request):
            requests.append((request.key, request.environment, dict(request.options)))
            return metadata_of("/x", b"odd")

    class Content(Terminus):
        async def find(self, request):
            requests.append((request.key, request.environment))

            async def chunks():
                yield b"od"
                yield b"d"

            return FileContent(name=request.key, chunks=chunks, size=3)

    sources = SourceRouter(Binding(FILE_METADATA, Metadata()), Binding(FILE_CONTENT, Content()), environment="test")
    path = tmp_path / "a"
    await apply(File(str(path), {"source": "puppet:///modules/m/a b%20#c"}), sources=sources)
    options = {"links": "manage", "checksum_type": "sha256", "source_permissions": "ignore"}
    assert requests == [("modules/m/a b%20#c", "test", options), ("modules/m/a b%20#c", "test")]
    assert path.read_bytes() == b"odd"


async def test_a_source_permission_is_taken_over_only_when_asked(tmp_path):
    url = "puppet:///modules/m/f"
    sources = MemorySources({url: b"x"}, told={url: metadata_of(url, b"x", mode=0o604)})
    await apply(File(str(tmp_path / "a"), {"source": url}), sources=sources)
    await apply(File(str(tmp_path / "b"), {"source": url, "source_permissions": "use"}), sources=sources)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o644, 0o604]


async def test_a_large_file_is_not_compared_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.providers.file.differences.MAX_INPUT", 10)
    path = tmp_path / "a"
    path.write_text("old\n")
    done = await apply(File(str(path), {"content": "much longer than that\n"}))
    assert any("diff not shown" in message for message in done.messages) and path.read_text().startswith("much")


async def test_a_missing_diff_program_does_not_stop_the_change(tmp_path):
    from shared.filesystem.textdiff import Differ

    path = tmp_path / "a"
    path.write_text("old\n")
    done = await apply(File(str(path), {"content": "new\n"}), differ=Differ("no-such-diff"))
    assert path.read_text() == "new\n" and any("no-such-diff" in message for message in done.messages)


async def test_audited_content_is_looked_at_without_being_managed(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    done = await apply(File(str(path), {"audit": ["content", "mode"]}))
    assert any(str(Checksum.of("sha256", b"x")) in message for message in done.messages)


async def test_the_settings_digest_algorithm_holds_where_no_checksum_is_given(tmp_path):
    done = await apply(File(str(tmp_path / "a"), {"content": "x"}), algorithm="md5")
    assert done.messages == ["defined content as '{md5}9dd4e461268c8034f5c8564e155c67a6'"]


async def test_sensitive_content_is_shown_nowhere(tmp_path):
    path = tmp_path / "a"
    path.write_text("old secret\n")
    origin = Origin(sensitive=frozenset({"content"}))
    parameters = {"content": "hunter2\n", "validate_cmd": "/bin/sh -c 'cat %; exit 1'"}
    done = await apply(File(str(path), parameters, origin), level="debug")
    output = repr(done.lines) + repr(done.statuses)
    assert "hunter2" not in output and "old secret" not in output and hashlib.sha256(b"hunter2\n").hexdigest() not in output
