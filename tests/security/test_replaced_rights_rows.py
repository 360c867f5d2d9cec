"""The row of what a new content takes over from the file that it replaces: what people mean, and no rights that somebody planted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent.providers.parsed.storage import replace_file
from shared.types.file import File
from tests.support.fake_commands import apply
from tests.support.needs import needs_root

pytestmark = needs_root
USER, OTHER = 1, 2


def planted(folder: Path, *, folder_mode: int, folder_owner: int, owner: int, mode: int) -> Path:
    """A file in a folder of its own, both with owners and modes."""
    home = folder / "folder"
    home.mkdir()
    path = home / "file"
    path.write_text("old")
    os.chown(path, owner, owner)
    path.chmod(mode)
    os.chown(home, folder_owner, folder_owner)
    home.chmod(folder_mode)
    return path


def rights(path: Path) -> tuple[int, int, int]:
    info = path.stat()
    return info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)


CASES = {  # of the folder, of the file; asked for; what the new file has
    "an ordinary file of a service stays the service's": ((0o755, 0), (USER, 0o640), {}, (USER, USER, 0o640)),
    "a user's file in their own folder stays theirs": ((0o700, USER), (USER, 0o600), {}, (USER, USER, 0o600)),
    "set-id bits go": ((0o755, 0), (0, 0o4755), {}, (0, 0, 0o755)),
    "set-id bits of a user go": ((0o755, USER), (USER, 0o6777), {}, (USER, USER, 0o777)),
    "set-id bits that are asked for stay": ((0o755, 0), (USER, 0o4755), {"mode": "4755"}, (USER, USER, 0o4755)),
    "a stranger's file in a folder of everybody becomes ours": ((0o1777, 0), (USER, 0o4666), {}, (0, 0, 0o644)),
    "a stranger's file in another's open folder becomes ours": ((0o777, OTHER), (USER, 0o600), {}, (0, 0, 0o600)),
    "a stranger's file that is asked for stays theirs": ((0o1777, 0), (USER, 0o644), {"owner": USER, "group": USER}, (USER, USER, 0o644)),
    "root's file in a folder of everybody stays as it is": ((0o1777, 0), (0, 0o640), {}, (0, 0, 0o640)),
}


@pytest.mark.parametrize(("folder", "file", "given", "expected"), CASES.values(), ids=CASES)
async def test_AG_21_a_new_content_has_the_rights_that_are_meant(
    tmp_path: Path, folder: tuple[int, int], file: tuple[int, int], given: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    path = planted(tmp_path, folder_mode=folder[0], folder_owner=folder[1], owner=file[0], mode=file[1])
    done = await apply(File(str(path), {"content": "new", "backup": False, **given}))
    assert path.read_text() == "new" and rights(path) == expected
    warnings = [message for level, _, message in done.lines if level == "warning"]
    changed = expected != (file[0], file[0], file[1])
    assert bool(warnings) is changed and all("does not take over" in message for message in warnings)


def test_AG_21_a_file_of_records_loses_set_id_bits_too(tmp_path: Path) -> None:
    path = planted(tmp_path, folder_mode=0o755, folder_owner=0, owner=USER, mode=0o4640)
    replace_file(str(path), b"new")
    assert rights(path) == (USER, USER, 0o640)


async def test_AG_21_a_backup_beside_a_file_has_no_set_id_bits(tmp_path: Path) -> None:
    path = planted(tmp_path, folder_mode=0o755, folder_owner=0, owner=0, mode=0o4755)
    await apply(File(str(path), {"content": "new", "backup": ".bak"}))
    assert rights(path.with_name("file.bak")) == (0, 0, 0o755)
