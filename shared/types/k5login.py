"""`k5login`: which Kerberos principals may become a user. Source: resource layer reference 10.4."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ..filesystem import modes
from ..ral import ABSENT, Param, Property, Ref, State, Type, ensurable
from ..ral.attributes import text_of
from .file_line import absolute
from .kinds.lines import one_word


class K5loginMode(Property[str]):
    """Permission bits, octal."""

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        text = text_of(raw)
        if not modes.is_octal(text):
            raise ValueError(f'The file mode specification is invalid: "{text}"')
        return [modes.octal(int(text, 8))]


class K5loginPrincipals(Property[list[str]]):
    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("principals", ABSENT)
        return (current if isinstance(current, list) else []) == desired


class K5login(Type, name="k5login"):
    """A user's .k5login."""

    ensure = ensurable()
    principals = K5loginPrincipals(str, many=True, check=one_word("Principal"), doc="All principals, one a line.")
    mode = K5loginMode(str, default="0644", doc="The file's permissions.")
    seluser = Property(str, doc="SELinux user; not managed here.")
    selrole = Property(str, doc="SELinux role; not managed here.")
    seltype = Property(str, doc="SELinux type; not managed here.")
    selrange = Property(str, doc="SELinux range; not managed here.")

    path = Param(str, namevar=True, check=absolute, doc="The file, a user's .k5login.")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(PurePosixPath(str(self.path)).parent))
