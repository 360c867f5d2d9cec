"""`mount`: a file system in the table, and whether it is mounted. Source: resource layer reference 10.3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ..ral import ABSENT, Ensure, Param, Property, Ref, State, Type, Value
from ..ral.attributes import text_of
from ..ral.core import CompleteCatalog
from .kinds.lines import breaks_line, one_line


def _word(name: str) -> Any:
    def check(value: Any) -> None:
        text = text_of(value)
        if re.search(r"\s", text) or breaks_line(text):
            raise ValueError(f"{name} must not contain whitespace: {text}")
        if not text:
            raise ValueError(f"{name} must not be an empty string")

    return check


def _place(value: Any) -> None:
    one_line("Name")(value)
    if text_of(value).startswith("-"):
        raise ValueError(f"A mount point cannot begin with a dash: {text_of(value)}")  # commands would read an option


def _name(value: Any) -> str:
    text = text_of(value)
    return text.rstrip("/") or "/"


class MountEnsure(Ensure):
    """`defined` is in sync with a mounted file system as well as with an unmounted one."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("ensure", ABSENT)
        return current == desired[0] or (desired[0] == "defined" and current in ("mounted", "unmounted"))

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        return Property.change_text(self, resource, current, desired)

    def event_name(self, resource: Type, desired: Any) -> str:
        return {ABSENT: "mount_deleted", "mounted": "mount_mounted"}.get(text_of(desired), "mount_changed")


class MountAtboot(Property[str]):
    """A field of Solaris' table alone: other tables cannot hold it, so that any desired value is in sync."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return True


class MountPoint(
    Type, name="mount", refreshable=True, self_refresh=True, features={"refreshable": "The provider can remount the file system."}
):
    """A file system: its line in /etc/fstab, and whether it is mounted. Its own changes remount it."""

    ensure = MountEnsure(
        str,
        values=(Value("defined", aliases=("present",)), Value("unmounted"), Value(ABSENT), Value("mounted")),
        doc="defined (in the table, whatever is mounted), unmounted, mounted, or absent.",
    )
    device = Property(str, check=one_line("Device"), doc="What is mounted: a device, UUID=…, or a server's export.")
    blockdevice = Property(str, check=_word("blockdevice"), doc="The device to check, on Solaris.")
    fstype = Property(str, check=_word("fstype"), doc="The type of the file system.")
    options = Property(str, check=_word("options"), doc="Options, joined by commas.")
    pass_ = Property(
        int, match=r"\d+|-", munge=lambda v: text_of(v), default=lambda r: "0" if r.manages_anything else None, doc="When it is checked."
    )
    atboot = MountAtboot(
        str,
        values=(Value("yes", aliases=("true",)), Value("no", aliases=("false",))),
        doc="Mount at boot, on Solaris. Elsewhere use the option noauto; this is ignored.",
    )
    dump = Property(str, match=r"[012]", default=lambda r: "0" if r.manages_anything else None, doc="Whether it is dumped: 0 or 1.")
    target = Property(str, doc="The table; by default /etc/fstab.")

    name = Param(str, namevar=True, check=_place, munge=_name, doc="Where it is mounted.")
    remounts = Param(bool, default=True, doc="Whether `mount -o remount` works; otherwise it is unmounted and mounted.")

    _files: tuple[str, ...] = ()

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        prefix = str(self.name).rstrip("/") + "/"
        paths = [str(other.value_of("path") or "") for other in catalog.order if other.ref.type == "file"]
        self._files = tuple(path for path in paths if path.startswith(prefix) and len(path) > len(prefix))

    def autorequire(self) -> Iterator[Ref]:
        for parent in reversed(PurePosixPath(str(self.name)).parents):
            yield Ref("mount", str(parent))

    def autobefore(self) -> Iterator[Ref]:
        for path in self._files:
            yield Ref("file", path)
