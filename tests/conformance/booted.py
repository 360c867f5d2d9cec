"""
A throw-away Debian with a systemd of its own as process 1, for what only a machine that has booted can show.

It is an overlay over the image, in namespaces of its own: processes, mounts, host name, control groups and a network
without any interface that is up. Its files and processes go with the process that holds the namespaces, and that one
ends when the test's process does. `make image` lays the packages it needs into the image.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.conformance import test_sandbox
from tests.conformance.sandbox import CHECKOUT, CLEAN, OURS
from tests.support.guard import marks

SECONDS = 120.0  # the most that booting or one command may take

# $1: where to mount; $2: the image; then folders of this machine that are seen inside. Joins a control group of its own, so that
# the new systemd has no other's below it.
APART = """
set -e
place=$1 image=$2; shift 2
mount -t tmpfs -o mode=755 tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/tree" "$place/groups"
mount -t cgroup2 cgroup2 "$place/groups"
group=$place/groups/$(basename "$place"); mkdir "$group"; echo $$ > "$group/cgroup.procs"
umount "$place/groups"
tree=$place/tree
mount -t overlay overlay -o "lowerdir=$image,upperdir=$place/upper,workdir=$place/work" "$tree"
for each; do mkdir -p "$tree$each"; mount --bind "$each" "$tree$each"; mount -o remount,bind,ro "$tree$each"; done
exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh -ec "$BOOT" sh "$tree"
"""

# As process 1 of the new namespaces: what a container's manager prepares, then systemd. What would change the machine around
# (the kernel's settings and modules, its clock) is out of reach.
BOOT = """
tree=$1
hostname node1
mount -t proc proc "$tree/proc"
mount --bind "$tree/proc/sys" "$tree/proc/sys"; mount -o remount,bind,ro "$tree/proc/sys"
mount -t sysfs -o ro sysfs "$tree/sys"; mount -t cgroup2 cgroup2 "$tree/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$tree/run"; mount -t tmpfs -o mode=755 tmpfs "$tree/dev"
for each in null zero full random urandom tty; do touch "$tree/dev/$each"; mount --bind "/dev/$each" "$tree/dev/$each"; done
mkdir "$tree/dev/pts" "$tree/dev/shm"; mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"; ln -s pts/ptmx "$tree/dev/ptmx"
for each in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -s "/proc/self/${each#*:}" "$tree/dev/${each%:*}"; done
if [ ! -x "$tree/lib/systemd/systemd" ]; then
  DEBIAN_FRONTEND=noninteractive chroot "$tree" dpkg --install --force-unsafe-io --recursive /srv/more/systemd
fi
: > "$tree/etc/machine-id"
ln -sf /lib/systemd/system/multi-user.target "$tree/etc/systemd/system/default.target"
mkdir "$tree/old"; cd "$tree"; pivot_root . old; umount -l old; rmdir old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv --bounding-set -sys_module,-sys_rawio,-sys_time,-mknod \
  /lib/systemd/systemd --log-target=console --show-status=no
