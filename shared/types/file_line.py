"""`file_line`: a line that is in a file, or is not. Of the module stdlib."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import EvaluationError
from ..ral import Ensure, Param, Property, Ref, State, Type
from ..ral.attributes import text_of
from ..regexps import Regexp
from .kinds.lines import one_line


def absolute(value: Any) -> None:
    if not text_of(value).startswith("/"):
        raise ValueError(f"File paths must be fully qualified, not '{text_of(value)}'")


class FileLinePattern(Param[Regexp | None]):
    """A regular expression of Ruby's, as text."""

    def accept(self, resource: Type, raw: Any) -> Regexp:
        pattern = Regexp(text_of(raw))
        try:
            _ = pattern.pattern
        except EvaluationError as err:
            raise ValueError(err.message) from err
        return pattern


class FileLineText(Property[str]):
    """Not compared: `ensure` decides whether the line is present."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return True


class FileLine(Type, name="file_line"):
    """A line of a file: appended, put after another, or in place of a line that matches a pattern."""

    ensure = Ensure(str, values=("present", "absent"), default="present", doc="Whether it should be there.")
    line = FileLineText(str, check=one_line("Line"), doc="The line, without its end.")

    name = Param(str, namevar=True, doc="What the resource is called.")
    path = Param(str, check=absolute, doc="The file, which has to exist.")
    match = FileLinePattern(object, doc="Lines that match are replaced.")
    match_for_absence = Param(bool, default=False, doc="With ensure absent: whether to remove the lines that `match` matches.")
    multiple = Param(bool, doc="Whether more than one line may match.")
    after = FileLinePattern(object, doc="A new line is put behind lines that match.")
    replace = Param(bool, default=True, doc="Whether a line that matches is replaced; otherwise it is as good as the line.")
    replace_all_matches_not_matching_line = Param(bool, default=False, doc="Whether all other lines that match are replaced as well.")
    encoding = Param(str, default="UTF-8", doc="The file's encoding.")
    append_on_no_match = Param(bool, default=True, doc="Whether the line is appended when nothing matches.")

    def validate(self) -> None:
        if self.replace_all_matches_not_matching_line and self.multiple is False:
            raise ValueError("multiple must be true when replace_all_matches_not_matching_line is true")
        if self.replace_all_matches_not_matching_line and not self.replace:
            raise ValueError("replace must be true when replace_all_matches_not_matching_line is true")
        if self.value_of("line") is None and not (self.value_of("ensure") == "absent" and self.match_for_absence and self.match):
            raise ValueError("line is a required attribute")
        if self.path is None:
            raise ValueError("path is a required attribute")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.path))
