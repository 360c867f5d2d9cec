"""`selboolean`: a switch of SELinux. Source: resource layer reference 10.9."""

from __future__ import annotations

import re
from typing import Any

from ..ral import Param, Property, Type, Value
from ..ral.attributes import text_of


def _name(value: Any) -> None:
    if not re.fullmatch(r"\w[\w.-]*", text_of(value), re.ASCII):
        raise ValueError(f"Invalid name of a boolean: {text_of(value)!r}")


class Selboolean(Type, name="selboolean"):
    """The state (on or off) of a boolean in the system's SELinux policy."""

    value = Property(str, values=(Value("on", aliases=("true",)), Value("off", aliases=("false",))), doc="on or off.")

    name = Param(str, namevar=True, check=_name, doc="The boolean.")
    persistent = Param(bool, default=False, doc="Whether it stays so after a reboot.")
