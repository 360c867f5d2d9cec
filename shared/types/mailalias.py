"""`mailalias`: a line of the mail system's aliases. Source: resource layer reference 10.4."""

from __future__ import annotations

import re
from typing import Any

from ..ral import Param, Property, Type, ensurable
from ..ral.attributes import text_of
from .kinds.lines import breaks_line, one_line


def _file(value: Any) -> None:
    text = text_of(value)
    if not text.startswith("/") or breaks_line(text):
        raise ValueError(f"File paths must be fully qualified, not '{text}'")


def _name(value: Any) -> None:
    text = text_of(value)
    if breaks_line(text) or ":" in text or text.startswith("#") or not re.search(r"\S", text):
        raise ValueError("A mail alias cannot be empty, begin with '#', or include a colon or newline")


class Mailalias(Type, name="mailalias"):
    """The recipients of mail to a local address; the database is not rebuilt (run `newaliases` on a refresh)."""

    ensure = ensurable()
    recipient = Property(str, many=True, check=one_line("Recipient"), doc="Who gets the mail.")
    file = Property(str, check=_file, doc="A file with the recipients.")
    target = Property(str, doc="The file; by default /etc/aliases.")

    name = Param(str, namevar=True, check=_name, doc="The alias.")

    def validate(self) -> None:
        if self.wanted("recipient") and self.wanted("file"):
            raise ValueError("You cannot specify both a recipient and a file")
