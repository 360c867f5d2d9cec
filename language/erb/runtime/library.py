"""The part of Ruby's library for translated functions: digests, Base64, JSON, URL encoding, IPAddr; and the classes of errors."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import math
import re
from collections.abc import Sequence
from urllib.parse import quote, quote_plus

from ...values.core import value_of
from ..errors import Doubt, RubyError
from .texts import text_argument
from .values import Pattern, RubyClass, RubySymbol, Value, check_text, class_name, key_for, missing_method, pattern, to_s

_DIGESTS = {"MD5": hashlib.md5, "SHA1": hashlib.sha1, "SHA256": hashlib.sha256, "SHA384": hashlib.sha384, "SHA512": hashlib.sha512}
_DOTTED = re.compile(r"(\d+)\.(\d+)\.(\d+)\.(\d+)", re.ASCII)
_DOTTED_END = re.compile(r":\d+\.\d+\.\d+\.\d+\Z")
_OF_ADDRESSES = re.compile(r"[0-9A-Fa-f:.]*")
_PLAIN_PATTERN = re.compile(r"[A-Za-z0-9_ ]*")
_JSON_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TO_ESCAPE = re.compile(r'[\x00-\x1f"\\]')
MAX_DEPTH = 90
"""Values inside values that become JSON; Ruby has a limit of 100."""


class Octets:
    """A string of octets, which may be digested or encoded again."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def _octets(value: Value) -> bytes:
    if value.__class__ is Octets:
        data: bytes = value.data
        return data
    return text_argument(value).encode()


def digest(algorithm: str, value: Value) -> Octets:
    return Octets(_DIGESTS[algorithm](_octets(value)).digest())


def hexdigest(algorithm: str, value: Value) -> str:
    return _DIGESTS[algorithm](_octets(value)).hexdigest()


def strict_encode64(value: Value) -> str:
    if value.__class__ not in (str, Octets):
        raise Doubt("what is encoded in Base64")
    return base64.b64encode(_octets(value)).decode()


def url_encode(value: Value) -> str:
    """`ERB::Util.url_encode`"""
    return quote(check_text(to_s(value)), safe="")


def cgi_escape(value: Value) -> str:
    if value.__class__ is not str:
        raise Doubt("CGI.escape of what is no string")
    return quote_plus(check_text(value))


def hash_of(value: Value) -> dict[Value, Value]:
    """`Hash[value]`"""
    if value.__class__ is dict:
        return dict(value)
    if value.__class__ is not list or not all(item.__class__ is list and len(item) == 2 for item in value):
        raise Doubt("what a hash is made of")
    return {key_for(name): item for name, item in value}


# --- JSON ---------------------------------------------------------------------------------------------------------


