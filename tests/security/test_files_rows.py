"""Rows FS, FB and AG of the security reference that concern files: stores, served trees, and the agent's writing."""

import asyncio
import contextlib
import hashlib
import os
import resource as limits
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from agent.providers.file.places import place_of
from agent.providers.file.writing import Replacement, Rights
from agent.providers.testing import MemorySources, apply, metadata_of
from shared.bucket import Bucket
from shared.errors import (
    BadData,
    BadName,
    BadRequest,
    Conflict,
    NotFound,
    OutOfSpace,
    PeerUnreachable,
    PuppetError,
    ResourceError,
    TooLarge,
)
from shared.file_serving import Tree, Wanted, content, metadata, search
from shared.globs import Glob
from shared.indirector import Request
from shared.models.file_metadata import FileMetadata
from shared.ral import Origin
from shared.types.exec import Exec
from shared.types.file import File

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
USER = 1  # daemon, on every system


@pytest.fixture
def served(tmp_path):
    root = tmp_path / "modules" / "m" / "files"
    (root / "sub").mkdir(parents=True)
    (root / "a").write_text("public")
    (tmp_path / "secret").write_text("secret")
    return root


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


@contextlib.contextmanager
def meanwhile(action):
    """`action` again and again, in another thread."""
    stop = threading.Event()

    def repeat():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()


# --- served files


@pytest.mark.parametrize("key", ["../../secret", "sub/../../../secret", "/etc/passwd", "a/../../x", "a\x00b", "x" * 5000])
def test_FS_01_a_path_that_climbs_is_refused(served, key):
    for ask in (lambda: metadata(Tree(served), key, Wanted()), lambda: content(Tree(served), key)):
        with pytest.raises((BadName, NotFound)):
            raise NotFound("none") if ask() is None else AssertionError("served")


def test_FS_01_a_name_that_contains_two_dots_is_served(served):
    (served / "a..b").write_text("x")
    assert metadata(Tree(served), "a..b", Wanted()).type == "file"


def test_FS_03_a_link_out_of_the_root_is_not_followed_and_managed_as_text(served, tmp_path):
    (served / "out").symlink_to(tmp_path / "secret")
    (served / "climb").symlink_to("../../../secret")
    (served / "folder").symlink_to(tmp_path)
    for name in ("out", "climb", "folder/secret"):
        assert metadata(Tree(served), name, Wanted(links="follow")) is None
        with pytest.raises(NotFound):
            content(Tree(served), name)
    told = metadata(Tree(served), "out", Wanted(links="manage"))
    assert told.destination == str(tmp_path / "secret") and told.checksum.value is None


def test_FS_03_a_link_within_the_root_is_followed(served):
    (served / "in").symlink_to(served / "a")
    opened = content(Tree(served), "in")
    assert b"".join(opened.blocks()) == b"public"
    opened.close()


@pytest.mark.slow
def test_FS_04_a_file_swapped_for_a_link_never_gives_what_is_outside(served, tmp_path):
    def swap():
        (served / "new").symlink_to(tmp_path / "secret")
        (served / "new").rename(served / "a")
        (served / "new").write_text("public")
        (served / "new").rename(served / "a")

    outside = hashlib.sha256(b"secret").hexdigest()
    with meanwhile(swap):
        for _ in range(3000):
            for links in ("manage", "follow"):
                told = metadata(Tree(served), "a", Wanted(links=links))
                assert told is None or outside not in str(told.checksum.value)
            with contextlib.suppress(NotFound):
                opened = content(Tree(served), "a")
                try:
                    assert b"".join(opened.blocks()) in (b"public", b"")
                finally:
                    opened.close()


