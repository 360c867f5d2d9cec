"""Metadata of served files: every field, links, trees, limits."""

import hashlib
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from shared.errors import BadData, BadRequest, NotFound, PeerUnreachable, TooLarge
from shared.file_serving.contents import CHUNK, open_content
from shared.file_serving.metadata import MetadataOptions, metadata_of
from shared.file_serving.searching import search, search_merged
from shared.file_serving.trees import FileTree, local_tree
from shared.indirector.core import Request
from shared.models.file_metadata import FILE_METADATA, FileMetadata
from shared.wire.dialects import LEGACY, MODERN

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "files"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("hello")
    (root / "sub" / "b.txt").write_text("b")
    (root / "sub" / "deep" / "c.txt").write_text("c")
    (root / ".hidden").write_text("h")
    (root / "inner").symlink_to("a.txt")
    (tmp_path / "secret").write_text("secret")
    (root / "outer").symlink_to(tmp_path / "secret")
    (root / "a.txt").chmod(0o4750)
    return root


def names(listing):
    return [entry.relative_path for entry in listing.entries]


def test_a_files_metadata_has_every_field(root):
    found = metadata_of(FileTree(root), "a.txt", MetadataOptions(source_permissions="use"))
    assert found.to_data(MODERN) == {
        "path": str(root / "a.txt"),
        "relative_path": None,
        "links": "manage",
        "owner": os.geteuid(),
        "group": (root / "a.txt").stat().st_gid,
        "mode": 0o4750,
        "checksum": {"type": "sha256", "value": f"{{sha256}}{HELLO}"},
        "type": "file",
        "destination": None,
    }


def test_ignored_permissions_are_the_servers_own(root):
    found = metadata_of(FileTree(root), "a.txt", MetadataOptions(source_permissions="ignore"))
    assert (found.owner, found.group, found.mode) == (os.geteuid(), os.getegid(), 420)


@pytest.mark.parametrize("name", ["md5", "md5lite", "sha1", "sha1lite", "sha224", "sha256", "sha256lite", "sha384", "sha512"])
def test_every_digest_is_served(root, name):
    found = metadata_of(FileTree(root), "a.txt", MetadataOptions(checksum_type=name))
    assert found.sum.value == hashlib.new(name.removesuffix("lite"), b"hello").hexdigest()


def test_times_and_none(root):
    os.utime(root / "a.txt", (0, 1795211311))
    assert metadata_of(FileTree(root), "a.txt", MetadataOptions(checksum_type="mtime")).checksum.value == "{mtime}2026-11-20 21:48:31 +0000"
    assert metadata_of(FileTree(root), "a.txt", MetadataOptions(checksum_type="none")).checksum.value == "{none}"
    found = metadata_of(FileTree(root), "sub", MetadataOptions())
    assert found.checksum.type == "ctime" and found.checksum.value.endswith(" +0000")


def test_a_managed_link_is_itself_and_a_followed_one_what_is_behind(root):
    link = metadata_of(FileTree(root), "inner", MetadataOptions(source_permissions="use"))
    assert (link.type, link.destination, link.mode, link.sum.value) == ("link", "a.txt", 0o777, HELLO)
    followed = metadata_of(FileTree(root), "inner", MetadataOptions(links="follow", source_permissions="use"))
    assert (followed.type, followed.destination, followed.mode, followed.sum.value) == ("file", None, 0o4750, HELLO)


def test_a_link_out_of_the_tree_shows_its_text_only(root):
    link = metadata_of(FileTree(root), "outer", MetadataOptions())
    assert link.destination == str(root.parent / "secret") and link.checksum.value is None
    assert metadata_of(FileTree(root), "outer", MetadataOptions(links="follow")) is None
    assert metadata_of(FileTree(root, confined=False), "outer", MetadataOptions(links="follow")).type == "file"


def test_a_local_path_is_served_as_the_system_sees_it(root):
    tree, relative = local_tree(root / "outer")
    assert metadata_of(tree, relative, MetadataOptions(links="follow")).sum.value == hashlib.sha256(b"secret").hexdigest()
    assert metadata_of(*local_tree(root / "nothing"), MetadataOptions()) is None


