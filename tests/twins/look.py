"""Prints what has changed on a twin since a file was written, as JSON; runs there, by the system's own Python."""

import grp
import hashlib
import json
import os
import pwd
import stat
import sys
from pathlib import Path

# Folders whose content is another at each boot or each run: the kernel's, caches, logs, databases of the package manager,
# what Puppet writes about its own runs; and what packages bring, which the list of packages tells.
SKIPPED = (
    *("/proc", "/sys", "/dev", "/run", "/tmp", "/var/cache", "/var/log", "/var/tmp", "/var/lib/dpkg", "/var/lib/apt"),
    *(
        "/var/lib/systemd",
        "/var/lib/puppet/state",
        "/var/lib/puppet/public",
        "/srv/twins",
        "/usr/share",
        "/usr/lib",
        "/usr/bin",
        "/usr/sbin",
        "/usr/include",
    ),
)
LARGE = 64 * 1024  # bytes; of what is larger only the digest is told


def main() -> None:
    """`look.py STAMP [FOLDER …]`: the folders are skipped too."""
    since = Path(sys.argv[1]).lstat().st_ctime
    skipped = {*SKIPPED, *sys.argv[2:]}
    told = {}
    for place, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if str(Path(place, name)) not in skipped and name != "__pycache__"]
        for path in (Path(place, name) for name in folders + files):
            try:
                info = path.lstat()
                if info.st_ctime > since or stat.S_ISDIR(info.st_mode):  # a folder's time says little
                    told[str(path)] = entry(path, info)
            except FileNotFoundError:
                continue  # a service has removed it in between
    json.dump(told, sys.stdout)


def entry(path, info):
    """Return what is compared of a file."""
    told = {"mode": f"{stat.S_IMODE(info.st_mode):04o}", "owner": user(info.st_uid), "group": group(info.st_gid)}
    if stat.S_ISLNK(info.st_mode):
        return {"link": str(path.readlink())}
    if not stat.S_ISREG(info.st_mode):
        return told
    data = path.read_bytes()
    told["sha256"] = hashlib.sha256(data).hexdigest()
    if len(data) < LARGE and b"\0" not in data:
        told["text"] = data.decode("utf-8", "replace")
    return told


def user(uid):
    """Return the name of a user; without one its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group(gid):
    """Return the name of a group; without one its number."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


main()
