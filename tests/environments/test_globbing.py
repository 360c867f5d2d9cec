"""Patterns of file names, as Ruby 3.1's `Dir.glob` answers them."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.files import globbing
from environments.files.code_files import DiskFiles, TrackedFiles
from environments.files.globbing import Globbing
from shared.errors import EvaluationError


def allow(path: str) -> None:
    """Let every path be read."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("7.x", "a/1.x", "a/x/2.x", "a/x/.8.x", "a-b/3.x", "b/4.x", "b/.h/5.x", ".hid/6.x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "l").symlink_to("../a")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/*.x", "7.x a/1.x a/x/2.x a-b/3.x b/4.x"),
        ("**/*", "7.x a a/1.x a/x a/x/2.x a-b a-b/3.x b b/4.x c c/l"),
        ("**/", "/ a/ a/x/ a-b/ b/ c/"),
        ("**/x/**/2.x", "a/x/2.x"),
        ("**", "7.x a a-b b c"),
        ("*/", "a/ a-b/ b/ c/"),
        ("*/*/", "a/x/ c/l/"),
        ("c/l/*", "c/l/1.x c/l/x"),
        (".h*", ".hid"),
        ("{b,a}/*", "b/4.x a/1.x a/x"),
        ("{a,{b,c}}/", "a/ b/ c/"),
        ("a{,-b}", "a a-b"),
        ("a/{1,x}*", "a/1.x a/x"),
        ("[a-b]", "a b"),
        ("?", "a b c"),
        ("a**x", ""),
        ("\\a/[^x]*", "a/1.x"),
        ("\\{a,b\\}", ""),
        ("{", ""),
        ("a/x/../1.x", "a/x/../1.x"),
        ("missing/*", ""),
        ("7.x/*", ""),
    ],
)
def test_a_pattern_matches_what_it_matches_in_ruby(folder: Path, pattern: str, matches: str) -> None:
    found = Globbing(DiskFiles(), allow).matches(f"{folder}/{pattern}")
    assert [path.removeprefix(f"{folder}/") or "/" for path in found] == matches.split()


def test_a_new_match_is_a_change(folder: Path) -> None:
    files = TrackedFiles(recent=0)
    assert [*Globbing(files, allow).matches(f"{folder}/b/*.x")] == [f"{folder}/b/4.x"]
    assert files.are_unchanged()
    (folder / "b" / "5.x").touch()
    assert not files.are_unchanged()


def test_a_pattern_does_not_walk_through_a_whole_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globbing, "MAX_FOLDERS", 3)
    with pytest.raises(EvaluationError, match="may look into 3 folders at most"):
        list(Globbing(DiskFiles(), allow).matches(f"{folder}/**/*"))
