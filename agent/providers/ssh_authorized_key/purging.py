"""The unmanaged keys in a user's files, which `purge_ssh_keys` of `user` removes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shared.ral import Type
from shared.types.ssh_authorized_key import SshAuthorizedKey
from shared.types.user import User

from ..parsed.records import ParsedRecord
from ..parsed.storage import read_file
from .parsed import AuthorizedKeysFormat, default_target, name_records


async def unmanaged_keys(resource: User) -> Sequence[Type]:
    """Return for each key in the user's files a resource that removes it; the run drops those that the catalog has."""
    resources: list[Type] = []
    home = resource.home or default_target(resource.name).removesuffix("/.ssh/authorized_keys")
    for entry in resource.purge_ssh_keys:
        path = entry
        if entry.startswith(("%h/", "~/")):
            if not home:
                continue  # the run creates that user
            path = f"{home.rstrip('/')}/{entry.partition('/')[2]}"
        for record in await asyncio.to_thread(_keys, path):
            parameters = {"ensure": "absent", "user": resource.name, "target": path}
            inherited = resource.given_metaparameters(relationships=False)
            key = resource.child(record.name, parameters | inherited, type=SshAuthorizedKey)
            key.origin = replace(key.origin, purging=True)
            resources.append(key)
    return resources


def _keys(path: str) -> list[ParsedRecord]:
    """Return the keys in a file; none when there is no file."""
    text = (read_file(path) or b"").decode("utf-8", "surrogateescape")
    return [record for record in name_records(path, AuthorizedKeysFormat().parse(text)) if record.text is None]
