"""`augeas`: changes to files by their parsed trees. Source: resource layer reference 10.6."""

from __future__ import annotations

from typing import Any

from ..ral import Param, Property, State, Type
from ..ral.attributes import text_of
from .kinds.lists import FolderList


class AugeasReturns(Property[int]):
    """Compares as `need_to_run` while the changes would change something."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return state.get("returns") == 0

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        return "executed successfully"


class AugeasLines(Param[list[str]]):
    """Commands: an array, or one on each line of a text."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        return [line for line in _lines_in(raw) if line]


def _lines_in(raw: Any) -> list[str]:
    if isinstance(raw, list | tuple):
        return [line for value in raw for line in ([text_of(value).strip()] if not isinstance(value, list | tuple) else _lines_in(value))]
    return [line.strip() for line in text_of(raw).split("\n")]


class Augeas(Type, name="augeas", features={"parse_commands": "Reads commands.", "execute_changes": "Makes the changes."}):
    """Changes to a tree that Augeas makes of files; they are tried first, and made only if a file would change."""

    returns = AugeasReturns(int, default=0, doc="Whether the changes had to be made; not for manifests.")

    name = Param(str, namevar=True, doc="What the resource is called.")
    context = Param(str, default="", doc="What relative paths begin with; with `incl` that file.")
    onlyif = Param(str, default="", doc="A question; the changes are made only if it is answered by yes.")
    changes = AugeasLines(str, many=True, doc="The commands.")
    root = Param(str, default="/", doc="Where the file system begins.")
    load_path = FolderList(str, many=True, doc="Further folders with lenses.")
    force = Param(bool, default=False, doc="Whether the changes are made even if no file would change.")
    type_check = Param(bool, default=False, doc="Whether lenses are type-checked.")
    lens = Param(str, doc="The lens that reads `incl`.")
    incl = Param(str, doc="The one file to load.")
    show_diff = Param(bool, default=True, doc="Whether differences are shown.")

    def validate(self) -> None:
        if (self.lens is None) != (self.incl is None):
            raise ValueError("You must specify both the lens and incl parameters, or neither.")

    @property
    def prefix(self) -> str:
        """Return the beginning of relative paths, ending in a slash; '' for none."""
        base = self.context or (f"/files{self.incl}" if self.incl else "")
        return base if not base or base.endswith("/") else f"{base}/"
