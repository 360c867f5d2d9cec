"""`ini_subsetting`: a word within a setting of a file. Of the module inifile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..ral import Ensure, Param, Ref, Type
from ..ral.attributes import text_of
from .file_line import absolute
from .ini_setting import SHOWN, IniSettingValue
from .kinds.lines import one_line


def _quote(value: Any) -> None:
    if text_of(value) not in ("", '"', "'"):
        raise ValueError(":quote_char valid values are '', '\"' and \"'\"")


class IniSubsetting(Type, name="ini_subsetting"):
    """One of several words that a setting of an INI file holds, as an option in a list of options."""

    ensure = Ensure(str, values=("present", "absent"), default="present", doc="Whether it should be there.")
    value = IniSettingValue(str, check=one_line("Value"), doc="What follows the subsetting's name.")

    name = Param(str, namevar=True, doc="What the resource is called.")
    section = Param(str, check=one_line("Section"), default="", doc="The section; '': above all sections.")
    setting = Param(str, check=one_line("Setting"), doc="The setting's name.")
    subsetting = Param(str, check=one_line("Subsetting"), doc="How the word begins.")
    subsetting_separator = Param(str, check=one_line("Separator"), default=" ", doc="The separator of the words.")
    subsetting_key_val_separator = Param(str, check=one_line("Separator"), default="", doc="The separator of a word's name and value.")
    path = Param(str, check=absolute, doc="The file.")
    show_diff = Param(str, values=SHOWN, default="true", doc="Whether values are shown: true, md5 or false.")
    key_val_separator = Param(str, check=one_line("Separator"), default=" = ", doc="The separator of name and value in a new setting.")
    quote_char = Param(str, check=_quote, default="", doc="What a new setting's value is quoted with.")
    use_exact_match = Param(bool, default=False, doc="Whether words have no value: the subsetting is the whole word.")
    insert_type = Param(str, values=("start", "end", "before", "after", "index"), default="end", doc="Where a new word goes.")
    insert_value = Param(str, doc="The word or number that `insert_type` speaks of.")
    delete_if_empty = Param(bool, default=False, doc="Whether the setting goes with its last word.")

    diffs = False  # the setting show_diff, which the provider assigns

    def validate(self) -> None:
        for needed in ("path", "setting", "subsetting"):
            if self.value_of(needed) is None:
                raise ValueError(f"{needed} is a required attribute")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.path))
