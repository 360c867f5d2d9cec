"""The filebucket's rows of the attack table: what arrives is what was announced, and stays where it belongs."""

import hashlib

import pytest

from shared.errors import (
    BadRequest,
    Conflict,
    NotFound,
    OutOfSpace,
)
from shared.filesystem.bucket import Bucket


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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
