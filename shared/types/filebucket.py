"""`filebucket`: the place where the type `file` stores replaced content."""

from __future__ import annotations

from typing import Any

from ..ral import Param, Type


def _path(value: Any) -> str | bool:
    if isinstance(value, list):
        raise ValueError("You can only have one filebucket path")
    if value in (False, "false"):
        return False
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError("Filebucket paths must be absolute")
    return value


class Filebucket(Type, name="filebucket", providers=False):
    """A store for file contents by checksum, on this machine or on a server; the bucket `puppet` always exists."""

    name = Param(str, namevar=True, doc="What the attribute `backup` of files refers to.")
    server = Param(str, doc="The server of a remote bucket; only with `path => false`. By default the agent's own server.")
    port = Param(int, doc="The server's port; only with `path => false`.")
    path = Param(object, munge=_path, doc="Folder of a local bucket (by default the setting clientbucketdir), or false for a remote one.")
