"""Compiled code on disk: used when it is ours and whole, never otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from language.codegen.codecache import CodeCache, renew
from language.codegen.units import with_filename
from shared.errors import CompileError, ConfigError
from tests.support.compiling import compiled
from tests.support.needs import needs_root

MANIFEST = "class c { notify { 'x': message => [1, 2].map |$i| { $i + 1 } } }\ninclude c\n"


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_code_comes_back_from_disk_in_a_private_file(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    first = compiled(MANIFEST, cache=CodeCache(directory))
    (stored,) = _files(directory)
    assert stored.stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    cache = CodeCache(directory)
    assert cache.get(cache.key(MANIFEST, "None|warning|False")) is not None
    assert compiled(MANIFEST, cache=cache).parameters("Notify[x]") == first.parameters("Notify[x]")


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "magic", "flipped", "writable", "owner", "link", "folder"])
def test_a_file_that_is_not_whole_or_not_ours_alone_is_not_run(tmp_path: Path, damage: str) -> None:
    directory = tmp_path / "cache"
    compiled(MANIFEST, cache=CodeCache(directory))
    (stored,) = _files(directory)
    content = stored.read_bytes()
    if damage == "cut":
        stored.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        stored.write_bytes(b"not what it should be")
    elif damage == "empty":
        stored.write_bytes(b"")
    elif damage == "magic":
        stored.write_bytes(content.replace(b"bunraku code 2", b"bunraku code 1", 1))
    elif damage == "owner":
        if os.geteuid() != 0:
            pytest.skip("the tests are not run by root")
        os.chown(stored, 65534, 65534)
    elif damage == "folder":
        stored.unlink()
        stored.mkdir()
    elif damage == "flipped":
        stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "writable":
        stored.chmod(0o666)
    else:
        elsewhere = tmp_path / "elsewhere"
        stored.rename(elsewhere)
        stored.symlink_to(elsewhere)
    cache = CodeCache(directory)
    assert cache.get(cache.key(MANIFEST, "None|warning|False")) is None
    assert compiled(MANIFEST, cache=cache).refs == ["Class[C]", "Notify[x]"]


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(ConfigError, match="not private"):
        CodeCache(directory)


def test_a_directory_of_somebody_else_or_a_link_to_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError, match="not private"):
        CodeCache(tmp_path / "link")
    if os.geteuid() == 0:
        os.chown(tmp_path / "real", 65534, 65534)
        with pytest.raises(ConfigError, match="not private"):
            CodeCache(tmp_path / "real")


def test_code_of_another_version_of_ours_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CodeCache(tmp_path / "cache")
    compiled(MANIFEST, cache=cache)
    monkeypatch.setattr("language.codegen.codecache.CODE_VERSION", 10**6)
    fresh = CodeCache(tmp_path / "cache")
    assert fresh.get(fresh.key(MANIFEST, "None|warning|False")) is None


def test_a_disk_that_refuses_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (tmp_path / "cache").mkdir(mode=0o700)
        cache = CodeCache(tmp_path / "cache")
        (tmp_path / "cache").rmdir()
        (tmp_path / "cache").write_text("a file in its place")
    else:
        cache = CodeCache(tmp_path / "cache")
        (tmp_path / "cache").chmod(0o500)
    assert compiled(MANIFEST, cache=cache).refs == ["Class[C]", "Notify[x]"]


def test_other_text_checks_and_versions_have_other_keys() -> None:
    cache = CodeCache()
    keys = {cache.key("a", "x"), cache.key("b", "x"), cache.key("a", "y")}
    assert len(keys) == 3


def test_moved_code_says_its_new_file_throughout() -> None:
    code = compile("def f():\n    return lambda: 1\n", "/old.pp", "exec")
    moved = with_filename(code, "/new.pp")
    inner = next(each for each in moved.co_consts if hasattr(each, "co_consts"))
    innermost = next(each for each in inner.co_consts if hasattr(each, "co_consts"))
    assert {moved.co_filename, inner.co_filename, innermost.co_filename} == {"/new.pp"}


def test_an_error_in_cached_code_names_the_file_it_was_read_from_now(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path / "cache")
    files = {"modules/a/manifests/init.pp": "class a { }\n"}
    for name in ("one", "two"):
        with pytest.raises(CompileError, match=rf"/env/modules/{name}/functions/f\.pp"):
            compiled(f"{name}::f()", {**files, f"modules/{name}/functions/f.pp": f"function {name}::f() {{ fail('x') }}\n"}, cache=cache)


def test_warnings_of_a_file_are_told_again_from_the_cache(tmp_path: Path) -> None:
    for _ in range(2):
        logs = compiled('notice("a\\qb")', cache=CodeCache(tmp_path / "cache")).logs
        assert [entry.level for entry in logs] == ["warning", "notice"]


def test_the_disk_does_not_fill_up_with_what_is_not_used_any_more(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    cache = CodeCache(directory)
    for number in range(8):
        compiled(f"notice({number})", cache=cache)
        os.utime(max(_files(directory), key=lambda path: path.stat().st_ctime_ns), (number, number))
    assert len(_files(directory)) == 8
    fresh = CodeCache(directory, disk_limit=6)
    assert len(_files(directory)) == 3
    assert fresh.get(fresh.key("notice(7)", "None|warning|False")) is not None


@needs_root
def test_a_cache_of_an_earlier_start_with_another_account_is_begun_anew(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    compiled(MANIFEST, cache=CodeCache(directory))
    for path in (directory, *directory.rglob("*")):
        os.chown(path, 4711, 4711)
    assert "is not private: it belongs to uid 4711" in CodeCache.at(directory)[1]
    renew(directory, 0, 0)
    assert list(directory.iterdir()) == []
    assert CodeCache.at(directory)[1] == ""
    compiled(MANIFEST, cache=CodeCache(directory))
    renew(directory, 0, 0)
    assert len(_files(directory)) == 1
    renew(directory, 4711, 4711)
    assert (directory.stat().st_uid, _files(directory)) == (4711, [])


@needs_root
@pytest.mark.parametrize("is_link", [False, True], ids=["other files", "link"])
def test_a_folder_that_is_no_cache_stays_as_it_is(tmp_path: Path, is_link: bool) -> None:
    folder, directory = tmp_path / "folder", tmp_path / "cache"
    (folder / ("ab" if is_link else "letters")).mkdir(parents=True)
    directory.symlink_to(folder) if is_link else folder.rename(directory)
    renew(directory, 4711, 4711)
    assert len(list(directory.iterdir())) == 1 and directory.stat().st_uid == 0
