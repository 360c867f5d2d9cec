"""The provider of `mailalias`: lines of a file like /etc/aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.types.mailalias import Mailalias

from ..parsed.base import ParsedFile
from ..parsed.records import LineFormat, ParsedRecord

_PLAIN = re.compile(r"[-+\w@.]+")


class AliasesFormat(LineFormat):
    """A line is `name: recipient, "recipient"` or `name: :include: file`; continued lines belong to the alias above."""

    def values_of(self, line: str) -> dict[str, Any] | None:
        if line.startswith("#") or line[:1].isspace():
            return None
        name, colon, rest = line.partition(":")
        if not colon:
            return None
        rest = rest.strip()
        included = re.fullmatch(r":\s*include\s*:\s*(.*)", rest)
        if included:
            return {"name": name.strip(), "file": included[1]}
        return {"name": name.strip(), "recipient": recipients_of(rest)}

    def parse(self, text: str) -> list[ParsedRecord]:
        """Return the records; a line that begins with blanks continues the one above, unless that is a comment."""
        records: list[ParsedRecord] = []
        for record in super().parse(text):
            above = records[-1] if records else None
            if record.text is not None and record.text[:1].isspace() and record.text.strip() and above and above.text is None:
                more = recipients_of(record.text.strip())
                above.values["recipient"] = [*above.values.get("recipient", ()), *more]
            else:
                records.append(record)
        return records

    def line(self, values: Mapping[str, Any]) -> str:
        if values.get("file") and not values.get("recipient"):
            return f"{values['name']}: :include: {values['file']}"
        return f"{values['name']}: " + ",".join(_quote(recipient) for recipient in values.get("recipient", ()))


def recipients_of(text: str) -> list[str]:
    """Return the recipients in a text; a comma separates them when an even number of quotes follows it."""
    recipients: list[str] = []
    pieces: list[str] = []
    is_quoted = text.count('"') % 2 == 1
    for piece in text.split(","):
        pieces.append(piece)
        is_quoted ^= piece.count('"') % 2 == 1
        if not is_quoted:
            if recipient := ",".join(pieces).strip():
                recipients.append(_unquote(recipient))
            pieces = []
    return recipients


def _unquote(text: str) -> str:
    return re.sub(r"^['\"]|['\"]$", "", text)


def _quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else f'"{text}"'


class MailAliasFiles(ParsedFile[Mailalias], type=Mailalias, name="aliases"):
    """Manages one line an alias."""

    def complete_values(self, resource: Mailalias, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values for the line without the other of `recipient` and `file`, which exclude each other."""
        other = {"recipient": "file", "file": "recipient"}
        return {k: v for k, v in values.items() if k not in other or resource.wanted(k) is not None or resource.wanted(other[k]) is None}
