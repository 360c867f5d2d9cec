"""`ini_setting`: a setting in a section of a file. Of the module inifile."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ..ral import Ensure, Param, Property, Ref, State, Type, Value
from ..ral.attributes import text_of
from .file_line import absolute
from .kinds.lines import one_line

SHOWN = (Value("true", aliases=("yes",)), Value("md5"), Value("false", aliases=("no",)))


class IniSettingValue(Property[str]):
    """A value that logs show only as far as `show_diff` (of the resource, and the setting of that name) allows."""

    def should_text(self, resource: Type, value: Any) -> str:
        policy = resource.value_of("show_diff") if getattr(resource, "diffs", False) else "false"
        if policy == "true":
            return text_of(value)
        if policy == "md5":
            return "{md5}" + hashlib.md5(text_of(value).encode(), usedforsecurity=False).hexdigest()
        return "[redacted sensitive information]"

    def is_text(self, resource: Type, value: Any) -> str:
        return self.should_text(resource, value)

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        """Return whether the setting has the first value: of several, the others are not alternatives, as in the module inifile."""
        return resource.value_of("refreshonly") is True or super().insync(resource, state, desired[:1])


class IniSettingEnsure(Ensure):
    """Ignored until a refresh when `refreshonly` is set."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return resource.value_of("refreshonly") is True or super().insync(resource, state, desired)


class IniSetting(Type, name="ini_setting", refreshable=True):
    """A setting of an INI file; everything else in the file stays as it is."""

    ensure = IniSettingEnsure(str, values=("present", "absent"), default="present", doc="Whether the setting should be there.")
    value = IniSettingValue(str, check=one_line("Value"), munge=lambda v: text_of(v).strip(), doc="The setting's value.")

    name = Param(str, namevar=True, doc="What the resource is called.")
    section = Param(str, check=one_line("Section"), default="", doc="The section; '': above all sections.")
    setting = Param(
        str, check=one_line("Setting"), munge=lambda v: text_of(v).strip(), doc="The setting's name; without one the section alone."
    )
    force_new_section_creation = Param(bool, default=True, doc="Whether a section is made when it is missing.")
    path = Param(str, check=absolute, doc="The file.")
    show_diff = Param(str, values=SHOWN, default="true", doc="Whether values are shown: true, md5 or false.")
    key_val_separator = Param(str, check=one_line("Separator"), default=" = ", doc="The separator of name and value in a new setting.")
    section_prefix = Param(str, check=one_line("Prefix"), default="[", doc="What a section's line begins with.")
    section_suffix = Param(str, check=one_line("Suffix"), default="]", doc="The text at the end of a section's line.")
    indent_char = Param(str, check=one_line("Indentation"), default=" ", doc="What new settings are indented with.")
    indent_width = Param(int, doc="How far; by default as far as the section's other settings.")
    refreshonly = Param(bool, default=False, doc="Whether to change anything only on a refresh.")

    diffs = False  # the setting show_diff, which the provider assigns

    def validate(self) -> None:
        if self.path is None:
            raise ValueError("path is a required attribute")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.path))
        yield Ref("file", str(PurePosixPath(str(self.path)).parent))
