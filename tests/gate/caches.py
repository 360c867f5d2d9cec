#!/usr/bin/env python3
"""
What tests need and what takes long to make: systems in folders, other releases of Puppet, programs in environments of their own.

    python3 tests/gate/caches.py NAME...       make those that are missing, two at a time
    python3 tests/gate/caches.py --path NAME   print the folder of one

All are below one folder, /var/tmp/bunraku or $BUNRAKU_CACHES. The name of each ends in a hash of the files that make it: a change of them
makes another one, and one that nobody has asked for in two weeks goes. This uses the standard library only: it runs before `.venv` exists.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("BUNRAKU_CACHES") or "/var/tmp/bunraku")
TIMEOUT = 1500.0  # seconds for making one
UNUSED = 14 * 86400.0  # seconds after which one is removed
AT_ONCE = 2
LAST_LINES = 5  # of a log, where one could not be made


@dataclass(frozen=True, slots=True)
class Cache:
    """
    A folder that a shell script makes: it is called with the folder's path, with `arguments`, and with the folder of the cache `base`.

    `also` are further files that decide what is made. `root` says that only root can make it.
    """

    script: str
    arguments: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    base: str = ""
    root: bool = True


_LOCKS = ("requirements/release.txt", "requirements/build.txt", "requirements/puppetboard.txt")
_BARE = "python3,python3-venv,make,git"  # what README says that its first commands need
CACHES = {
    "puppet8": Cache("tests/interop/peer.sh", ("puppet8",)),
    "puppet5": Cache("tests/interop/peer.sh", ("puppet5",)),
    "puppet3": Cache("tests/interop/peer.sh", ("puppet3",), base="puppet8"),
    "image": Cache("tests/conformance/apply/image.sh", also=("tests/conformance/apply/packages.sh",)),
    "package-image": Cache("packaging/deb/image.sh"),
    **{f"bare-{release}": Cache("packaging/deb/image.sh", (release, _BARE)) for release in ("bookworm", "trixie")},
    "compose-base": Cache("demo/containers/base.sh", also=_LOCKS),
    "clients": Cache("tests/interop/clients.sh", also=("tests/interop/clients.txt",), root=False),
    "debian-modules": Cache("tests/interop/debian_modules.sh", root=False),
    "stdlib": Cache("tests/fuzz/stdlib.sh", root=False),
    "twins-image": Cache("tests/twins/image.sh", also=("tests/twins/packages.txt",), base="image"),
}
GATE = ("puppet8", "puppet3", "image", "clients", "debian-modules", "stdlib")
"""Those that the gate needs; the full run needs all."""


def folder(name: str) -> Path:
    """Return where a cache is, or will be once it is made."""
    return FOLDER / f"{name}-{_hash(name)}"


def is_made(name: str) -> bool:
    """Return whether a cache is there, and complete."""
    return _mark(folder(name)).exists()


def make(name: str) -> str:
    """Make a cache if it is missing. Returns one line that says what was done, or why not; `not made` is in the latter."""
    cache, target = CACHES[name], folder(name)
    if cache.root and os.geteuid() != 0:
        return f"{name}: not made, only root can"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _locked(FOLDER / f"{name}.lock"):
        if _mark(target).exists():
            os.utime(_mark(target))
            return f"{name}: {target}"
        began = time.monotonic()
        log = FOLDER / f"{name}.log"
        if cache.base and not is_made(cache.base):
            return f"{name}: not made, it needs {cache.base}"
        shutil.rmtree(target, ignore_errors=True)  # of one that was cut between its end and its mark
        argv = ["sh", str(ROOT / cache.script), str(target), *cache.arguments, *([str(folder(cache.base))] if cache.base else [])]
        with log.open("wb") as output:
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(), timeout=TIMEOUT, check=False
                )
                code: int | str = done.returncode
            except subprocess.TimeoutExpired:
                code = f"no end within {TIMEOUT:.0f} s"
        if code:
            last = log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:]
            return "\n    ".join([f"{name}: not made ({code}); {log} ends with:", *last])
        _mark(target).touch()
        return f"{name}: {target}, made in {time.monotonic() - began:.0f} s"


def forget_unused() -> None:
    """Remove the caches that nobody has asked for in two weeks."""
    for mark in FOLDER.glob("*.made"):
        if time.time() - mark.stat().st_mtime > UNUSED:
            shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
            mark.unlink()


def _mark(target: Path) -> Path:
    """Return the file that says that a folder is complete."""
    return target.with_name(target.name + ".made")


def _hash(name: str) -> str:
    cache = CACHES[name]
    digest = hashlib.sha256()
    for path in (cache.script, *cache.also):
        digest.update((ROOT / path).read_bytes())
    digest.update(" ".join(cache.arguments).encode())
    if cache.base:
        digest.update(_hash(cache.base).encode())
    return digest.hexdigest()[:12]


def _environment() -> dict[str, str]:
    """Return the scripts' environment: MIRROR is Debian's mirror, that of this machine's apt; PYTHON the interpreter for environments."""
    mirror = os.environ.get("MIRROR") or next(_apt_mirrors(), "")
    return {**os.environ, "MIRROR": mirror, "PYTHON": os.environ.get("PYTHON") or sys.executable}


def _apt_mirrors() -> Iterator[str]:
    for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        if path.is_file():
            yield from re.findall(r"https?://\S+/debian/?(?=\s|$)", path.read_text("utf-8", "replace"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that two runs do not make the same."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Make what is named, or print where it is. Exit code 1 when one could not be made, 2 for an unknown name."""
    names = [each for each in arguments if each != "--path"]
    if unknown := [each for each in names if each not in CACHES]:
        print(f"There is no cache named {unknown[0]}. There are {', '.join(CACHES)}.", file=sys.stderr)
        return 2
    if "--path" in arguments:
        print("\n".join(str(folder(name)) for name in names))
        return 0
    wanted = list(dict.fromkeys(part for name in names for part in (CACHES[name].base, name) if part))
    bases = [name for name in wanted if any(CACHES[other].base == name for other in wanted)]
    said: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for group in (bases, [name for name in wanted if name not in bases]):
            for line in pool.map(make, group):
                print(line, flush=True)
                said.append(line)
    forget_unused()
    return int(any(": not made" in line for line in said))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
