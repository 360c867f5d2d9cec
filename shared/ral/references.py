"""References: a resource's type and title, as `File[/etc/motd]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import BadData

_REFERENCE = re.compile(r"([A-Za-z][\w:]*)\[(.*)\]", re.DOTALL)


@lru_cache(maxsize=1024)
def type_label(name: str) -> str:
    """Return a type's name as references show it: `Apache::Vhost`."""
    return "::".join(part[:1].upper() + part[1:] for part in name.lower().split("::"))


@dataclass(frozen=True, slots=True)
class Ref:
    """A resource's identity: `type` in lower case (`apache::vhost`), `title` as it is; a class's title is capitalised."""

    type: str
    title: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", self.type.lower().removeprefix("::"))
        if self.type == "class":
            object.__setattr__(self, "title", type_label(self.title.removeprefix("::")))

    def __str__(self) -> str:
        return f"{type_label(self.type)}[{self.title}]"

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Return the reference that `text` writes; BadData when it is not one."""
        match = _REFERENCE.fullmatch(text)
        if not match:
            raise BadData(f"Could not understand the resource reference {text[:200]!r}", hint="References look like File[/etc/motd].")
        return cls(match[1], match[2])
