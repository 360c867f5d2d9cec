"""Files of an environment whose contents are kept while they do not change."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from environments.files.code_files import DiskFiles, TrackedFiles


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read from the disk."""
    names: list[str] = []
    read = DiskFiles.read

    def note(self: DiskFiles, path: str) -> bytes | None:
        names.append(Path(path).name)
        return read(self, path)

    monkeypatch.setattr(DiskFiles, "read", note)
    return names


def test_a_file_of_the_same_signature_is_not_read_again(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "a.erb"
    path.write_text("old")
    kept, read = TrackedFiles(memory=1000, recent=0), TrackedFiles(recent=0)
    assert kept.read(str(path)) == read.read(str(path)) == kept.read(str(path)) == b"old"
    assert len(reads) == 2
    assert read.read(str(path)) == b"old"
    assert len(reads) == 3


def test_a_file_that_was_just_changed_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "a.erb"
    path.write_text("old")
    files = TrackedFiles(memory=1000)
    assert files.read(str(path)) == files.read(str(path)) == b"old"
    assert len(reads) == 2
    assert files.changed() is None and files.are_unchanged(), "by its content"
    assert len(reads) == 4


def test_a_file_that_was_just_changed_is_not_read_again_when_it_has_settled(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "a.erb"
    path.write_text("old")
    files = TrackedFiles(recent=60 * 10**9)
    files.read(str(path))
    files.recent = 0
    for _ in range(3):
        assert files.are_unchanged()
    assert len(reads) == 2


def test_what_a_program_has_read_counts_as_changed_if_it_was_just_changed(tmp_path: Path) -> None:
    path, now = tmp_path / "a.rb", time.time_ns()
    path.write_text("old")
    just, later = TrackedFiles(), TrackedFiles()
    just.note_read(str(path), now)
    later.note_read(str(path), now + 60 * 10**9)
    assert just.changed() is None and not just.are_unchanged()
    assert later.are_unchanged()


@pytest.mark.parametrize("memory", [0, 1000])
def test_a_file_that_changes_is_read_again(tmp_path: Path, memory: int) -> None:
    path, files = tmp_path / "a.erb", TrackedFiles(memory=memory)
    assert files.read(str(path)) is None
    path.write_text("old")
    assert files.read(str(path)) == b"old"
    path.write_text("other")
    assert files.read(str(path)) == b"other"
    path.unlink()
    assert files.read(str(path)) is None
    path.mkdir()
    assert files.read(str(path)) is None and files.exists(str(path)) and files.is_folder(str(path))


def test_what_is_kept_is_bounded(tmp_path: Path, reads: list[str]) -> None:
    files = TrackedFiles(memory=160, recent=0)
    paths = [tmp_path / f"{number:02}" for number in range(40)]
    for path in paths:
        path.write_text(path.name * 5)
    paths[20].write_text("x" * 11)
    for path in paths:
        files.read(str(path))
    reads.clear()
    for path in reversed(paths):
        files.read(str(path))
    assert 0 < 40 - len(reads) <= 16, "those that were read last, of ten octets each"
    assert "20" in reads, "larger than a sixteenth of the memory"
