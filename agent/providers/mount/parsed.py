"""The provider of `mount`: a table like /etc/fstab, and the system's commands to mount and unmount."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.mount import MountPoint

from ..parsed.base import ParsedFile
from ..parsed.records import LineFormat, ParsedRecord

FIELDS = ("device", "name", "fstype", "options", "dump", "pass")
_MOUNTED = re.compile(r".* on (.*) type .*")


class FstabFormat(LineFormat):
    """A line is six fields between blanks; blanks within the first two are written as `\040`, tabs as `\011`."""

    def values_of(self, line: str) -> dict[str, Any] | None:
        if line.lstrip().startswith("#"):
            return None
        words = line.split()
        if len(words) < 2:
            return None
        values: dict[str, Any] = dict(zip(FIELDS, words, strict=False))
        for field in ("device", "name"):
            values[field] = values[field].replace("\\040", " ").replace("\\011", "\t")
        values["name"] = values["name"].rstrip("/") or "/"
        values["_more"] = words[len(FIELDS) :]
        return values

    def line(self, values: Mapping[str, Any]) -> str:
        for field in ("device", "name"):
            if not values.get(field):
                raise ResourceError(f"Field '{field}' is required")
        if not values.get("fstype") and "_more" not in values:
            raise ResourceError(f"Mount[{values['name']}]: Field 'fstype' is required")
        complete = {"options": "defaults", "dump": "0", "pass": "0"} | {k: v for k, v in values.items() if v is not None}
        words = [str(complete[field]) for field in FIELDS if field in complete]
        words[:2] = [word.replace(" ", "\\040").replace("\t", "\\011") for word in words[:2]]
        return "\t".join([*words, *values.get("_more", ())])


def mount_points_in(output: str) -> list[str]:
    """Return the mount points that `mount` lists."""
    paths = []
    for line in output.splitlines():
        match = _MOUNTED.fullmatch(line)
        if not match:
            raise ResourceError(f"Could not understand line {line} from mount output")
        paths.append(match[1])
    return paths


class Fstab(ParsedFile[MountPoint], type=MountPoint, name="parsed", features=("refreshable",)):
    """
    Manages one line per file system; `mount` lists the mounted ones.

    States: `unmounted` and `mounted` are in the table, `ghost` is mounted without being there.
    """

    mount = Command("mount")
    umount = Command("umount")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mounted: set[str] | None = None
        self._to_mount: set[str] = set()

    # --- reading

    async def _mounts(self) -> set[str]:
        if self._mounted is None:
            self._mounted = set(mount_points_in((await self.mount()).text))
        return self._mounted

    def state_of(self, target: str, record: ParsedRecord) -> dict[str, Any]:
        mounted = record.name in (self._mounted or ())
        return {**super().state_of(target, record), "ensure": "mounted" if mounted else "unmounted"}

    async def prefetch(self, resources: Mapping[str, MountPoint]) -> Mapping[str, State | None]:
        mounted = await self._mounts()
        states = await super().prefetch(resources)
        return {key: {"ensure": "ghost"} if state is None and key in mounted else state for key, state in states.items()}

    async def retrieve(self, resource: MountPoint) -> State | None:
        mounted = await self._mounts()
        state = await super().retrieve(resource)
        return {"ensure": "ghost"} if state is None and resource.key in mounted else state

    async def instances(self) -> Mapping[str, State]:
        mounted = await self._mounts()
        states = dict(await super().instances())
        return states | {name: {"ensure": "ghost"} for name in mounted if name not in states}

    # --- changing

    async def set(self, resource: MountPoint, attribute: str, desired: Any, state: State | None) -> None:
        if attribute != "ensure":
            await super().set(resource, attribute, desired, state)
            return
        mounted = resource.key in await self._mounts()
        await self._define(resource, state)
        if desired == "unmounted" and mounted:
            await self._unmount(resource)
        elif desired == "mounted" and not mounted:
            self._to_mount.add(resource.key)

    async def _define(self, resource: MountPoint, state: State | None) -> None:
        """Write the record into the table, with all desired values."""
        if resource.key not in self._bound:
            await super().create(resource, state)
            return
        for declared in resource.declaration.properties:
            desired = resource.wanted(declared.name)
            if declared.name not in self.own_keys and desired is not None and not declared.insync(resource, state or {}, desired):
                await super().set(resource, declared.name, desired[0], state)

    async def destroy(self, resource: MountPoint, state: State | None) -> None:
        if resource.key in await self._mounts():
            await self._unmount(resource)
        await super().destroy(resource, state)

    async def flush(self, resource: MountPoint, now: State | None) -> None:
        to_mount = resource.key in self._to_mount
        self._to_mount.discard(resource.key)
        await super().flush(resource, now)
        if to_mount:
            await self._mount(resource)

    async def refresh(self, resource: MountPoint) -> None:
        if resource.value_of("fstype") == "swap" or resource.key not in await self._mounts():
            return
        self.log.log("info", "Remounting", source=f"{resource.ref}(provider={self.name})", tags=resource.origin.tags)
        if resource.remounts:
            await self.mount("-o", "remount", str(resource.name))
        else:
            await self._unmount(resource)
            await self._mount(resource)

    async def _mount(self, resource: MountPoint) -> None:
        await self.mount(str(resource.name))
        (await self._mounts()).add(resource.key)

    async def _unmount(self, resource: MountPoint) -> None:
        await self.umount(str(resource.name))
        (await self._mounts()).discard(resource.key)
