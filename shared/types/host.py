"""`host`: a line of /etc/hosts. Source: resource layer reference 10.2."""

from __future__ import annotations

import re
from typing import Any

from ..ral import ABSENT, Param, Property, State, Type, ensurable
from ..ral.attributes import as_list, text_of
from .kinds.lines import breaks_line, one_line

_LABEL = re.compile(r"\w+|\w[\w-]+\w", re.ASCII)


def _name(value: Any) -> None:
    text = text_of(value)
    if breaks_line(text):
        raise ValueError("Hostname cannot include newline")
    if not text or not all(_LABEL.fullmatch(label) for label in text.split(".")):
        raise ValueError("Invalid host name")


def _address(value: Any) -> None:
    import ipaddress

    text = text_of(value)
    try:
        ipaddress.ip_address(re.sub(r"(?<=\.)0+(?=\d)|^0+(?=\d+\.)", "", text) if "." in text else text)
    except ValueError as err:
        raise ValueError(f'Invalid IP address "{text}"') from err
    if breaks_line(text):
        raise ValueError(f'Invalid IP address "{text}"')


class HostAliases(Property[str]):
    """All aliases, in order; messages show them as one text with blanks between them."""

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        values = [text_of(value) for value in as_list(raw)]
        for alias in values:
            if alias and (re.search(r"\s", alias) or breaks_line(alias)):
                raise ValueError("Host aliases cannot include whitespace")
            if not alias:
                raise ValueError("Host aliases cannot be an empty string. Use an empty array to delete all host_aliases ")
            if alias.startswith("#"):
                raise ValueError(f"Invalid host alias {alias}")
        return [" ".join(values)]

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("host_aliases", ABSENT)
        return ([] if current == ABSENT else list(current)) == str(desired[0]).split()

    def is_text(self, resource: Type, value: Any) -> str:
        return " ".join(value) if isinstance(value, list) else super().is_text(resource, value)


class HostEntry(Type, name="host"):
    """A name for an address, in the system's table of hosts."""

    ensure = ensurable()
    ip = Property(str, check=_address, doc="The address, IPv4 or IPv6.")
    host_aliases = HostAliases(str, doc="All further names, in order.")
    comment = Property(str, check=one_line("Comment"), doc="A comment at the end of the line.")
    target = Property(str, doc="The file; by default /etc/hosts.")

    name = Param(str, namevar=True, check=_name, doc="The host's name.")
