"""The row of what is mounted below a managed directory: no recursion, purge or removal reaches it. With real mounts, in a namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.providers.file.mounts import mount_points_below

NAMESPACE = ["unshare", "--mount", "--propagation", "private"]


def why_not() -> str:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "mounting needs root and unshare (util-linux)"
    done = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "this root may not mount"


needs_mounts = pytest.mark.skipif(bool(why_not()), reason=why_not())

# Below u: an ordinary tree, a bind mount of o (the same device), a file system of its own, one deeper, a file that is mounted by itself.
SETUP = """
mkdir -p u/plain u/bind u/own 'u/deep/er mnt' o; echo x > u/plain/f; echo x > o/theirs; : > u/file; echo y > o/file
chown 1:1 o/theirs; chmod 0600 o/theirs
mount --bind o u/bind; mount -t tmpfs tmpfs u/own; mount -t tmpfs tmpfs 'u/deep/er mnt'; mount --bind o/file u/file
echo x > u/own/f; echo x > 'u/deep/er mnt/f'; echo x > u/deep/g; echo x > u/stranger
"""
RUN = """
import asyncio, json, os, sys
from tests.support.fake_commands import apply
from shared.types.file import File
from shared.types.tidy import Tidy
resources = [(File if kind == "file" else Tidy)(path, given) for kind, path, given in json.loads(sys.argv[1])]
done = asyncio.run(apply(*resources))
tree = sorted(os.path.join(folder, name) for folder, folders, files in os.walk("u") for name in (*folders, *files))
info = os.stat("o/theirs") if os.path.exists("o/theirs") else None
print(json.dumps({"lines": done.lines, "tree": tree, "theirs": [info.st_uid, info.st_mode & 0o7777] if info else None}))
"""
MOUNTED = {"u/bind", "u/bind/theirs", "u/bind/file", "u/own", "u/own/f", "u/deep/er mnt", "u/deep/er mnt/f", "u/file"}


def applied(folder: Path, *resources: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """What a run over resources (kind, path below the folder, attributes) says, and the tree that it leaves."""
    given = json.dumps([(kind, str(folder / path), attributes) for kind, path, attributes in resources])
    script = f"set -e; cd {folder}; {SETUP}\nexec {sys.executable} -c '{RUN}' \"$1\""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [*NAMESPACE, "sh", "-c", script, "sh", given]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


PURGE = {"ensure": "directory", "recurse": True, "purge": True, "force": True, "backup": False}


@needs_mounts
@pytest.mark.slow
def test_AG_20_a_purge_stops_at_mount_points_of_all_kinds_and_names_them(tmp_path: Path) -> None:
    done = applied(tmp_path, ("file", "u", PURGE))
    assert set(done["tree"]) == MOUNTED | {"u/deep"}
    warnings = [message for level, _, message in done["lines"] if level == "warning"]
    names = ", ".join(f"{tmp_path}/u/{name}" for name in ("bind", "deep/er mnt", "file", "own"))
    assert warnings == [f"Not recursing into mount points: {names}; give them a file resource of their own"]
    assert done["theirs"] == [1, 0o600]


@needs_mounts
@pytest.mark.slow
def test_AG_20_owner_and_mode_are_not_changed_below_a_mount_point(tmp_path: Path) -> None:
    done = applied(tmp_path, ("file", "u", {"ensure": "directory", "recurse": True, "owner": 2, "mode": "0640"}))
    assert done["theirs"] == [1, 0o600]
    assert any("plain/f" in source for _, source, _ in done["lines"])


@needs_mounts
@pytest.mark.slow
def test_AG_20_a_resource_of_its_own_leads_into_a_mount(tmp_path: Path) -> None:
    done = applied(tmp_path, ("file", "u", PURGE), ("file", "u/own", PURGE))
    assert set(done["tree"]) == (MOUNTED | {"u/deep"}) - {"u/own/f"}


@needs_mounts
@pytest.mark.slow
@pytest.mark.parametrize(("path", "ensure"), [("u", "absent"), ("u/deep", "absent"), ("u/bind", "absent"), ("u/deep", "file")])
def test_AG_20_a_directory_with_something_mounted_is_not_removed(tmp_path: Path, path: str, ensure: str) -> None:
    done = applied(tmp_path, ("file", path, {"ensure": ensure, "force": True, "backup": False}))
    assert set(done["tree"]) == MOUNTED | {"u/deep", "u/deep/g", "u/plain", "u/plain/f", "u/stranger"}
    errors = [message for level, _, message in done["lines"] if level == "err"]
    assert f"Refusing to remove the directory {tmp_path}/{path}" in errors[0] and "is a mount point" in errors[0]


@needs_mounts
@pytest.mark.slow
def test_AG_20_tidy_stays_in_its_file_system(tmp_path: Path) -> None:
    done = applied(tmp_path, ("tidy", "u", {"recurse": True, "rmdirs": True, "backup": False}))
    assert set(done["tree"]) >= MOUNTED and done["theirs"] == [1, 0o600]
    assert "u/stranger" not in done["tree"] and "u/plain/f" not in done["tree"]


def test_AG_20_mount_points_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    lines = [f"1 2 0:1 / {tmp_path}{point} rw shared:1 - tmpfs tmpfs rw" for point in ("/a\\040b", "/c/d", "", "x/e", "/a\\040b")]
    table.write_text("\n".join([*lines, "garbage", ""]))
    assert mount_points_below(str(tmp_path), table=table) == [".", "a b", "c/d"]
    assert "proc" in mount_points_below("/")