"""


def why_not() -> str:
    """Why no machine can be made here; '' when it can be tried."""
    missing = [each for each in ("setpriv", "nsenter") if not shutil.which(each)]
    if missing:
        return f"{' and '.join(missing)} (util-linux) is missing"
    if test_sandbox.why_not() or (test_sandbox.IMAGE / "srv/more/systemd").is_dir():
        return test_sandbox.why_not()
    return f"the image in {test_sandbox.IMAGE} is without systemd's packages; `make image` lays them in"


class Booted:
    """
    The machine, from boot to end; use it in a `with`.

    Args:
        layers: Folders that its files are from, one of them an image; what is in an earlier one hides what is in a later one.
    Raises:
        RuntimeError: it cannot be made or does not boot here; says what it answered.
    """

    def __init__(self, *layers: Path) -> None:
        self.layers = ":".join(map(str, layers))
        self.place = Path(tempfile.mkdtemp(prefix="booted-"))
        self.log = self.place / "log"
        self._holder: subprocess.Popen[bytes] | None = None
        self._init = 0

    def __enter__(self) -> Booted:
        try:
            self._boot()
        except BaseException:
            with suppress(RuntimeError):  # why it did not boot says more
                self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _boot(self) -> None:
        folders = [str(each) for each in dict.fromkeys((CHECKOUT, Path(sys.prefix), Path(sys.base_prefix))) if each != Path("/usr")]
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "sh", "-c", APART, "sh"]
        with self.log.open("wb") as log:
            self._holder = subprocess.Popen(
                [*words, str(self.place), self.layers, *folders],
                env=CLEAN | marks() | {"BOOT": BOOT},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + SECONDS
        said = ""
        while said not in ("running", "degraded"):
            if self._holder.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"systemd does not boot here, it is '{said}'; the log ends with: {self._end_of_log()}")
            time.sleep(0.1)
            self._init = self._init or self._systemd()
            said = self.run("systemctl", "is-system-running").stdout.strip() if self._init else ""

    def _end_of_log(self) -> str:
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[-5:])

    def _systemd(self) -> int:
        """The id of the new process 1 as it is seen from here, once it is systemd; 0: not yet."""
        assert self._holder is not None
        for child in children(self._holder.pid):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return child
        return 0

    def run(self, *argv: str, env: Mapping[str, str] | None = None, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        """A command on the machine, its errors among its output; it may take `seconds`."""
        spaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd"]
        return subprocess.run(
            ["nsenter", f"--target={self._init}", *spaces, "--", *argv],
            env=CLEAN | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )

    def shell(self, script: str) -> str:
        """What a script says that has to succeed."""
        done = self.run("sh", "-ec", script)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def ours(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Our `puppet` on the machine."""
        return self.run(sys.executable, "-m", "bunraku.puppet", *words, env=OURS)

    def real(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Debian's `puppet` on the machine."""
        return self.run("puppet", *words)

    def path(self, name: str) -> Path:
        """One of its files, to be read and written from here."""
        return Path(f"/proc/{self._init}/root") / name.lstrip("/")

    def install(self, name: str) -> None:
        """Installs the packages that `packages.sh` has laid into the image under that name."""
        script = f"DEBIAN_FRONTEND=noninteractive dpkg --install --force-unsafe-io --recursive /srv/more/{name}"
        done = self.run("sh", "-c", script)
        if done.returncode:
            raise RuntimeError(f"the packages of {name} cannot be installed: {done.stdout[-2000:]}")

    def processes(self) -> list[int]:
        """The ids of all its processes, as they are seen from here; the first is that of its systemd."""
        found = [self._init]
        for each in found:
            found += children(each)
        return found

    def close(self) -> None:
        """End all its processes, with them their mounts; take its control groups and its folder away."""
        if self._holder is not None:
            self._end(self._holder)
        remove(self.place)

    def _end(self, holder: subprocess.Popen[bytes]) -> None:
        for _ in range(50):
            for child in children(holder.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)  # its process 1; the kernel ends the others, and the holder ends with it
            try:
                holder.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            return
        holder.kill()
        holder.wait(SECONDS)


def remove(place: Path) -> None:
    """Takes away what a machine that has ended leaves in its folder, and its control groups; these are busy for some moments more."""
    # Where they cannot be mounted none was made.
    script = 'mount -t cgroup2 cgroup2 "$1" || exit 0; if [ -d "$1/$2" ]; then find "$1/$2" -depth -type d -exec rmdir {} +; fi'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(place), place.name]
    for _ in range(50):
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode == 0:
            break
        time.sleep(0.1)
    shutil.rmtree(place)
    if done.returncode:
        raise RuntimeError(f"control groups of {place.name} are left: {done.stderr.decode(errors='replace')}")


def children(pid: int) -> list[int]:
    """The ids of a process's children."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