def to_json(value: Value, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        raise Doubt("a value that is nested too deeply")
    if value is None:
        return "null"
    if value.__class__ in (str, RubySymbol):
        return _json_text(to_s(value))
    if value.__class__ is list:
        return f"[{','.join([to_json(item, depth + 1) for item in value])}]"
    if value.__class__ is dict:
        return f"{{{','.join([f'{_json_key(key)}:{to_json(item, depth + 1)}' for key, item in value.items()])}}}"
    if value.__class__ is float and not math.isfinite(value):
        raise Doubt("a number that JSON does not have")
    if value.__class__ in (int, float, bool):
        return to_s(value)
    raise Doubt(f"a {class_name(value)} as JSON")


def _json_key(key: Value) -> str:
    value = value_of(key)
    if value.__class__ not in (str, int, RubySymbol):
        raise Doubt("a key of JSON")
    return _json_text(to_s(value))


def _json_text(text: str) -> str:
    return f'"{_TO_ESCAPE.sub(_escape, check_text(text))}"'


def _escape(match: re.Match[str]) -> str:
    return _JSON_ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


# --- IPAddr -------------------------------------------------------------------------------------------------------


class IpAddress:
    """An `IPAddr`; only its family is known."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        self.version = version


def ip_address(value: Value) -> IpAddress:
    """`IPAddr.new(value)`"""
    if value.__class__ is not str:
        class_name(value)
        raise RubyError("address family must be specified", "IPAddr::AddressFamilyError")
    dotted = _DOTTED.fullmatch(check_text(value))
    if dotted is not None:
        if any(len(octet) > 1 and octet.startswith("0") for octet in dotted.groups()):
            raise Doubt("an address with zeros in front")
        if any(int(octet) > 255 for octet in dotted.groups()):
            raise RubyError(f"invalid address: {value}", "IPAddr::InvalidAddressError")
        return IpAddress(4)
    if "/" in value or "%" in value or "\0" in value:
        raise Doubt("an address with a prefix or zone")
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if ":" not in value or _OF_ADDRESSES.fullmatch(inner) is None:
        raise RubyError(f"invalid address: {value}", "IPAddr::InvalidAddressError")
    try:
        ipaddress.IPv6Address(inner)
    except ValueError:
        if "::" in inner or _DOTTED_END.search(inner) is not None:
            raise Doubt("an address") from None
        raise RubyError(f"invalid address: {value}", "IPAddr::InvalidAddressError") from None
    return IpAddress(6)


def is_ipv6(value: Value) -> bool:
    return _address("ipv6?", value).version == 6


def is_ipv4(value: Value) -> bool:
    return _address("ipv4?", value).version == 4


def _address(name: str, value: Value) -> IpAddress:
    if value.__class__ is not IpAddress:
        raise missing_method(name, value)
    address: IpAddress = value
    return address


# --- regular expressions that are made while it runs --------------------------------------------------------------


def dynamic_pattern(source: str) -> Pattern:
    if _PLAIN_PATTERN.fullmatch(source) is None:
        raise Doubt("a regular expression that is made of special characters")
    return pattern(source)


# --- errors -------------------------------------------------------------------------------------------------------

_PARENTS = {
    "ArgumentError": "StandardError",
    "IPAddr::AddressFamilyError": "IPAddr::Error",
    "IPAddr::Error": "ArgumentError",
    "IPAddr::InvalidAddressError": "IPAddr::Error",
    "IPAddr::InvalidPrefixError": "IPAddr::InvalidAddressError",
    "IndexError": "StandardError",
    "KeyError": "IndexError",
    "NameError": "StandardError",
    "NoMethodError": "NameError",
    "Puppet::DevError": "Puppet::Error",
    "Puppet::Error": "RuntimeError",
    "Puppet::ParseError": "Puppet::Error",
    "RuntimeError": "StandardError",
    "TypeError": "StandardError",
}
ERRORS = frozenset((*_PARENTS, "StandardError"))
"""Classes of errors whose ancestors are known."""
FROM_LANGUAGE = "Puppet::ParseError"
"""The class of errors that the compiler raises while Ruby waits for it."""


def is_rescued(error: Exception, classes: Value) -> bool:
    """Return whether a handler of these classes is for an error; a Doubt when the error's class is not certain."""
    if isinstance(error, RubyError) and not error.kind:
        raise Doubt("an error whose class is not certain")
    kind = error.kind if isinstance(error, RubyError) else FROM_LANGUAGE
    wanted: Sequence[Value] = classes
    names = []
    for item in wanted:
        if item.__class__ is not RubyClass or item.name not in ERRORS:
            raise Doubt("a class of errors")
        names.append(item.name)
    while kind:
        if kind in names:
            return True
        kind = _PARENTS.get(kind, "")
    return False


def raise_of(kind: Value, message: Value) -> None:
    """`raise Puppet::ParseError, 'message'`"""
    if kind.__class__ is not RubyClass:
        raise Doubt("what is raised")
    raise RubyError(to_s(message), kind.name if kind.name in ERRORS else "")


def raise_text(message: Value) -> None:
    """`raise 'message'`"""
    if message.__class__ is RubyClass:
        raise RubyError(message.name, message.name if message.name in ERRORS else "")
    if message.__class__ is not str:
        raise Doubt("what is raised")
    raise RubyError(message, "RuntimeError")
