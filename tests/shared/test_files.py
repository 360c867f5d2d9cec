from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from shared.errors import BadName, NotFound, Unavailable
from shared.filesystem.files import FileLock, append_synced, inside, make_directory, open_beneath, open_for_appending, sweep, write_atomic
from tests.support.needs import needs_root


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\x00b", "..", "a/..", "x" * 300])
def test_a_path_that_leaves_its_root_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadName):
        inside(tmp_path, path)


@pytest.mark.parametrize("path", ["a", "a/b", "./a", "a//b", "a..b", "..."])
def test_a_path_below_its_root_is_joined(tmp_path: Path, path: str) -> None:
    assert tmp_path in inside(tmp_path, path).parents


def test_a_link_inside_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_text("inside")
    (tmp_path / "link").symlink_to("sub/file")
    (tmp_path / "sub" / "up").symlink_to("../link")
    with open_beneath(tmp_path, "sub/up") as file:
        assert file.read() == b"inside"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside", "loop"])
def test_a_link_out_of_the_root_is_not_there(tmp_path: Path, target: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "sub").mkdir()
    (tmp_path / "outside").write_text("secret")
    (root / "loop").symlink_to(target)
    with pytest.raises(NotFound):
        open_beneath(root, "loop")


def test_a_root_that_is_a_link_itself_is_the_administrators_word(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    with open_beneath(tmp_path / "alias", "file") as file:
        assert file.read() == b"x"


def test_special_files_are_not_there_and_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "missing"):
        with pytest.raises(NotFound):
            open_beneath(tmp_path, name)


def test_an_atomic_write_sets_the_mode_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_atomic(tmp_path / "key", b"secret", mode=0o600)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "key"]


def test_an_atomic_write_replaces_a_link_and_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_text() == "old"
    assert not (tmp_path / "link").is_symlink()


def test_a_failed_atomic_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (write_atomic, append_synced):
        path.write_bytes(b"old")
        with pytest.raises(OSError, match="No space") as error:
            write(path, b"new")
        assert error.value.filename == str(path), "whoever makes room has to know where"
        assert write is append_synced or path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


def test_appending_ends_a_torn_line_first(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"whole\ntor")
    append_synced(path, b"next\n")
    assert path.read_bytes() == b"whole\ntor\nnext\n"


def test_made_directories_get_the_mode_and_old_ones_keep_theirs(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    make_directory(tmp_path / "a" / "b", mode=0o750)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o750
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o711


def test_a_lock_is_held_by_one_and_names_its_holder(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(Unavailable, match=str(os.getpid())):
        second.acquire()
    first.release()
    second.acquire()
    assert second.held
    second.release()


def test_sweep_removes_old_temporary_files_and_nothing_else(tmp_path: Path) -> None:
    for name in (".a.yaml.0123.tmp", ".b.tmp", ".keep", "c.tmp", "d.yaml"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".e.tmp").mkdir()
    (tmp_path / ".new.tmp").write_text("somebody writes this now")
    assert sweep(tmp_path) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".e.tmp", ".keep", ".new.tmp", "c.tmp", "d.yaml"]
    assert sweep(tmp_path / "missing") == 0


def written(path: Path, data: bytes, **how: Any) -> os.stat_result:
    """What the file is after `data` was added at its end."""
    fd = open_for_appending(path, **how)
    try:
        os.write(fd, data)
        return os.fstat(fd)
    finally:
        os.close(fd)


def test_a_log_is_made_private_and_added_to(tmp_path: Path) -> None:
    assert written(tmp_path / "log", b"one\n").st_mode & 0o7777 == 0o640
    (tmp_path / "log").chmod(0o600)
    assert written(tmp_path / "log", b"two\n").st_mode & 0o7777 == 0o600
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        open_for_appending(tmp_path / "log")
    assert not (tmp_path / "elsewhere").exists()


@needs_root
def test_a_log_that_root_makes_belongs_to_the_folders_owner_and_one_that_is_there_stays_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    os.chown(tmp_path, 65534, 65534)
    assert written(tmp_path / "log", b"x").st_uid == 65534
    assert written(tmp_path / "mine", b"x").st_uid == 0
    assert written(tmp_path / "given", b"x", owner=(1, 1)).st_uid == 1


def test_a_copy_is_written_whole_but_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_atomic(tmp_path / "copy", b"text", mode=0o640, durable=False)
    assert not synced
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    assert ((tmp_path / "copy").read_bytes(), (tmp_path / "copy").stat().st_mode & 0o777) == (b"text", 0o640)
    write_atomic(tmp_path / "original", b"text")
    assert len(synced) == 2, "the file and its folder"