def test_what_is_not_there_is_none(root):
    assert metadata_of(FileTree(root), "nothing", MetadataOptions()) is None
    assert metadata_of(FileTree(root), "a.txt/below", MetadataOptions()) is None
    assert search(FileTree(root), "nothing", MetadataOptions(recurse=True)) is None


def test_a_search_names_the_root_first_then_goes_breadth_first(root):
    listing = search(FileTree(root), "", MetadataOptions(recurse=True))
    assert names(listing) == [".", ".hidden", "a.txt", "inner", "outer", "sub", "sub/b.txt", "sub/deep", "sub/deep/c.txt"]
    assert {entry.path for entry in listing.entries} == {str(root)}
    assert listing.entries[6].full_path == str(root / "sub" / "b.txt")


def test_a_search_below_a_path_starts_there(root):
    listing = search(FileTree(root), "sub", MetadataOptions(recurse=True))
    assert names(listing) == [".", "b.txt", "deep", "deep/c.txt"]
    assert listing.entries[0].path == str(root / "sub")


@pytest.mark.parametrize(("limit", "expected"), [(0, ["."]), (1, [".", "b.txt", "deep"]), (2, [".", "b.txt", "deep", "deep/c.txt"])])
def test_recurselimit_counts_levels(root, limit, expected):
    assert names(search(FileTree(root), "sub", MetadataOptions(recurse=True, recurselimit=limit))) == expected


def test_without_recursion_there_is_only_the_root(root):
    assert names(search(FileTree(root), "", MetadataOptions())) == ["."]


def test_ignored_directories_are_not_entered(root):
    assert names(search(FileTree(root), "", MetadataOptions(recurse=True, ignore=("s*", ".*", "o*")))) == [".", "a.txt", "inner"]


def test_followed_links_to_directories_are_entered_once(root):
    (root / "sub" / "deep" / "loop").symlink_to("../..")
    (root / "also").symlink_to("sub")
    (root / "outer").unlink()
    listing = search(FileTree(root), "", MetadataOptions(recurse=True, links="follow", ignore=("inner",)))
    assert "also/b.txt" in names(listing) and "sub/deep/loop" in names(listing)
    assert not any(name.startswith("sub/deep/loop/") for name in names(listing))


def test_a_link_that_leads_nowhere_fails_a_following_search(root):
    with pytest.raises(NotFound, match="outer"):
        search(FileTree(root), "", MetadataOptions(recurse=True, links="follow"))


def test_the_first_of_several_roots_wins(tmp_path):
    for number, files in enumerate((("x", "both"), ("both", "y"))):
        (tmp_path / str(number)).mkdir()
        for name in files:
            (tmp_path / str(number) / name).write_text(f"{number}")
    roots = [(FileTree(tmp_path / "0"), ""), (FileTree(tmp_path / "missing"), ""), (FileTree(tmp_path / "1"), "")]
    listing = search_merged(roots, MetadataOptions(recurse=True))
    assert {entry.relative_path: entry.path[-1] for entry in listing.entries} == {".": "0", "both": "0", "x": "0", "y": "1"}


def test_max_files_is_a_limit_a_warning_or_nothing(root):
    with pytest.raises(BadRequest, match="contains 8 entries, which exceeds the limit of 3"):
        search(FileTree(root), "", MetadataOptions(recurse=True, max_files=3))
    assert search(FileTree(root), "", MetadataOptions(recurse=True, max_files=8)).warnings == []
    with pytest.raises(TooLarge):
        search(FileTree(root), "", MetadataOptions(recurse=True, max_files=-1, max_entries=4))


def test_a_huge_directory_warns(root, monkeypatch):
    monkeypatch.setattr("shared.file_serving.searching.SOFT_MAX_FILES", 5)
    assert "soft limit" in search(FileTree(root), "", MetadataOptions(recurse=True)).warnings[0]
    assert search(FileTree(root), "", MetadataOptions(recurse=True, max_files=-1)).warnings == []


