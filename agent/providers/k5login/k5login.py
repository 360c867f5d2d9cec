"""The provider of `k5login`: replaces whole files of principals; a new one gets the owner of its folder."""

from __future__ import annotations

import asyncio
import os
import stat

from shared.ral import Provider, State
from shared.types.k5login import K5login

from ..file.inspection import forget_selinux
from ..file.path_entries import open_entry, remove, set_mode
from ..file.replacement import Rights
from ..parsed.storage import read_file, replace_file


class K5loginFiles(Provider[K5login], type=K5login, name="k5login"):
    """Writes one principal a line, never through a link that the user has put there."""

    async def retrieve(self, resource: K5login) -> State | None:
        forget_selinux(resource)
        return await asyncio.to_thread(_state, str(resource.path))

    async def create(self, resource: K5login, state: State | None) -> None:
        await self._write(resource)

    async def destroy(self, resource: K5login, state: State | None) -> None:
        def remove_file() -> None:
            with open_entry(str(resource.path)) as entry:
                remove(entry)

        await asyncio.to_thread(remove_file)

    async def set_principals(self, resource: K5login, desired: list[str], state: State | None) -> None:
        await self._write(resource)

    async def set_mode(self, resource: K5login, desired: str, state: State | None) -> None:
        def change() -> None:
            with open_entry(str(resource.path)) as entry:
                set_mode(entry, int(desired, 8))

        await asyncio.to_thread(change)

    async def _write(self, resource: K5login) -> None:
        text = "".join(f"{principal}\n" for principal in resource.principals or ())
        mode = int(resource.mode or "0644", 8)
        await asyncio.to_thread(_put, str(resource.path), text.encode(), mode)


def _state(path: str) -> State | None:
    data = read_file(path)
    if data is None:
        return None
    with open_entry(path, follow=True) as entry:
        info = entry.lstat()
    mode = f"{stat.S_IMODE(info.st_mode):04o}" if info else "absent"
    return {"principals": [line for line in data.decode("utf-8", "surrogateescape").split("\n") if line], "mode": mode}


def _put(path: str, data: bytes, mode: int) -> None:
    with open_entry(path) as entry:
        old = entry.lstat()
        info = old if old is not None and stat.S_ISREG(old.st_mode) else os.fstat(entry.folder)
    own = info.st_uid == os.geteuid()
    replace_file(path, data, rights=Rights(-1 if own else info.st_uid, -1 if own else info.st_gid, mode))
