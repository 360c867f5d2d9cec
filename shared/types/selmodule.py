"""`selmodule`: a module of the SELinux policy. Source: resource layer reference 10.9."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import Param, Property, Ref, Type, ensurable
from ..ral.attributes import text_of
from .file_line import absolute


def _name(value: Any) -> None:
    if not re.fullmatch(r"\w[\w.-]*", text_of(value), re.ASCII):
        raise ValueError(f"Invalid name of a policy module: {text_of(value)!r}")


class Selmodule(Type, name="selmodule"):
    """A policy module: loaded or not, and in the version of its file."""

    ensure = ensurable()
    syncversion = Property(str, values=("true", "false"), doc="Whether another version than the file's is replaced.")

    name = Param(str, namevar=True, check=_name, doc="The module, without `.pp`.")
    selmoduledir = Param(str, check=absolute, default="/usr/share/selinux/targeted", doc="Where its file is, as <name>.pp.")
    selmodulepath = Param(str, check=absolute, doc="The file itself.")

    @property
    def file(self) -> str:
        """Return the path of the compiled module."""
        return self.selmodulepath or f"{self.selmoduledir}/{self.name}.pp"

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", self.file)
