"""Parsers of the patterns of names and addresses in 3.8's auth.conf, puppetserver's and fileserver.conf."""

from __future__ import annotations

import ipaddress
import re

from shared.errors import ConfigError, Location
from shared.names import quoted_for_log

from .expressions import Expression, Invalid
from .rules import AclEntry, Network

_HOST = re.compile(r"(\w[-\w]*\.)+[-\w]+", re.ASCII)
_DOMAIN = re.compile(r"\*(\.\w[-\w]*)+", re.ASCII)
_CAPTURED = re.compile(r".*\$[1-9].*", re.ASCII)
_WORD = re.compile(r"\w[-.@\w]*", re.ASCII)
_OCTETS = re.compile(r"((?:\d{1,3}\.){1,3})\*", re.ASCII)
_RUBY_ONLY = ((r"\A", r"\A"), (r"\z", r"\Z"), (r"\h", "[0-9a-fA-F]"), ("(?<", "(?P<"))


def ruby_regex(text: str, where: Location) -> Expression:
    """Compile a regular expression of Ruby; raise ConfigError. Keys hold no control characters, so that line anchors do not matter."""
    for ruby, python in _RUBY_ONLY:
        text = text.replace(ruby, python) if ruby != "(?<" else re.sub(r"\(\?<(?![=!])", python, text)
    try:
        return Expression.of(text)
    except Invalid as err:
        raise ConfigError(f"The regular expression {quoted_for_log(text)} is not valid: {err}", where=where) from err


def acl_entry(text: str, allows: bool, where: Location) -> AclEntry:
    """Return the entry for a name or for addresses, as fileserver.conf has both under `allow`; raise ConfigError when it is neither."""
    is_address = text != "*" and re.fullmatch(r"[0-9a-fA-F.:/*]+", text) is not None and any(c in text for c in ".:")
    return network_entry(text, allows, where) if is_address else name_entry(text, allows, where)


def name_entry(text: str, allows: bool, where: Location) -> AclEntry:
    """Return the entry for a pattern of names; raise ConfigError when it is not one."""
    if text == "*" and allows:
        return AclEntry(True, "all", text)
    if _HOST.fullmatch(text):
        return AclEntry(allows, "exact", text)
    if _DOMAIN.fullmatch(text):
        return AclEntry(allows, "domain", text[1:])
    if text.startswith("/") and text.endswith("/") and len(text) > 2:
        return AclEntry(allows, "regex", text, regex=ruby_regex(text[1:-1], where))
    if _CAPTURED.fullmatch(text):
        return AclEntry(allows, "captured", text)
    if _WORD.fullmatch(text):
        return AclEntry(allows, "exact", text)
    raise ConfigError(f"Invalid pattern {quoted_for_log(text)[1:-1]}", where=where)


def network_entry(text: str, allows: bool, where: Location) -> AclEntry:
    """Return the entry for an address or network; raise ConfigError when it is not one."""
    if text == "*" and allows:
        return AclEntry(True, "all", text)
    addresses: Network
    try:
        if octets := _OCTETS.fullmatch(text):
            parts = octets[1].rstrip(".").split(".")
            addresses = ipaddress.ip_network(".".join(parts + ["0"] * (4 - len(parts))) + f"/{8 * len(parts)}")
        else:
            addresses = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigError(f"Invalid IP pattern {quoted_for_log(text)[1:-1]}", where=where) from None
    return AclEntry(allows, "network", text, network=addresses)
