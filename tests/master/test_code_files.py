"""Files of an environment whose contents are kept while they do not change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from master.files.code_files import TrackedFiles


def write_unseen(path: Path, text: str) -> None:
    """Change a file so that nothing but its content tells."""
    status = path.stat()
    with path.open("r+") as file:
        file.write(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_file_of_the_same_signature_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.erb"
    path.write_text("old")
    kept, read = TrackedFiles(memory=1000), TrackedFiles()
    assert kept.read(str(path)) == read.read(str(path)) == b"old"
    write_unseen(path, "new")
    assert kept.read(str(path)) == b"old"
    assert read.read(str(path)) == b"new"


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


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    files = TrackedFiles(memory=160)
    paths = [tmp_path / f"{number:02}" for number in range(40)]
    for path in paths:
        path.write_text(path.name * 5)
    paths[20].write_text("x" * 11)
    for path in paths:
        files.read(str(path))
    for path in paths:
        write_unseen(path, "!")
    read = [files.read(str(path)) for path in reversed(paths)]
    kept = [data for data in read if data is not None and not data.startswith(b"!")]
    assert 0 < len(kept) <= 16, "those that were read last, of ten octets each"
    assert read[19] == b"!" + b"x" * 10, "larger than a sixteenth of the memory"