def test_special_files_do_not_block_and_are_told(root):
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        folder = Path.cwd()
        os.chdir(root)
        try:
            listener.bind("socket")
        finally:
            os.chdir(folder)
        for name in ("fifo", "socket"):
            found = metadata_of(FileTree(root), name, MetadataOptions())
            assert (found.type, found.checksum.value) == (name, "{none}")
            with pytest.raises(NotFound):
                open_content(FileTree(root), name)


def test_content_is_streamed_in_blocks_of_exactly_the_announced_size(root):
    (root / "big").write_bytes(b"x" * 700_000)
    served = open_content(FileTree(root), "big")
    blocks = list(served.blocks())
    served.close()
    assert sum(map(len, blocks)) == served.size == 700_000 and max(map(len, blocks)) <= CHUNK


def test_a_file_that_grows_gives_the_announced_size_and_one_that_is_cut_an_error(root):
    served = open_content(FileTree(root), "a.txt")
    (root / "a.txt").write_text("hello and more")
    assert b"".join(served.blocks()) == b"hello"
    os.truncate(root / "a.txt", 2)
    with pytest.raises(PeerUnreachable):
        list(served.blocks())
    served.close()


def test_the_content_of_a_directory_is_empty(root):
    served = open_content(FileTree(root), "sub")
    assert (served.size, list(served.blocks())) == (0, [])


def test_local_files_without_a_size_are_read_whole():
    served = open_content(FileTree(Path("/proc/self/status"), confined=False), "")
    assert b"Name:" in b"".join(served.blocks())
    served.close()


def test_options_become_a_question():
    request = Request(
        "modules/x",
        options={"links": "follow", "checksum_type": "md5", "source_permissions": "use", "recurse": "true", "recurselimit": "2",
                 "max_files": "-1", "ignore": [".svn", "CVS"]},
    )  # fmt: skip
    assert MetadataOptions.of(request, checksum_type="sha256") == MetadataOptions("follow", "md5", "use", True, 2, -1, (".svn", "CVS"))
    assert MetadataOptions.of(Request("x"), checksum_type="md5", source_permissions="use") == MetadataOptions("manage", "md5", "use")
    assert MetadataOptions.of(Request("x", options={"recurselimit": "infinite"}), checksum_type="md5").recurselimit is None


@pytest.mark.parametrize("dialect", [LEGACY, MODERN], ids=lambda d: d.name)
def test_metadata_survives_the_wire(root, dialect):
    found = metadata_of(FileTree(root), "a.txt", MetadataOptions())
    format = dialect.formats[dialect.preferred]
    assert dialect.load(FILE_METADATA, dialect.dump(FILE_METADATA, found, format), format) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "characterSpecial"},
        {"mode": 65536},
        {"mode": "0644"},
        {"owner": -1},
        {"relative_path": "../../etc/cron.d/x"},
        {"relative_path": "/etc/x"},
        {"relative_path": "a\x00b"},
        {"links": "x"},
        {"checksum": {"type": "md4", "value": "{md4}x"}},
        {"path": None},
    ],
)
def test_metadata_of_a_peer_that_cannot_be_right_is_refused(wrong):
    good = {"path": "/x", "type": "file", "relative_path": "a", "checksum": {"type": "md5", "value": "{md5}" + "a" * 32}}
    FileMetadata.from_data(good)
    with pytest.raises(BadData):
        FileMetadata.from_data(good | wrong)


def test_a_checksum_of_a_peer_is_checked_when_it_is_used():
    found = FileMetadata.from_data({"path": "/x", "type": "file", "checksum": {"type": "md5", "value": "{sha1}" + "a" * 40}})
    with pytest.raises(BadData):
        _ = found.sum


def test_a_device_is_refused_with_its_kind(root):
    if os.geteuid():
        pytest.skip("the tests are not run by root")
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with pytest.raises(BadRequest, match="characterSpecial"):
        metadata_of(FileTree(root), "null", MetadataOptions())


def test_walking_while_entries_vanish_is_no_error(root):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            for number in range(20):
                (root / f"t{number}").write_text("x")
            for number in range(20):
                (root / f"t{number}").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(30):
            assert "sub/deep/c.txt" in names(search(FileTree(root), "", MetadataOptions(recurse=True)))
    finally:
        stop.set()
        thread.join()
