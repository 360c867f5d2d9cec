"""
A bare Debian, to install this project in and to build its packages in.

`packaging/deb/image.sh` makes the Debian once. Each user has a copy of it, in namespaces of its own but for the network, in which `pip`
reaches what it reaches here; what is started there ends with the script that starts it.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gate import caches

PROJECT = Path(__file__).parents[2]
RELEASES = {"bookworm": "12", "trixie": "13"}
COPY = 300  # seconds

# $1: the system; $2: its account; $3: what a login shell of the account runs; then folders of this machine that are seen inside.
# As process 1 of new namespaces; it waits for what the account has left behind, as a system's first process does.
ENTER = """
system=$1 account=$2 script=$3; shift 3
hostname debian
[ -z "$LONELY" ] || ip link set lo up
mount -t proc proc "$system/proc"; mount --rbind /dev "$system/dev"
for folder; do
  mkdir -p "$system$folder"; mount --bind "$folder" "$system$folder"; mount -o remount,bind,ro "$system$folder"
done
chroot "$system" su --login "$account" --whitelist-environment="$PASSED" --command "$script"; exit $?
"""


def why_not() -> str:
    """Return why there can be no bare Debian here; '' when there can."""
    if os.geteuid() != 0:
        return "only root makes and enters a Debian in a folder"
    missing = [tool for tool in ("debootstrap", "unshare", "setpriv", "chroot", "git") if shutil.which(tool) is None]
    return f"{', '.join(missing)} is missing" if missing else ""


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
    # An index links to files beside it; folders such as /opt stay the Debian's own.
    folders = {str(path if str(path.parent.parent) == "/" else path.parent) for path in paths if path.is_absolute() and path.exists()}
    return variables, sorted(folders)


class BareSystem:
    """A bare Debian of its own, in which an account without rights, or root, runs commands."""

    ACCOUNT = "somebody"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.variables, self.folders = pip_environment()

    def prepare(self, release: str) -> None:
        """Copy the image of a release of Debian, with an account in it and this checkout in the account's home."""
        name = f"bare-{release}"
        said = caches.make(name)
        assert caches.is_made(name), said
        subprocess.run(["cp", "-a", "--reflink=auto", str(caches.folder(name)), str(self.root)], check=True, timeout=COPY)
        subprocess.run(["chroot", str(self.root), "useradd", "--create-home", "--shell", "/bin/bash", self.ACCOUNT], check=True, timeout=60)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        write_archive(self.root / "srv" / "bunraku.tar")
        self.run("tar --extract --file /srv/bunraku.tar", timeout=60)

    @property
    def home(self) -> Path:
        """The folder in which the account's commands begin."""
        return self.root / "home" / self.ACCOUNT

    def run(self, script: str, *, timeout: float, account: str = ACCOUNT, lonely: bool = False) -> str:
        """
        Return what a script of an account prints on both streams. All that it started has ended then.

        Args:
            timeout: In seconds.
            lonely: Whether its network is a loopback device only, on which all ports are free.
        """
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
        command += ["--net"] if lonely else []
        command += ["sh", "-ec", ENTER, "sh", str(self.root), account, script, *self.folders]
        environ = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "LONELY": "yes" if lonely else "",
            **self.variables,
            "PASSED": ",".join(["LANG", *self.variables]),
        }
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False
        )
        text = done.stdout.decode(errors="replace")
        assert done.returncode == 0, text
        return text


@contextmanager
def bare_system(release: str) -> Iterator[BareSystem]:
    """Make a bare Debian of a release, which is removed at the end."""
    with TemporaryDirectory(prefix="bunraku-bare-") as folder:
        system = BareSystem(Path(folder) / "debian")
        system.prepare(release)
        yield system
