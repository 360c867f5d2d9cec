"""The provider of `selmodule`: `semodule`."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, Provider, State
from shared.types.selmodule import Selmodule

from ..parsed.storage import read_file

SECONDS = 600.0
_MAGIC = 0xF97CFF8F


def parse_list(output: str) -> dict[str, str]:
    """Return module → version ('' where semodule prints none), from the output of `semodule --list`."""
    return {words[0]: words[1] if len(words) > 1 else "" for line in output.splitlines() if (words := line.split())}


def version_in(data: bytes, path: str) -> str:
    """Return the version that a compiled module holds; ResourceError when it is not one."""
    try:
        magic, form, sections = struct.unpack_from("<III", data)
        if magic != _MAGIC:
            raise ResourceError(f"Found {magic} instead of magic {_MAGIC} in {path}")
        if form != 1:
            raise ResourceError(f"Unknown policy file version {form} in {path}")
        at = 12 + (sections + 1) * 4
        text = b""
        for skip in (0, 0, 14, 0):
            at += skip
            (length,) = struct.unpack_from("<I", data, at)
            text = data[at + 4 : at + 4 + length]
            at += 4 + length
        return text.decode("ascii", "replace")
    except struct.error as err:
        raise ResourceError(f"{path} is cut off: {err}") from err


class Semodule(Provider[Selmodule], type=Selmodule, name="semodule"):
    """Lists the loaded modules once a run."""

    semodule = Command("/usr/sbin/semodule")

    async def prefetch(self, resources: Mapping[str, Selmodule]) -> Mapping[str, State | None]:
        loaded = parse_list((await self.semodule("--list", seconds=SECONDS)).text)
        return {key: await self._state(resource, loaded) for key, resource in resources.items()}

    async def _state(self, resource: Selmodule, loaded: Mapping[str, str]) -> State | None:
        version = loaded.get(resource.name)
        if version is None:
            return None
        if resource.wanted("syncversion") is None:
            return {"ensure": "present"}
        data = await asyncio.to_thread(read_file, resource.file)
        same = data is not None and version_in(data, resource.file) == version
        return {"ensure": "present", "syncversion": "true" if same else "false"}

    async def create(self, resource: Selmodule, state: State | None) -> None:
        await self._run("load", "--install", resource.file)

    async def destroy(self, resource: Selmodule, state: State | None) -> None:
        await self._run("remove", "--remove", resource.name)

    async def set_syncversion(self, resource: Selmodule, desired: Any, state: State | None) -> None:
        await self._run("upgrade", "--upgrade", resource.file)

    async def _run(self, action: str, *arguments: str) -> None:
        try:
            await self.semodule(*arguments, seconds=SECONDS)
        except ResourceError as err:
            raise ResourceError(f"Could not {action} policy module: {err.message}") from err
