"""What tells that a file is not the one that it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.filesystem.identity import digest_of, identity_of, is_lasting, lasting_identity_of, stamp_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_text("old")
    return path


def _edit(path: Path) -> None:
    """Change a file so that its size and its time of modification stay."""
    status = path.stat()
    with path.open("r+") as file:
        file.write("new")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_file_that_was_just_changed_is_equal_to_none(path: Path) -> None:
    own = lasting_identity_of(path)
    assert not is_lasting(own)
    assert own != lasting_identity_of(path)
    assert own != identity_of(path)


def test_a_file_that_has_settled_is_the_same_until_it_changes(path: Path) -> None:
    own = lasting_identity_of(path, recent=0)
    assert is_lasting(own)
    assert own == identity_of(path) == lasting_identity_of(path, recent=0)
    path.chmod(0o600)
    assert own != identity_of(path)


@pytest.mark.parametrize("name", ["/proc/self/comm", "/sys/kernel/uevent_seqnum"])
def test_a_file_whose_system_is_not_known_to_keep_change_times_is_equal_to_none(name: str) -> None:
    if Path(name).exists():
        assert lasting_identity_of(name, recent=-(10**18)) != identity_of(name)


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    for path in (tmp_path / "a", tmp_path / "\0"):
        assert identity_of(path) is None
        assert lasting_identity_of(path) is None
    assert stamp_of(tmp_path / "a") is None
    assert digest_of(tmp_path / "a") is None


def test_a_stamp_says_what_a_file_holds_as_long_as_its_identity_does_not_last(path: Path) -> None:
    before = stamp_of(path)
    assert before == stamp_of(path)
    _edit(path)
    assert before != stamp_of(path)
