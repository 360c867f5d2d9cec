"""
The commands that README begins with, on a bare Debian: with the packages that README names, by an account without rights, from an archive.

`packaging/deb/image.sh` makes the Debian once. Each test has a copy of it, in namespaces of its own but for the network, in which `pip`
reaches what it reaches here; what is started there ends with the test.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.run import MASTER
from tests.gate import caches
from tests.support.documentation import blocks

PROJECT = Path(__file__).parents[2]
RELEASES = {"bookworm": "12", "trixie": "13"}
COPY, DEMO, TESTS = 300, 600, 5400  # seconds

# $1: the system; $2: its account; $3: what a login shell of the account runs; then folders of this machine that are seen inside.
# As process 1 of new namespaces; it waits for what the account has left behind, as a system's first process does.
ENTER = """
system=$1 account=$2 script=$3; shift 3
hostname debian
mount -t proc proc "$system/proc"; mount --rbind /dev "$system/dev"
for folder; do
  mkdir -p "$system$folder"; mount --bind "$folder" "$system$folder"; mount -o remount,bind,ro "$system$folder"
done
chroot "$system" su --login "$account" --whitelist-environment="$PASSED" --command "$script"; exit $?
"""


def reason() -> str:
    if os.geteuid() != 0:
        return "only root makes and enters a Debian in a folder"
    missing = [tool for tool in ("debootstrap", "unshare", "setpriv", "chroot", "git") if shutil.which(tool) is None]
    return f"{', '.join(missing)} is missing" if missing else ""


pytestmark = [
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.alone,  # some of the tests inside are
    pytest.mark.timeout(caches.TIMEOUT + COPY + 2 * DEMO + TESTS),
    pytest.mark.skipif(bool(reason()), reason=reason()),
]

README = (PROJECT / "README.md").read_text()


def readme_packages() -> list[str]:
    """Return the packages that README says the first commands need, for the releases that it names."""
    match = re.search(r"On a fresh Debian (\d+) or (\d+) they need the packages ([^.]*), and no root", README.replace("\n", " "))
    assert match is not None and [match[1], match[2]] == list(RELEASES.values())
    return re.findall(r"`([^`]+)`", match[3])


def bare_image(release: str) -> Path:
    """Return the folder of a Debian with the packages that README names, which is made once."""
    name = f"bare-{release}"
    assert caches.CACHES[name].arguments == (release, ",".join(readme_packages()))
    said = caches.make(name)
    assert caches.is_made(name), said
    return caches.folder(name)


def write_archive(path: Path) -> None:
    """Write the files of this checkout, and nothing of Git's, as an archive."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=PROJECT, capture_output=True, check=True, timeout=60
    )
    with tarfile.open(path, "w") as archive:
        for name in os.fsdecode(listed.stdout).split("\0"):
            if name and os.path.lexists(PROJECT / name):
                archive.add(PROJECT / name, f"bunraku/{name}", recursive=False)


def pip_environment() -> tuple[dict[str, str], list[str]]:
    """Return pip's configuration on this machine as variables, with what proxies it has, and the folders that it names."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    variables = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    for line in reversed(listed.splitlines()):  # the environment's come first, and count
        name, _, value = line.partition("=")
        variables[f"PIP_{name.rpartition('.')[2].upper().replace('-', '_')}"] = ast.literal_eval(value)
    paths = [Path(word.removeprefix("file://")) for value in variables.values() for word in value.split()]
    folders = {str(path.parent) for path in paths if path.is_absolute() and path.exists()}
    return variables, sorted(folders)


class BareSystem:
    """A bare Debian of its own, in which an account without rights runs commands."""

    ACCOUNT = "somebody"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.variables, self.folders = pip_environment()

    def prepare(self, image: Path) -> None:
        """Copy the image, with an account in it and the archive in the account's home."""
        subprocess.run(["cp", "-a", "--reflink=auto", str(image), str(self.root)], check=True, timeout=COPY)
        subprocess.run(["chroot", str(self.root), "useradd", "--create-home", "--shell", "/bin/bash", self.ACCOUNT], check=True, timeout=60)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        write_archive(self.root / "srv" / "bunraku.tar")
        self.run("tar --extract --file /srv/bunraku.tar", timeout=60)

    def run(self, script: str, *, timeout: float) -> str:
        """Return what a script of the account prints on both streams. All that it started has ended then."""
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
        command += ["sh", "-ec", ENTER, "sh", str(self.root), self.ACCOUNT, script, *self.folders]
        environ = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            **self.variables,
            "PASSED": ",".join(["LANG", *self.variables]),
        }
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False
        )
        text = done.stdout.decode(errors="replace")
        assert done.returncode == 0, text
        return text


@pytest.fixture
def system(release: str, tmp_path: Path) -> Iterator[BareSystem]:
    bare = BareSystem(tmp_path / "debian")
    try:
        bare.prepare(bare_image(release))
        yield bare
    finally:
        if bare.root.exists():
            shutil.rmtree(bare.root)


@pytest.mark.parametrize("release", RELEASES)
def test_the_first_commands_of_readme_succeed_on_a_bare_debian(system: BareSystem) -> None:
    bodies = [each.body for each in blocks("README.md", "sh")]
    (then,) = (body for body in bodies if body.startswith("make demo && "))
    demo = then.partition(" && ")[0]
    (tests,) = (body.partition("#")[0].strip() for body in bodies if body.startswith("make test"))

    said = system.run(f"cd bunraku\n{demo}", timeout=DEMO)
    assert "Git is missing" not in said and "cannot be installed as it is" not in said and "Traceback" not in said, said
    headings = [line for line in said.splitlines() if line.startswith("== ")]
    assert headings[0] == f"== {MASTER}" and any("preview" in line for line in headings), said
    (page,) = re.findall(r"Open the preview in a browser: file://(/\S+)$", said, re.MULTILINE)
    assert (system.root / page.removeprefix("/")).read_text().startswith("<!DOCTYPE html>")
    assert "Usage: puppet" in system.run(f"set -e\ncd bunraku\n{then}", timeout=DEMO)

    said = system.run(f"cd bunraku\n{tests}", timeout=TESTS)
    closing = re.findall(r"^.*\b\d+ (?:passed|failed|errors?)\b.* in [\d.]+s.*$", said, re.MULTILINE)
    assert closing and not any("failed" in line or "error" in line for line in closing), said
    assert "Git is not installed" not in said and "Ruby is not installed" in said, said
