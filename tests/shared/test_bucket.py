"""The filebucket's store: layout, duplicates, damage, refusals, quota."""

import hashlib
import multiprocessing
import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import BadRequest, Conflict, NotFound, OutOfSpace, TooLarge
from shared.filesystem.bucket import Bucket, BucketKey
from shared.filesystem.checksums import Checksum
from shared.filesystem.textdiff import Differ
from tests.support.needs import needs_puppet

A = b"first\n"
SUM = hashlib.sha256(A).hexdigest()


class Reports(list):
    def __call__(self, level, message):
        self.append((level, message))


@pytest.fixture
def reports():
    return Reports()


@pytest.fixture
def bucket(tmp_path, reports):
    return Bucket(tmp_path / "bucket", report=reports, reserve=0)


def tree(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_layout_and_modes_are_puppets_own(bucket):
    assert bucket.add([b"fir", b"st\n"], path="/etc/motd") == SUM
    folder = bucket.root.joinpath(*SUM[:8], SUM)
    assert (folder / "contents").read_bytes() == A
    assert (folder / "paths").read_text() == "/etc/motd\n"
    assert stat.S_IMODE((folder / "contents").stat().st_mode) == 0o440
    assert stat.S_IMODE((folder / "paths").stat().st_mode) == 0o640
    assert len(tree(bucket.root)) == 2


def test_a_duplicate_adds_its_path_once(bucket, reports):
    for path in ("/a", "/b", "/a", None):
        bucket.add([A], path=path)
    assert bucket.paths(SUM) == ["/a", "/b"]
    assert [text for _, text in reports] == [f"FileBucket got a duplicate file {{sha256}}{SUM}"] * 3


def test_head_knows_content_and_path(bucket):
    bucket.add([A], path="/a")
    assert bucket.has(SUM) and bucket.has(SUM, "/a")
    assert not bucket.has(SUM, "/b") and not bucket.has("0" * 64)


def test_open_streams_the_content_and_misses_are_named(bucket):
    bucket.add([A])
    with bucket.open(SUM) as file:
        assert file.read() == A
    with pytest.raises(NotFound, match="0000"):
        bucket.open("0" * 64)


def test_entries_are_sorted_by_path_then_time_and_filtered_by_time(bucket):
    bucket.add([A], path="/b")
    second = bucket.add([b"second"], path="/a")
    now = datetime.now(UTC)
    assert [(e.path, e.value) for e in bucket.entries()] == [("/a", second), ("/b", SUM)]
    assert bucket.entries(since=now + timedelta(seconds=5)) == []
    assert len(bucket.entries(since=now - timedelta(seconds=60), until=now + timedelta(seconds=60))) == 2


def test_diff_is_that_of_two_entries(bucket):
    bucket.add([A])
    other = bucket.add([b"second\n"])
    text = bucket.diff(SUM, other).decode()
    assert text.endswith("@@ -1 +1 @@\n-first\n+second\n") and str(bucket.root) not in text
    assert bucket.diff(SUM, SUM) == b""


def test_a_long_diff_is_cut(bucket):
    one = bucket.add([b"a\n" * 5000])
    two = bucket.add([b"b\n" * 5000])
    bucket.differ = Differ(max_output=2000)
    text = bucket.diff(one, two)
    assert len(text) < 2100 and text.endswith(b"... the rest of the diff is left out\n")


def test_a_torn_paths_file_is_mended(bucket):
    bucket.add([A], path="/a")
    paths = bucket.folder(SUM) / "paths"
    paths.write_text("/a\n/tor")
    bucket.add([A], path="/b")
    assert paths.read_text() == "/a\n/tor\n/b\n"


def test_an_original_path_with_a_newline_stays_one_line(bucket):
    bucket.add([A], path="/a\n/etc/shadow")
    assert bucket.paths(SUM) == ["/a\\x0a/etc/shadow"]
    assert bucket.has(SUM, "/a\n/etc/shadow") and not bucket.has(SUM, "/etc/shadow")


def test_a_file_that_is_too_large_is_refused_on_the_way(bucket):
    bucket.max_file = 10
    with pytest.raises(TooLarge):
        bucket.add([b"123456", b"123456"])
    assert tree(bucket.root) == []


def test_the_quota_counts_what_is_there_and_what_comes(tmp_path):
    Bucket(tmp_path, reserve=0).add([A])
    bucket = Bucket(tmp_path, reserve=0, quota=40_000)
    bucket.add([b"x" * 100])
    with pytest.raises(OutOfSpace, match="quota"):
        bucket.add([b"y" * 20_000])
    bucket.add([b"x" * 100], path="/known/content/costs/nothing")
    assert len([name for name in tree(tmp_path) if name.endswith("contents")]) == 2


def test_a_crashed_writers_file_is_swept(bucket):
    bucket.add([A])
    left = bucket.root / ".incoming-feed"
    left.write_bytes(b"x")
    assert bucket.sweep() == 0
    os.utime(left, (0, 0))
    assert bucket.sweep() == 1 and not left.exists()


def test_md5_buckets_of_old_masters_work_the_same(tmp_path):
    bucket = Bucket(tmp_path, algorithm="md5", reserve=0)
    value = bucket.add([A])
    assert bucket.key(f"md5/{value}//etc/motd") == BucketKey(Checksum("md5", value), "/etc/motd")
    assert bucket.folder(value).parent == tmp_path.joinpath(*value[:8])


def _put(root, start):
    start.wait()
    Bucket(root, reserve=0).add([A], path=f"/by/{os.getpid()}")


@pytest.mark.slow
def test_two_processes_storing_the_same_content_make_one_entry(tmp_path):
    context = multiprocessing.get_context("fork")
    start = context.Event()
    workers = [context.Process(target=_put, args=(tmp_path, start)) for _ in range(4)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(20)
        assert worker.exitcode == 0
    assert len(Bucket(tmp_path).paths(SUM)) == 4
    assert len(tree(tmp_path)) == 2


@pytest.mark.interop
@pytest.mark.smoke
@pytest.mark.slow
@needs_puppet
def test_the_real_filebucket_reads_ours_and_we_read_its(bucket, tmp_path):
    bucket.add([A], path="/etc/ours")
    (tmp_path / "theirs").write_text("theirs\n")
    common = ["--confdir", str(tmp_path / "conf"), "--vardir", str(tmp_path / "var"), "--bucket", str(bucket.root)]
    got = subprocess.run(["puppet", "filebucket", "-l", "get", SUM, *common], capture_output=True, timeout=60, check=True)
    assert got.stdout == A
    subprocess.run(["puppet", "filebucket", "-l", "backup", str(tmp_path / "theirs"), *common], capture_output=True, timeout=60, check=True)
    value = hashlib.sha256(b"theirs\n").hexdigest()
    assert bucket.paths(value) == [str(tmp_path / "theirs")]
    assert not bucket.has(value, "/elsewhere")


# What a stranger may try: see also tests/security/test_files_rows.py.


@pytest.mark.parametrize(
    "key", ["md5/" + "a" * 32, "sha256/" + "A" * 64, "sha256/" + "a" * 63, "sha256/" + "a" * 64 + "\n", "../x/y", "sha256", ""]
)
def test_a_key_that_is_not_exact_is_refused(bucket, key):
    with pytest.raises(BadRequest):
        bucket.key(key)


def test_a_collision_leaves_the_first_and_is_an_error(bucket, reports, monkeypatch):
    bucket.add([A])

    class Constant:  # every content now has the sum of A
        def update(self, data):
            pass

        def hexdigest(self):
            return SUM

    monkeypatch.setattr("hashlib.new", lambda *a, **k: Constant())
    with pytest.raises(Conflict, match="same checksum"):
        bucket.add([b"another"])
    monkeypatch.undo()
    with bucket.open(SUM) as file:
        assert file.read() == A
    assert reports[-1][0] == "err"


def test_a_damaged_entry_is_replaced_with_a_warning(bucket, reports):
    bucket.add([A])
    contents = bucket.folder(SUM) / "contents"
    contents.chmod(0o640)
    contents.write_bytes(b"rotten")
    bucket.add([A])
    assert contents.read_bytes() == A and stat.S_IMODE(contents.stat().st_mode) == 0o440
    assert reports == [("warning", f"Existing backup does not match its expected sum, {{sha256}}{SUM}. Overwriting corrupted backup.")]
