"""CMP-10: an archive of a module that was packed by an enemy is refused whole, and nothing of it is outside of its folder."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bunraku.modules.modulepath.placement import placement
from bunraku.modules.releases.archives import ModuleArchiveLimits, unpack
from shared.errors import BadData, NotFound, PuppetError, TooLarge
from tests.support.forge import metadata_of, module_files, packed
from tests.support.needs import needs_root

pytestmark = pytest.mark.works_with("Module tool, compared with Puppet's", "hostile archives")

LIMITS = ModuleArchiveLimits(archive=1 << 20, size=4 << 20, files=200, ratio=100)
GOOD = module_files(metadata_of("made-good", "1.0.0"))
TOP = "made-good-1.0.0"


def member(
    name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", mode: int = 0o644, pax: dict[str, str] | None = None
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, link, mode
    entry.pax_headers = pax or {}
    return entry


def archive_of(*members: tarfile.TarInfo, contents: dict[str, bytes] | None = None, form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form, encoding="utf-8", errors="surrogateescape") as tar:
        for entry in members:
            content = (contents or {}).get(entry.name, b"")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def edited(archive: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """Return an archive whose tar was edited."""
    return gzip.compress(edit(gzip.decompress(archive)))


def claimed(size: bytes) -> Callable[[bytes], bytes]:
    """Return an edit that has the first member claim another size."""

    def edit(raw: bytes) -> bytes:
        header = raw[:124] + size + raw[136:148] + b" " * 8 + raw[156:512]
        return header[:148] + b"%06o\0 " % sum(header) + header[156:] + raw[512:]

    return edit


def outside(tmp_path: Path) -> set[str]:
    return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}


REFUSED: dict[str, tuple[bytes, str]] = {
    "a path that climbs": (archive_of(member("../x")), "outside of the module"),
    "a path that climbs inside": (archive_of(member(f"{TOP}/a/../../../x")), "outside of the module"),
    "an absolute path": (archive_of(member("/etc/x")), "outside of the module"),
    "a folder that climbs": (archive_of(member("../x", tarfile.DIRTYPE)), "outside of the module"),
    "a symbolic link out": (archive_of(member("l", tarfile.SYMTYPE, link="/etc"), member("l/x")), "symbolic link"),
    "a symbolic link inside": (archive_of(member("l", tarfile.SYMTYPE, link="x")), "symbolic link"),
    "a hard link out": (archive_of(member("l", tarfile.LNKTYPE, link="/etc/passwd")), "hard link"),
    "a character device": (archive_of(member("d", tarfile.CHRTYPE)), "a device"),
    "a block device": (archive_of(member("d", tarfile.BLKTYPE)), "a device"),
    "a FIFO": (archive_of(member("f", tarfile.FIFOTYPE)), "a FIFO"),
    "a sparse file": (archive_of(member("s", tarfile.GNUTYPE_SPARSE), form=tarfile.GNU_FORMAT), "plain file"),
    "a kind of its own": (archive_of(member("k", b"Z")), "plain file"),
    "a Git repository": (archive_of(member(f"{TOP}/.git/hooks/post-checkout", mode=0o755)), "belongs to a Git repository"),
    "a Git repository below, otherwise written": (archive_of(member(f"{TOP}/files/.GIT/config")), "belongs to a Git repository"),
    "a file twice": (archive_of(member("a/x"), member("a/x")), "twice"),
    "a file twice, otherwise written": (archive_of(member("a/x"), member("./a//x")), "twice"),
    "a file as a folder": (archive_of(member("a"), member("a/x")), "both a file and a folder"),
    "a folder as a file": (archive_of(member("a/x"), member("a")), "twice"),
    "a name in Latin-1": (archive_of(member(b"caf\xe9".decode("utf-8", "surrogateescape")), form=tarfile.GNU_FORMAT), "printable UTF-8"),
    "a name that steers a terminal": (archive_of(member("a\x1b[2Jb")), "printable UTF-8"),
    "a name with a line end": (archive_of(member("a\nError: b")), "printable UTF-8"),
    "a name that is too long": (archive_of(member("a" * 300)), "outside of the module"),
    "folders without end": (archive_of(member("/".join("d" * 60))), "more than 50 folders"),
    "no name": (archive_of(member("./")), "file name"),
    "data behind the end": (gzip.compress(gzip.decompress(archive_of(member("x"))) + b"hidden" * 2000), "behind the end"),
    "another archive behind it": (archive_of(member("x")) + archive_of(member("../y")), "behind the end"),
    "rubbish behind it": (archive_of(member("x")) + b"rubbish", "no whole archive"),
    "half of it": (packed(GOOD, TOP)[:-200], "no whole archive"),
    "no gzip": (b"not an archive", "no whole archive"),
    "no tar": (gzip.compress(b"not an archive" * 100), "no whole archive"),
    "nothing": (b"", "no whole archive"),
    "a damaged header": (edited(packed(GOOD, TOP), lambda raw: raw.replace(b"0000600", b"0000601", 1)), "a header is damaged"),
    "headers without end": (archive_of(member("x", pax={f"k{n}": "v" * 9000 for n in range(20)})), "no whole archive"),
    "a length below zero": (edited(archive_of(member("x")), claimed(b"\xff" * 12)), "no whole archive"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_CMP_10_what_no_module_needs_is_refused_and_nothing_is_outside(name: str, tmp_path: Path) -> None:
    data, text = REFUSED[name]
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(data)
    modules = tmp_path / "modules"
    modules.mkdir()
    before = outside(tmp_path)
    with pytest.raises((BadData, NotFound)) as caught, placement(LIMITS) as placing:
        placing.unpacked(archive, modules)
    assert text in str(caught.value)
    assert outside(tmp_path) == before


def zeros(size: int) -> bytes:
    return archive_of(member("zeros"), contents={"zeros": bytes(size)})


BOMBS: dict[str, tuple[Callable[[], bytes], ModuleArchiveLimits]] = {
    "too much in it": (lambda: zeros(5 << 20), LIMITS),
    "much more than it is": (lambda: zeros(20 << 20), ModuleArchiveLimits(1 << 20, 1 << 30, 200, 100)),
    "a large archive": (lambda: archive_of(member("x"), contents={"x": os.urandom(2 << 20)}), LIMITS),
    "many files": (lambda: archive_of(*(member(f"f{number}") for number in range(300))), LIMITS),
    "many folders": (lambda: archive_of(*(member(f"{number}/a/b/c/d/e/f/g/h") for number in range(50))), LIMITS),
    "zeros behind the end": (lambda: archive_of(member("x"))[:0] + gzip.compress(bytes(6 << 20)), LIMITS),
}


@pytest.mark.parametrize("name", BOMBS)
def test_CMP_10_a_bomb_ends_at_a_limit(name: str, tmp_path: Path) -> None:
    make, limits = BOMBS[name]
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(make())
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises((TooLarge, BadData)):
        unpack(archive, target, limits)
    assert sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) <= max(limits.size, 16 << 20) + (1 << 20)
    assert sum(1 for _ in target.rglob("*")) <= limits.files + 1


def test_CMP_10_a_size_that_is_only_claimed_is_not_believed(tmp_path: Path) -> None:
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(edited(archive_of(member("x")), claimed(b"77777777777\0")))
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(BadData, match="no whole archive"):
        unpack(archive, target, LIMITS)


def test_CMP_10_modes_and_owners_of_an_archive_do_not_count(tmp_path: Path) -> None:
    entries = [member("top/set", mode=0o6777), member("top/plain", mode=0o6644), member("top/secret", mode=0o000)]
    for entry in entries:
        entry.uid = entry.gid = 1000
    folder = member("top", tarfile.DIRTYPE, mode=0o7777)
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(archive_of(folder, *entries))
    target = tmp_path / "target"
    target.mkdir()
    unpack(archive, target, LIMITS)
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in target.rglob("*")}
    assert modes == {"top": 0o755, "set": 0o755, "plain": 0o644, "secret": 0o644}
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in target.rglob("*")} == {(os.geteuid(), os.getegid())}


@needs_root
def test_CMP_10_what_root_unpacks_belongs_to_whom_the_folder_belongs_to(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    os.chown(modules, 4321, 1234)
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(packed(GOOD, TOP))
    with placement(LIMITS) as placing:
        module, name, _ = placing.unpacked(archive, modules)
        placing.place(module, name, modules)
        placing.commit()
    found = [modules / "good", *(modules / "good").rglob("*")]
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {(4321, 1234)}
    assert sorted(path.name for path in modules.iterdir()) == ["good"]


@pytest.mark.parametrize("name", ["made-../x", "made-Good", "good", "made-.hidden", "-good", "made-good/..", 7])
def test_CMP_10_the_metadata_of_an_archive_names_no_other_folder(name: object, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(packed({"metadata.json": b'{"name": %s, "version": "1.0.0"}' % (b"7" if name == 7 else f'"{name}"'.encode())}))
    with pytest.raises(PuppetError, match="cannot be the name of a module"), placement(LIMITS) as placing:
        placing.unpacked(archive, modules)
    assert list(modules.iterdir()) == []


def test_CMP_10_a_folder_that_is_swapped_for_a_link_while_it_is_unpacked_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "a").symlink_to(victim)  # somebody has put it there
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(archive_of(member("a/x")))
    with pytest.raises((BadData, OSError)):
        unpack(archive, target, LIMITS)
    assert list(victim.iterdir()) == []
