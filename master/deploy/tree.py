"""The tree of a version's files: its digest, and flushing it to the disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
from pathlib import Path

from environments.revisions import DEPLOYMENT
from shared.errors import PuppetError
from shared.names import quoted_for_log

MAX_ENTRIES = 1_000_000
_CHUNK = 1 << 20


def digest_of(root: Path) -> str:
    """Return a SHA-256 of the names, kinds, modes and contents of all below `root`, but for Git's folders and our record. Blocks."""
    digest, entries = hashlib.sha256(), 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted([*names, *folders]):
            if name == DEPLOYMENT and folder == str(root):
                continue  # it has the time in it
            entries += 1
            if entries > MAX_ENTRIES:
                raise PuppetError(f"{root} has more than {MAX_ENTRIES} files and folders")
            path = Path(folder, name)
            status = path.lstat()
            digest.update(b"\0%s\0%o\0" % (os.fsencode(path.relative_to(root)), status.st_mode))
            if stat.S_ISLNK(status.st_mode):
                digest.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                digest.update(b"%d\0" % status.st_size)
                with path.open("rb") as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
            elif not stat.S_ISDIR(status.st_mode):
                raise PuppetError(f"Neither file nor folder nor link: {quoted_for_log(str(path))}", hint="It cannot be deployed.")
    return digest.hexdigest()


def flush(root: Path) -> None:
    """Have everything on the file system of `root` on its disk, so that no power loss leaves a link to half a version. Blocks."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(fd) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(root))
    finally:
        os.close(fd)
