"""Other releases of Puppet than this machine's, unmodified, each on the system in a folder that `make puppet3 puppet5 puppet8` makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.gate import caches
from tests.interop import stage
from tests.support.processes import Done, MasterProcess, RealAgent, clean_environment, run

# $1: the image; $2: folders of this machine, separated by colons, that are seen inside at their own places; then a command. What it writes
# elsewhere is gone with it. The process stays the same one, so that whoever started it can end it by its id.
ON_OVERLAY = """
image=$1 folders=$2; shift 2
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/tree
mount -t overlay overlay -o "lowerdir=$image,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/tree
for each in /proc /dev /sys; do mount --rbind "$each" "/mnt/tree$each"; done
IFS=:; for each in $folders; do mkdir -p "/mnt/tree$each"; mount --bind "$each" "/mnt/tree$each"; done
exec chroot /mnt/tree "$@"
"""


@dataclass(frozen=True, slots=True)
class Release:
    """One release: the folder of its system, and what it says to `--version`."""

    name: str
    version: str

    @property
    def image(self) -> Path:
        return caches.folder(self.name)

    def why_not(self) -> str:
        """Why it cannot be started here; '' when it can be tried."""
        if not self.image.is_dir():
            return f"there is no Puppet {self.version} here; `make {self.name}` makes it"
        if os.geteuid() != 0:
            return "only root can start another system's programs on an overlay"
        missing = [each for each in ("unshare", "chroot", "mount") if not shutil.which(each)]
        return f"{' and '.join(missing)} missing" if missing else ""

    def command(self, folder: Path, *argv: str, also: Sequence[Path] = ()) -> list[str]:
        """The words that start a program of this release, with `folder`, and those of `also`, where they are here."""
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", ON_OVERLAY, "sh"]
        return [*words, str(self.image), ":".join(map(str, (folder, *also))), *argv]


PUPPET_3 = Release("puppet3", "3.8.5")
PUPPET_5 = Release("puppet5", "5.5.22")
PUPPET_8 = Release("puppet8", "8.10.0")
RELEASES = (PUPPET_3, PUPPET_5, PUPPET_8)
MODERN = (None, PUPPET_8)
"""The Puppet of this machine, which is 7.23, and that of 8."""


def version_of(release: Release | None) -> str:
    """Return the version of one of MODERN."""
    return release.version if release else "7.23.0"


@dataclass(slots=True)
class OtherAgent(RealAgent):
    """The agent of another release, with directories of its own, which are all that it keeps."""

    release: Release = PUPPET_8

    @property
    def options(self) -> list[str]:
        base = {name: str(self.root / name) for name in ("confdir", "vardir", "rundir", "logdir")}
        base |= {"ssldir": str(self.ssl), "server": "localhost", "certname": self.certname, "color": "false"}
        base["serverport" if self.release is PUPPET_8 else "masterport"] = str(self.port)
        if self.release is PUPPET_8:
            base["publicdir"] = str(self.root / "publicdir")
        else:
            base["keylength"] = "2048"
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    def puppet(self, *arguments: str) -> Done:
        environ = clean_environment(HOME=str(self.root), **{f"FACTER_{name}": value for name, value in self.facts.items()})
        return run(self.release.command(self.root, "puppet", *arguments, *self.options), environ)


def agent_of(running: MasterProcess, release: Release, name: str = "web1.example.com", folder: str = "") -> OtherAgent:
    """An agent of that release beside a master that serves the stage."""
    root = stage.own_folder(running, folder or name)
    return OtherAgent(root, running.port, stage.own_name(running, name), {"stage_root": str(root / "stage")}, release)
