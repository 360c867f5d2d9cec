"""What ends the translation of a template, and what ends the run of a translated one."""

from __future__ import annotations

LONG_BITS = 63
"""Of the integers that Ruby's methods take as indexes, lengths and counts; one that has more is an error in each of them."""


class Refusal(Exception):
    """A template has a construct outside of the subset; `at` is its offset in the template's text."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class RubyStop(Exception):
    """A translated template cannot continue; if Ruby is installed, it renders the template instead."""


class Doubt(RubyStop):
    """An operation got values for which Ruby's behaviour is not certain."""


class RubyError(RubyStop):
    """Ruby raises an error at this place; the message is Ruby's in most cases, and has the sense of Ruby's in all."""
