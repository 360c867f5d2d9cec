"""The revision of an environment's code is read from what Git, r10k, g10k and our own deployments leave beside it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from environments.revisions import DEPLOYMENT, Revisions, revision_of
from tests.support.needs import needs_git

ONE, TWO = "1" * 40, "2" * 40
LONG = "a" * 64
BRANCH = "ref: refs/heads/main\n"


def signed(revision: str, **more: object) -> str:
    """Return a record of a deployment as a tool writes it."""
    return json.dumps({**more, "signature": revision})


CASES: Mapping[str, tuple[Mapping[str, str], str | None]] = {
    "nothing": ({"manifests/site.pp": ""}, None),
    "r10k": ({".r10k-deploy.json": signed(ONE, name="production")}, ONE),
    "g10k": ({".g10k-deploy.json": signed(TWO, deploy_success=True)}, TWO),
    "our own before others": ({DEPLOYMENT: signed(f"{ONE}-0a"), ".r10k-deploy.json": signed(TWO)}, f"{ONE}-0a"),
    "r10k before Git": ({".r10k-deploy.json": signed(ONE), ".git/HEAD": TWO}, ONE),
    "r10k writes no JSON, then Git": ({".r10k-deploy.json": '{"signat', ".git/HEAD": TWO}, TWO),
    "a signature that is no code id": ({".r10k-deploy.json": '{"signature": "a b/../c"}'}, None),
    "a signature that is no text": ({".r10k-deploy.json": '{"signature": 7}'}, None),
    "a list": ({".r10k-deploy.json": "[]"}, None),
    "a commit that is checked out": ({".git/HEAD": f"{ONE}\n"}, ONE),
    "a commit of SHA-256": ({".git/HEAD": f"{LONG}\n"}, LONG),
    "a branch": ({".git/HEAD": BRANCH, ".git/refs/heads/main": f"{ONE}\n"}, ONE),
    "a branch of which nothing was committed": ({".git/HEAD": BRANCH}, None),
    "a packed branch": (
        {
            ".git/HEAD": BRANCH,
            ".git/packed-refs": f"# pack-refs with: peeled\n{TWO} refs/heads/x/refs/heads/main\n{ONE} refs/heads/main\n^{TWO}\n",
        },
        ONE,
    ),
    "a packed branch that has moved since": (
        {".git/HEAD": BRANCH, ".git/packed-refs": f"{ONE} refs/heads/main\n", ".git/refs/heads/main": TWO},
        TWO,
    ),
    "a branch that is another's name": ({".git/HEAD": BRANCH, ".git/refs/heads/main": "ref: refs/heads/b", ".git/refs/heads/b": ONE}, ONE),
    "branches in a circle": ({".git/HEAD": BRANCH, ".git/refs/heads/main": BRANCH}, None),
    "a ref that climbs": ({".git/HEAD": "ref: refs/../../secret", "secret": ONE}, None),
    "a ref elsewhere": ({".git/HEAD": "ref: /etc/passwd"}, None),
    "HEAD that is no text": ({".git/HEAD": "\x00\x01"}, None),
    "HEAD that is too large": ({".git/HEAD": ONE + " " * 70_000}, None),
    "a submodule": ({".git": "gitdir: ../store/modules/m\n", "../store/modules/m/HEAD": ONE}, ONE),
    "a worktree": (
        {
            ".git": "gitdir: ../repo/.git/worktrees/w",
            "../repo/.git/worktrees/w/HEAD": "ref: refs/heads/w",
            "../repo/.git/worktrees/w/commondir": "../..\n",
            "../repo/.git/refs/heads/w": ONE,
        },
        ONE,
    ),
    "a worktree of a packed branch": (
        {
            ".git": "gitdir: ../repo/.git/worktrees/w",
            "../repo/.git/worktrees/w/HEAD": "ref: refs/heads/w",
            "../repo/.git/worktrees/w/commondir": "../..\n",
            "../repo/.git/packed-refs": f"{TWO} refs/heads/w\n",
        },
        TWO,
    ),
    "a file .git that names nothing": ({".git": "hello"}, None),
}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("case", CASES)
def test_a_revision_is_what_stands_beside_the_code(tmp_path: Path, case: str) -> None:
    files, revision = CASES[case]
    root = tmp_path / "production"
    root.mkdir()
    write(root, files)
    assert revision_of(str(root)) == revision


def test_a_record_that_is_a_link_or_a_fifo_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(signed(ONE))
    (tmp_path / ".r10k-deploy.json").symlink_to("elsewhere")
    os.mkfifo(tmp_path / ".g10k-deploy.json")
    assert revision_of(str(tmp_path)) is None


def test_a_folder_that_does_not_exist_has_no_revision(tmp_path: Path) -> None:
    assert revision_of(str(tmp_path / "none")) is None


@pytest.mark.parametrize("change", [{".git/HEAD": TWO}, {".git/refs/heads/main": TWO}, {".r10k-deploy.json": signed(TWO)}], ids=str)
def test_a_revision_that_was_read_is_read_again_when_a_file_changes_or_appears(tmp_path: Path, change: Mapping[str, str]) -> None:
    write(tmp_path, {".git/HEAD": BRANCH, ".git/packed-refs": f"{ONE} refs/heads/main\n"})
    revisions = Revisions()
    assert [revisions.revision_of(str(tmp_path)) for _ in range(2)] == [ONE, ONE]
    for name, text in change.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("new").write_text(text)
        path.with_name("new").rename(path)
    assert revisions.revision_of(str(tmp_path)) == TWO


@needs_git
def test_git_says_the_same(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str, at: str = "repo") -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@test")
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path / at, env=environ, check=True, capture_output=True, text=True
        ).stdout.strip()

    (tmp_path / "repo").mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("branch", "feature/a")
    git("commit", "-q", "--allow-empty", "-m", "two")
    git("worktree", "add", "-q", "../work", "feature/a")
    git("clone", "-q", "--no-local", "repo", "copy", at=".")
    git("pack-refs", "--all")
    for folder in ("repo", "work", "copy"):
        assert revision_of(str(tmp_path / folder)) == git("rev-parse", "HEAD", at=folder)
    assert revision_of(str(tmp_path / "repo")) != revision_of(str(tmp_path / "work"))
    git("checkout", "-q", "--detach", "HEAD~1")
    assert revision_of(str(tmp_path / "repo")) == git("rev-parse", "HEAD")
