"""The demo's preview of a change on a hundred machines: what it says, and that nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import needs_git

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
WEB = "(30 nodes: web01.example.com … web30.example.com)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def told(folder: Path) -> str:
    command = [sys.executable, str(ROOT / "demo" / "fleet.py"), "--html", str(folder / "preview.html")]
    (folder / "temporary").mkdir()
    environ = {**os.environ, "TMPDIR": str(folder / "temporary")}
    demo = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=300)
    assert (demo.returncode, demo.stderr) == (0, ""), demo.stdout
    return demo.stdout


@needs_git
def test_each_change_is_told_once_with_its_machines(told: str) -> None:
    assert f"~ File[/etc/nginx/nginx.conf] content: 2 lines {WEB}" in told
    assert "-  ssl_protocols TLSv1.1 TLSv1.2;\n   |     +  ssl_protocols TLSv1.2 TLSv1.3;" in told
    assert f"+ Package[certbot] at modules/profile/manifests/web.pp:3 {WEB}" in told
    assert "+relayhost = relay.north.example.com:587" in told


@needs_git
def test_a_machine_that_cannot_be_compiled_any_more_is_a_new_error_at_its_place(told: str) -> None:
    (line,) = (line for line in told.splitlines() if "new error" in line)
    assert "expects a value for parameter 'port' at modules/role/manifests/mail.pp:4 (6 nodes: mail01.example.com" in line


@needs_git
def test_machines_that_read_nothing_of_what_changed_are_not_compiled(told: str) -> None:
    assert "75 nodes compiled on both sides: 44 changed, 25 unchanged, 6 failed. 25 skipped (not affected)," in told


@needs_git
def test_passwords_are_nowhere(told: str, folder: Path) -> None:
    assert "~ File[/root/.pgpass] content: a sensitive value (8 nodes:" in told
    page = (folder / "preview.html").read_text()
    assert "File[/root/.pgpass]" in page
    for text in ("correct horse", "battery staple"):
        assert text not in told + page


@needs_git
def test_only_the_page_stays_and_only_its_owner_reads_it_and_its_whole_address_is_printed(told: str, folder: Path) -> None:
    assert told.count(str(folder / "preview.html")) == 2 and f"{(folder / 'preview.html').as_uri()}\n" in told
    assert sorted(path.name for path in folder.rglob("*")) == ["preview.html", "temporary"]
    assert (folder / "preview.html").stat().st_mode & 0o777 == 0o600


def test_without_git_the_preview_is_left_out_and_the_rest_is_said(folder: Path) -> None:
    page = folder / "without" / "preview.html"
    command = [sys.executable, str(ROOT / "demo" / "fleet.py"), "--html", str(page)]
    demo = subprocess.run(command, env={"PATH": "/nonexistent"}, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "== No preview of a change: Git is missing\n" in demo.stdout and "puppet cert sign NAME" in demo.stdout
    assert not page.parent.exists()
