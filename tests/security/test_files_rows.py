"""The file server's rows of the attack table: every spelling that once led elsewhere, and none of them does."""

import contextlib
import hashlib
import os
import resource as limits
import socket
import stat
from pathlib import Path

import pytest

from shared.errors import (
    BadName,
    BadRequest,
    NotFound,
    PeerUnreachable,
    TooLarge,
)
from shared.file_serving.contents import open_content
from shared.file_serving.metadata import MetadataOptions, metadata_of
from shared.file_serving.searching import search
from shared.file_serving.trees import FileTree
from shared.filesystem.globs import Glob
from shared.indirector import Request
from tests.support.disturbances import meanwhile
from tests.support.steps import steps_in


@pytest.fixture
def served(tmp_path):
    root = tmp_path / "modules" / "m" / "files"
    (root / "sub").mkdir(parents=True)
    (root / "a").write_text("public")
    (tmp_path / "secret").write_text("secret")
    return root


# --- served files


@pytest.mark.parametrize("key", ["../../secret", "sub/../../../secret", "/etc/passwd", "a/../../x", "a\x00b", "x" * 5000])
def test_FS_01_a_path_that_climbs_is_refused(served, key):
    for ask in (lambda: metadata_of(FileTree(served), key, MetadataOptions()), lambda: open_content(FileTree(served), key)):
        with pytest.raises((BadName, NotFound)):
            raise NotFound("none") if ask() is None else AssertionError("served")


def test_FS_01_a_name_that_contains_two_dots_is_served(served):
    (served / "a..b").write_text("x")
    assert metadata_of(FileTree(served), "a..b", MetadataOptions()).type == "file"


def test_FS_03_a_link_out_of_the_root_is_not_followed_and_managed_as_text(served, tmp_path):
    (served / "out").symlink_to(tmp_path / "secret")
    (served / "climb").symlink_to("../../../secret")
    (served / "folder").symlink_to(tmp_path)
    for name in ("out", "climb", "folder/secret"):
        assert metadata_of(FileTree(served), name, MetadataOptions(links="follow")) is None
        with pytest.raises(NotFound):
            open_content(FileTree(served), name)
    told = metadata_of(FileTree(served), "out", MetadataOptions(links="manage"))
    assert told.destination == str(tmp_path / "secret") and told.checksum.value is None


def test_FS_03_a_link_within_the_root_is_followed(served):
    (served / "in").symlink_to(served / "a")
    opened = open_content(FileTree(served), "in")
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
                told = metadata_of(FileTree(served), "a", MetadataOptions(links=links))
                assert told is None or outside not in str(told.checksum.value)
            with contextlib.suppress(NotFound):
                opened = open_content(FileTree(served), "a")
                try:
                    assert b"".join(opened.blocks()) in (b"public", b"")
                finally:
                    opened.close()


def test_FS_05_special_files_are_answered_at_once(served):
    os.mkfifo(served / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{os.open(served, os.O_RDONLY)}/socket")
    for name in ("fifo", "socket"):
        assert metadata_of(FileTree(served), name, MetadataOptions()).checksum.value == "{none}"
        with pytest.raises(NotFound):
            open_content(FileTree(served), name)
    if os.geteuid() == 0:
        os.mknod(served / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        with pytest.raises(BadRequest):
            metadata_of(FileTree(served), "zero", MetadataOptions())
        with pytest.raises(NotFound):
            open_content(FileTree(served), "zero")
    listener.close()


def test_FS_05_a_huge_sparse_file_is_refused_for_a_sum_and_streamed_in_little_memory(served):
    with (served / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge):
        metadata_of(FileTree(served), "huge", MetadataOptions(max_size=1 << 30))
    assert metadata_of(FileTree(served), "huge", MetadataOptions(checksum_type="sha256lite", max_size=1 << 30)).type == "file"
    opened = open_content(FileTree(served), "huge")
    assert opened.size == 1 << 40
    before = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    blocks = opened.blocks()
    for _ in range(200):
        assert len(next(blocks)) <= 1 << 20
    opened.close()
    assert limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB


def test_FS_05_a_file_below_proc_has_the_length_that_was_announced():
    opened = open_content(FileTree(Path("/proc/self")), "status")
    assert (opened.size, list(opened.blocks())) == (0, [])
    opened.close()


def test_FS_06_a_transfer_is_as_long_as_announced_or_broken_off(served):
    opened = open_content(FileTree(served), "a")
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
        MetadataOptions.of(Request("modules/m", options=options), checksum_type="sha256")


@pytest.mark.parametrize("pattern", ["[" * 1024, "*" * 1023 + "a", "*a" * 512, "[a-" * 340])
def test_FS_07_no_pattern_is_expensive(pattern):
    assert steps_in(lambda: Glob(pattern).matches("a" * 255)) < 20 * 1024


def test_FS_07_a_tree_without_end_is_bounded(served):
    (served / "sub" / "loop").symlink_to("..")
    listing = search(FileTree(served), "", MetadataOptions(recurse=True, recurselimit=10**9, links="follow"))
    assert len(listing.entries) < 20