def test_FS_05_special_files_are_answered_at_once(served):
    os.mkfifo(served / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{os.open(served, os.O_RDONLY)}/socket")
    before = time.monotonic()
    for name in ("fifo", "socket"):
        assert metadata(Tree(served), name, Wanted()).checksum.value == "{none}"
        with pytest.raises(NotFound):
            content(Tree(served), name)
    if os.geteuid() == 0:
        os.mknod(served / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        with pytest.raises(BadRequest):
            metadata(Tree(served), "zero", Wanted())
        with pytest.raises(NotFound):
            content(Tree(served), "zero")
    listener.close()
    assert time.monotonic() - before < 1


def test_FS_05_a_huge_sparse_file_is_refused_for_a_sum_and_streamed_in_little_memory(served):
    with (served / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge):
        metadata(Tree(served), "huge", Wanted(max_size=1 << 30))
    assert metadata(Tree(served), "huge", Wanted(checksum_type="sha256lite", max_size=1 << 30)).type == "file"
    opened = content(Tree(served), "huge")
    assert opened.size == 1 << 40
    before = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    blocks = opened.blocks()
    for _ in range(200):
        assert len(next(blocks)) <= 1 << 20
    opened.close()
    assert limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB


def test_FS_05_a_file_below_proc_has_the_length_that_was_announced():
    opened = content(Tree(Path("/proc/self")), "status")
    assert (opened.size, list(opened.blocks())) == (0, [])
    opened.close()


def test_FS_06_a_transfer_is_as_long_as_announced_or_broken_off(served):
    opened = content(Tree(served), "a")
    with (served / "a").open("a") as file:
        file.write(" and more")
    assert b"".join(opened.blocks()) == b"public"
    os.truncate(served / "a", 3)
    with pytest.raises(PeerUnreachable):
        list(opened.blocks())
    opened.close()


@pytest.mark.parametrize(
    "options",
    [
        {"recurselimit": "-1"},
        {"recurselimit": "1e9"},
        {"recurselimit": "99999999999"},
        {"checksum_type": "../x"},
        {"checksum_type": "md4"},
        {"links": "x"},
        {"source_permissions": "x"},
        {"recurse": "maybe"},
        {"max_files": "-2"},
        {"ignore": ["x" * 100_000]},
        {"ignore": ["x"] * 10_000},
    ],
)
def test_FS_07_options_that_cannot_be_right_are_refused(options):
    with pytest.raises(BadRequest):
        Wanted.of(Request("modules/m", options=options), checksum_type="sha256")


@pytest.mark.parametrize("pattern", ["[" * 1024, "*" * 1023 + "a", "*a" * 512, "[a-" * 340])
def test_FS_07_no_pattern_is_expensive(pattern):
    before = time.perf_counter()
    glob = Glob(pattern)
    for _ in range(20):
        glob.matches("a" * 255)
    assert time.perf_counter() - before < 1


def test_FS_07_a_tree_without_end_is_bounded(served):
    (served / "sub" / "loop").symlink_to("..")
    listing = search(Tree(served), "", Wanted(recurse=True, recurselimit=10**9, links="follow"))
    assert len(listing.entries) < 20


# --- the filebucket

A = b"content of A"
SUM = hashlib.sha256(A).hexdigest()


@pytest.fixture
def bucket(tmp_path):
    said = []
    made = Bucket(tmp_path / "bucket", reserve=0, report=lambda level, text: said.append((level, text)))
    made.said = said
    return made


def stored(bucket):
    return sorted(str(p.relative_to(bucket.root)) for p in bucket.root.rglob("*") if p.is_file())


@pytest.mark.parametrize("body", [b"content of B", b"", A[:-1]])
def test_FB_02_a_body_that_is_not_what_was_announced_is_not_stored(bucket, body):
    with pytest.raises(BadRequest, match="does not match"):
        bucket.add([body], value=SUM, path="/f")
    assert stored(bucket) == []


@pytest.mark.parametrize(
    "key",
    [f"sha256/{SUM.upper()}", f"sha256/{SUM[:-1]}", f"sha256/{SUM}0", "sha256/" + "g" * 64, "sha256/../../x", f"sha256/{SUM}\n",
     f"sha256/{SUM}%0a", "md5/" + "a" * 32, "../x/y", "sha256", ""],
)  # fmt: skip
def test_FB_03_a_key_that_is_not_exact_is_refused(bucket, key):
    with pytest.raises(BadRequest):
        bucket.key(key)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/a\n/etc/shadow", "/a\r\n/b", "$(id); `id` | cat", "/a\x1b[2J", "/\udcff"])
def test_FB_04_an_original_path_is_one_line_of_text_whatever_it_says(bucket, path):
    key = bucket.key(f"sha256/{SUM}/{path}")
    bucket.add([A], value=SUM, path=key.path)
    assert len(bucket.paths(SUM)) == 1 and bucket.has(SUM, path)
    folder = "/".join((*SUM[:8], SUM))
    assert stored(bucket) == [f"{folder}/contents", f"{folder}/paths"]


def test_FB_04_an_endless_original_path_is_refused(bucket):
    with pytest.raises(BadRequest):
        bucket.key(f"sha256/{SUM}/" + "x" * 1_000_000)


def test_FB_05_a_collision_keeps_the_first_and_is_an_error(bucket, monkeypatch):
    bucket.add([A])

    class Same:
        def update(self, data):
            pass

        def hexdigest(self):
            return SUM

    with monkeypatch.context() as patch:
        patch.setattr("hashlib.new", lambda *a, **k: Same())
        with pytest.raises(Conflict):
            bucket.add([b"another content"])
    with bucket.open(SUM) as file:
        assert file.read() == A
    assert bucket.said[-1][0] == "err"


def test_FB_05_a_damaged_copy_is_replaced_with_a_warning(bucket):
    bucket.add([A])
    contents = bucket.folder(SUM) / "contents"
    contents.unlink()
    contents.write_bytes(b"rotten")
    bucket.add([A])
    assert contents.read_bytes() == A and bucket.said[-1][0] == "warning"


def test_FB_05_two_writers_of_one_content_both_succeed(bucket):
    with bucket.incoming() as one, bucket.incoming() as two:
        one.write(A)
        two.write(A)
        assert one.keep(SUM, "/one") == two.keep(SUM, "/two") == SUM
    assert bucket.paths(SUM) == ["/one", "/two"] and len(stored(bucket)) == 2


def test_FB_06_reading_creates_nothing(bucket):
    bucket.add([A], path="/a")
    before = stored(bucket)
    other = "0" * 64
    assert not bucket.has(other) and not bucket.has(SUM, "/other") and bucket.has(SUM) and bucket.paths(other) == []
    with pytest.raises(NotFound):
        bucket.open(other)
    assert stored(bucket) == before and names(bucket.root) == [SUM[0]]


def test_FB_06_a_quota_holds_before_the_disk_is_full(tmp_path):
    small = Bucket(tmp_path / "small", reserve=0, quota=100_000)
    with pytest.raises(OutOfSpace):
        for number in range(1000):
            small.add([b"%d" % number])
    full = Bucket(tmp_path / "full", reserve=1 << 62)
    with pytest.raises(OutOfSpace):
        full.add([A])
    assert stored(full) == []


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

    from agent.providers.file.places import remove, set_mode, set_owner

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
            with contextlib.suppress(OSError, ResourceError), place_of(str(folder / "f")) as place:
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
    monkeypatch.setattr("agent.providers.file.writing.secrets.choice", lambda _: next(letters))
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
            await asyncio.sleep(30)

    sources = Slow({"puppet:///modules/m/f": b"half and more"})
    task = asyncio.create_task(apply(File(str(path), {"source": "puppet:///modules/m/f"}), sources=sources, show_diff=False))
    await started.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, PuppetError):
        await task
    assert path.read_text() == "old" and names(tmp_path) == ["f"]
