"""Tests of values: is_a and type_of, and the is_… functions of stdlib before 9, for which strings of digits are numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from shared.errors import EvaluationError

from ...types.inference.infer import infer_set
from ...values.core import PuppetType, Value
from ...values.labels import ruby_class
from ...values.text import float_text
from ...values.times import Timespan, Timestamp
from ...values.versions import SemVer
from ..api import Context, Dispatch, Function, function, legacy_function, require_count
from .networks import parse_network
from .numbers import float_at_start, integer_at_start

_INTEGER: Final = re.compile(r"^-?(?:(?:[1-9]\d*)|0)$", re.MULTILINE | re.ASCII)
_NUMBERS: Final = (int, float, SemVer, Timespan, Timestamp)
"""The types that the reference counts as numbers, versions and times among them."""
_NUMERIC: Final = re.compile(r"^-?(?:(?:[1-9]\d*)|0)(?:\.\d+)?(?:[eE]-?\d+)?$", re.MULTILINE | re.ASCII)
_MAC: Final = re.compile(r"^[a-f0-9]{1,2}(?:(?::[a-f0-9]{1,2}){5}|(?::[a-f0-9]{1,2}){19})$", re.IGNORECASE | re.MULTILINE)
_WINDOWS_PATH: Final = re.compile(r"\A(?:(?:[A-Z]:[\\/])|(?:[\\/][\\/][^\\/]+[\\/][^\\/]+)|(?:[\\/][\\/]\?[\\/][^\\/]+))", re.IGNORECASE)
_EMAIL_HOST: Final = re.compile(r"[a-z\d\-]+(\.[a-z]+)*\.[a-z]+")


@function("is_a", "Any value", "Type type")
def is_a(context: Context, value: Value, type_: PuppetType) -> bool:
    """Return whether a value is of a type."""
    return type_.instance(value)


@function("stdlib::type_of", "Any value")
def type_of(context: Context, value: Value) -> PuppetType:
    """Return the type of a value, in detail."""
    return infer_set(value)


def is_integer(value: Value) -> bool:
    return value.__class__ is int or (isinstance(value, str) and _INTEGER.search(value) is not None)


def is_numeric(value: Value) -> bool:
    return value.__class__ in _NUMBERS or (isinstance(value, str) and _NUMERIC.search(value) is not None)


def is_float(value: Value) -> bool:
    return value.__class__ is float or (isinstance(value, str) and value == float_text(float_at_start(value)))


def is_string(value: Value) -> bool:
    if not isinstance(value, str):
        return value is None
    return value not in (float_text(float_at_start(value)), str(integer_at_start(value)))


def is_absolute_path(value: Value) -> bool:
    return isinstance(value, str) and (value.startswith("/") or _WINDOWS_PATH.match(value) is not None)


def address_version(value: Value) -> int | None:
    """Return 4 or 6 for an address, with or without a mask; None for any other value."""
    try:
        return parse_network(value).version if isinstance(value, str) else None
    except ValueError:
        return None


def is_domain_name(value: Value) -> bool:
    if not isinstance(value, str):
        return False
    if value == ".":
        return True
    domain = value.removesuffix(".")
    if not domain or len(domain) > 255 or ("." in domain and re.search(r"\.[A-Za-z]+$", domain) is None):
        return False
    labels = domain.rstrip(".").split(".")
    return all(
        1 <= len(label) <= 63 and not label.startswith("-") and not label.endswith("-") and re.fullmatch(r"[A-Za-z\d-]+", label, re.ASCII)
        for label in labels
    )


def is_email_address(value: Value) -> bool:
    """Return whether a value is an e-mail address: a name of letters, digits and single separators, and a host of at least two labels."""
    if not isinstance(value, str) or "@" not in value:
        return False
    name, _, host = value.rpartition("@")
    if _EMAIL_HOST.fullmatch(host) is None or not name:
        return False
    offset = 0
    # One loop replaces the nested repetition of the reference's expression, which takes exponential time.
    while offset < len(name):
        if re.match(r"[\w+\-]", name[offset], re.ASCII) is None:
            return False
        has_separator = offset + 1 < len(name) and re.match(r"[\w+\-]", name[offset + 1], re.ASCII) is None
        if has_separator and name[offset + 1] == "\n":
            return False
        offset += 2 if has_separator else 1
    return True


def _predicate(name: str, test: Callable[[Value], bool], doc: str, *, brackets: bool = True, surplus: bool = False) -> Function:
    def code(context: Context, *arguments: Value) -> bool:
        if not arguments or (len(arguments) > 1 and not surplus):
            count = f"{len(arguments)} for 1"
            raise EvaluationError(f"{name}(): Wrong number of arguments given {f'({count})' if brackets else count}")
        return test(arguments[0])

    return Function(name, [Dispatch(["Any args*"], code)], doc)


is_absolute_path_function = _predicate("is_absolute_path", is_absolute_path, "Return whether a value is an absolute path.")
is_array = _predicate("is_array", lambda value: isinstance(value, list), "Return whether a value is an array.", surplus=True)
is_bool = _predicate("is_bool", lambda value: isinstance(value, bool), "Return whether a value is a boolean.")
is_hash = _predicate("is_hash", lambda value: isinstance(value, dict), "Return whether a value is a hash.")
is_float_function = _predicate("is_float", is_float, "Return whether a value is a float, or a string of one.", brackets=False)
is_integer_function = _predicate("is_integer", is_integer, "Return whether a value is an integer, or a string of one.", brackets=False)
is_numeric_function = _predicate("is_numeric", is_numeric, "Return whether a value is a number, or a string of one.", brackets=False)
is_string_function = _predicate("is_string", is_string, "Return whether a value is a string, but not one of a number.", surplus=True)


def _address_predicate(name: str, versions: tuple[int, ...], noun: str) -> Function:
    doc = f"Return whether a value is an {noun}."
    return _predicate(name, lambda value: address_version(value) in versions, doc, brackets=False)


is_ip_address = _address_predicate("is_ip_address", (4, 6), "address")
is_ipv4_address = _address_predicate("is_ipv4_address", (4,), "IPv4 address")
is_ipv6_address = _address_predicate("is_ipv6_address", (6,), "IPv6 address")
is_mac_address = _predicate(
    "is_mac_address",
    lambda value: isinstance(value, str) and _MAC.search(value) is not None,
    "Return whether a value is a MAC address.",
    brackets=False,
)
is_domain_name_function = _predicate("is_domain_name", is_domain_name, "Return whether a value is the name of a domain.", brackets=False)
is_email_address_function = _predicate("is_email_address", is_email_address, "Return whether a value is an e-mail address.", brackets=False)


@legacy_function("type3x", -1)
def type3x(context: Context, *arguments: Value) -> str:
    """Return the name that Puppet 3 had for the type of a value."""
    require_count("type3x", arguments, 1, 1)
    value = arguments[0]
    if isinstance(value, str):
        if value == str(integer_at_start(value)):
            return "integer"
        return "float" if value == float_text(float_at_start(value)) else "string"
    if isinstance(value, bool):
        return "boolean"
    if not isinstance(value, int | float | list | dict):
        raise EvaluationError("type3x(): Unknown type")
    return ruby_class(value).lower()
