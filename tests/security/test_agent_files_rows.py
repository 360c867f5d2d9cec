"""The rows of files that root writes where users can write too."""

import asyncio
import contextlib
import os
import stat
import time

import pytest

from agent.providers.file.path_entries import open_entry
from agent.providers.file.replacement import Replacement, Rights
from shared.errors import (
    BadData,
    PuppetError,
    ResourceError,
)
from shared.models.file_metadata import FileMetadata
from shared.ral import Origin
from shared.types.exec import Exec
from shared.types.file import File
from tests.support.disturbances import meanwhile
from tests.support.fake_commands import MemorySources, apply, metadata_of
from tests.support.needs import needs_root

USER = 1  # daemon, on every system


@pytest.fixture
def home(tmp_path):
    """A folder that belongs to a user, and a file of root's that they may not change."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "home"
    folder.mkdir()
    os.chown(folder, USER, USER)
    shadow = tmp_path / "shadow"
    shadow.write_text("root:secret\n")
    shadow.chmod(0o600)
    return folder


def unchanged(home):
    shadow = home.parent / "shadow"
    info = shadow.stat()
    return shadow.read_text() == "root:secret\n" and (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (0, 0, 0o600)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- the agent's writing


@needs_root
@pytest.mark.parametrize("name", ["authorized_keys", ".k5login"])
async def test_AG_01_a_link_in_a_users_folder_is_replaced_not_written_through(home, name):
    path = home / name
    path.symlink_to("../shadow")
    os.chown(path, USER, USER, follow_symlinks=False)
    await apply(File(str(path), {"ensure": "file", "content": "key\n", "owner": USER, "group": USER, "mode": "0644"}))
    assert unchanged(home) and not path.is_symlink()
    info = path.stat()
    assert (info.st_uid, stat.S_IMODE(info.st_mode), path.read_text()) == (USER, 0o644, "key\n")


@needs_root
@pytest.mark.parametrize("given", [{"owner": USER}, {"group": USER}, {"mode": "0666"}, {"owner": USER, "mode": "0666", "links": "follow"}])
async def test_AG_01_owner_and_mode_of_a_link_do_not_reach_what_it_leads_to(home, given):
    path = home / "x"
    path.symlink_to("../shadow")
    os.chown(path, USER, USER, follow_symlinks=False)
    await apply(File(str(path), given))
    assert unchanged(home)


@needs_root
async def test_AG_01_a_users_link_to_what_is_theirs_is_followed_on_the_way(home):
    (home / "real").mkdir()
    (home / "dir").symlink_to("real")
    os.chown(home / "real", USER, USER)
    os.chown(home / "dir", USER, USER, follow_symlinks=False)
    await apply(File(str(home / "dir" / "f"), {"content": "x"}))
    assert (home / "real" / "f").read_text() == "x"


@needs_root
async def test_AG_02_a_parent_that_a_user_made_a_link_out_is_refused(home):
    outside = home.parent / "outside"
    outside.mkdir()
    (home / "dir").symlink_to(outside)
    os.chown(home / "dir", USER, USER, follow_symlinks=False)
    done = await apply(File(str(home / "dir" / "f"), {"content": "x", "owner": USER}))
    assert names(outside) == [] and any("refusing to follow the link 'dir'" in message for message in done.messages)


@needs_root
@pytest.mark.slow
def test_AG_02_a_parent_swapped_while_we_write_leads_nowhere(home):
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("outside")
    (outside / "f").chmod(0o600)
    folder, hidden, link = home / "dir", home / "hidden", home / "link"
    folder.mkdir()
    os.chown(folder, USER, USER)
    link.symlink_to(outside)
    os.chown(link, USER, USER, follow_symlinks=False)

    def swap():
        folder.rename(hidden)
        link.rename(folder)
        folder.rename(link)
        hidden.rename(folder)

    from agent.providers.file.path_entries import remove, set_mode, set_owner

    written = refused = 0
    with meanwhile(swap):
        for number in range(3000):
            try:
                with Replacement(str(folder / "f"), Rights(mode=0o666), "sha256") as new:
                    new.write(b"inside %d" % number)
                    new.commit()
                    written += 1
            except ResourceError:
                refused += 1
            except OSError:
                pass
            with contextlib.suppress(OSError, ResourceError), open_entry(str(folder / "f")) as place:
                set_mode(place, 0o666)
                set_owner(place, USER, USER)
                if number % 5 == 0:
                    remove(place)
    info = (outside / "f").stat()
    assert written and refused  # both states were met
    assert names(outside) == ["f"] and (outside / "f").read_text() == "outside"
    assert (info.st_uid, stat.S_IMODE(info.st_mode)) == (0, 0o600)


def test_AG_03_a_temporary_name_that_is_taken_is_never_used(tmp_path, monkeypatch):
    trap = tmp_path / "trap"
    trap.write_text("trap")
    letters = iter("aaaaaaa" + "bbbbbbb" + "ccccccc")
    monkeypatch.setattr("agent.providers.file.replacement.secrets.choice", lambda _: next(letters))
    stem = f".f.puppet{time.strftime('%Y%m%d', time.localtime(0))}-{os.getpid()}-"
    (tmp_path / f"{stem}aaaaaaa").symlink_to(trap)
    os.link(trap, tmp_path / f"{stem}bbbbbbb")
    with Replacement(str(tmp_path / "f"), Rights(), "none", now=lambda: 0) as new:
        assert new.temporary.endswith("ccccccc")
        new.write(b"x")
        new.commit()
    assert trap.read_text() == "trap" and (tmp_path / "f").read_text() == "x"


async def test_AG_03_nothing_is_left_in_shared_folders(tmp_path, monkeypatch):
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    path = tmp_path / "f"
    path.write_text("old\n")
    await apply(
        File(str(path), {"content": "new\n", "validate_cmd": "/bin/true %", "backup": ".old"}),
        Exec("/bin/sh -c 'echo out; exit 0'", {"logoutput": True}),
        bucket=tmp_path / "bucket",
    )
    assert names(shared) == []


@needs_root
def test_AG_04_owner_and_mode_come_before_the_first_byte(home):
    path = home / "secret"
    with Replacement(str(path), Rights(USER, USER, 0o4600), "none") as new:
        info = os.fstat(new.descriptor)
        assert (info.st_size, info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (0, USER, USER, 0o600)
        new.write(b"x")
        new.commit()
    assert stat.S_IMODE(path.stat().st_mode) == 0o4600


@pytest.mark.slow
async def test_AG_04_no_reader_sees_the_content_with_another_mode(tmp_path):
    seen = []

    def look():
        for path in tmp_path.iterdir():
            info = path.lstat()
            if info.st_size and stat.S_IMODE(info.st_mode) & 0o077:
                seen.append((path.name, oct(info.st_mode)))

    old = os.umask(0)
    try:
        with meanwhile(look):
            for number in range(100):
                await apply(File(str(tmp_path / "f"), {"content": f"secret {number}", "mode": "0600", "show_diff": False}))
    finally:
        os.umask(old)
    assert seen == []


@pytest.mark.parametrize("umask", [0, 0o077])
async def test_AG_04_default_modes_do_not_depend_on_our_umask(tmp_path, umask):
    old = os.umask(umask)
    try:
        await apply(File(str(tmp_path / "f"), {"content": "x"}), File(str(tmp_path / "d"), {"ensure": "directory"}))
    finally:
        os.umask(old)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "fd"] == [0o644, 0o755]


@needs_root
async def test_AG_05_a_hard_link_to_anothers_file_is_replaced_and_neither_shown_nor_kept(home):
    path = home / "x"
    os.link(home.parent / "shadow", path)
    done = await apply(File(str(path), {"content": "new\n", "backup": "puppet"}), bucket=home.parent / "bucket")
    assert unchanged(home) and path.read_text() == "new\n"
    assert "root:secret" not in repr(done.lines) and not list((home.parent).rglob("contents"))


@needs_root
@pytest.mark.parametrize("given", [{"owner": USER}, {"mode": "0666"}])
async def test_AG_05_owner_and_mode_of_a_hard_link_to_anothers_file_stay(home, given):
    os.link(home.parent / "shadow", home / "x")
    done = await apply(File(str(home / "x"), given))
    assert unchanged(home) and any("hard link" in message for message in done.messages)


async def test_AG_14_content_that_is_not_what_was_announced_never_replaces_the_old(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    url = "puppet:///modules/m/f"
    lying = MemorySources({url: b"other"}, told={url: metadata_of(url, b"announced")})
    done = await apply(File(str(path), {"source": url}), sources=lying)
    assert path.read_text() == "old" and names(tmp_path) == ["f"]
    assert any("File written to disk did not match desired checksum" in message for message in done.messages)


async def test_AG_14_a_body_that_is_cut_off_never_replaces_the_old(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    url = "puppet:///modules/m/f"
    done = await apply(File(str(path), {"source": url}), sources=MemorySources({url: b"a long content"}, cut=3))
    assert path.read_text() == "old" and names(tmp_path) == ["f"] and done.events[0][1] == "failure"


async def test_AG_15_a_secret_is_in_no_log_report_diff_or_process_list(tmp_path):
    path = tmp_path / "f"
    path.write_text("hunter1\n")
    hidden = frozenset({"content", "command", "environment"})
    for noop in (True, False):
        done = await apply(
            File(str(path), {"content": "hunter2\n"}, Origin(sensitive=hidden)),
            Exec("secret", {"command": "/bin/sh -c 'echo hunter2; exit 1'", "logoutput": True}, Origin(sensitive=hidden)),
            level="debug",
            noop=noop,
        )
        told = repr(done.lines) + repr(done.statuses)
        assert "hunter1" not in told and "hunter2" not in told


@pytest.mark.parametrize(
    "data",
    ["<html>", [], {"path": 5}, {"path": "/x", "type": "blockSpecial"}, {"path": "/x" * 10_000, "type": "file"},
     {"path": "/x", "type": "file", "relative_path": "../../etc/cron.d/x"}, {"path": "/x", "type": "file", "mode": 1 << 40}],
)  # fmt: skip
def test_AG_17_metadata_that_is_none_is_refused(data):
    with pytest.raises(BadData):
        FileMetadata.from_data(data)


async def test_AG_17_a_failing_source_ends_in_one_clear_error(tmp_path):
    class Broken(MemorySources):
        async def metadata(self, source, wanted):
            raise BadData("Not a FileMetadata: Field required at 'type'")

    done = await apply(File(str(tmp_path / "f"), {"source": "puppet:///modules/m/f"}), sources=Broken())
    errors = [message for level, _, message in done.lines if level == "err"]
    assert len(errors) == 1 and "Could not retrieve file metadata for puppet:///modules/m/f: Not a FileMetadata" in errors[0]
    assert not (tmp_path / "f").exists()


async def test_an_interrupted_run_leaves_no_half_file(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    started = asyncio.Event()

    class Slow(MemorySources):
        async def content(self, source, metadata):
            yield b"half"
            started.set()
            await asyncio.Event().wait()

    sources = Slow({"puppet:///modules/m/f": b"half and more"})
    task = asyncio.create_task(apply(File(str(path), {"source": "puppet:///modules/m/f"}), sources=sources, show_diff=False))
    await started.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, PuppetError):
        await task
    assert path.read_text() == "old" and names(tmp_path) == ["f"]
