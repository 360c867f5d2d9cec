"""The facts identity, path, system_uptime and timezone."""

from __future__ import annotations

import grp
import os
import pwd
import re
import time
from contextlib import suppress
from typing import Any

from .host import Host


def resolve_identity(host: Host) -> dict[str, Any]:
    """Return the fact identity: the user and group that this process runs as."""
    uid, gid = os.getuid(), os.getgid()
    identity: dict[str, Any] = {"uid": uid, "gid": gid, "privileged": uid == 0}
    with suppress(KeyError):
        identity["user"] = pwd.getpwuid(uid).pw_name
    with suppress(KeyError):
        identity["group"] = grp.getgrgid(gid).gr_name
    return {"identity": identity}


def resolve_path(host: Host) -> dict[str, Any]:
    return {"path": host.environ.get("PATH", "")}


def parse_uptime(text: str) -> dict[str, Any]:
    """Return the fact system_uptime, from /proc/uptime: `0:07 hours`, `1 day`, `12 days`."""
    match = re.match(r"\d+", text)
    if not match:
        return {}
    seconds = int(match[0])
    hours, days = seconds // 3600, seconds // 86400
    text_for_people = f"{days} days" if days > 1 else "1 day" if days else f"{hours}:{seconds % 3600 // 60:02d} hours"
    return {"days": days, "hours": hours, "seconds": seconds, "uptime": text_for_people}


def resolve_uptime(host: Host) -> dict[str, Any]:
    uptime = parse_uptime(host.read("/proc/uptime"))
    return {"system_uptime": uptime} if uptime else {}


def resolve_timezone(host: Host) -> dict[str, Any]:
    return {"timezone": time.localtime().tm_zone}
