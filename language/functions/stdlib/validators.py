"""The validate_… functions: of domain names and addresses of today's stdlib, and those of stdlib before 9."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...callables.sprintf import to_float, to_integer
from ...types.descriptions.describe import describe_mismatch
from ...types.inference.infer import infer_set
from ...types.notation.operands import flatten_arrays
from ...types.notation.parse import parse_type
from ...values.core import PuppetType, Value
from ...values.labels import ruby_class
from ...values.text import inspect
from ..api import Context, Dispatch, Function, function
from ..strings import ruby_text
from .predicates import address_version, is_absolute_path


def _require_values(name: str, values: tuple[Value, ...]) -> None:
    if not values:
        raise EvaluationError(f"stdlib::{name}(): Wrong number of arguments need at least one")


@function("stdlib::validate_domain_name", "Variant[Stdlib::Fqdn, Stdlib::Dns::Zone] values*")
def validate_domain_name(context: Context, *values: Value) -> None:
    """Raise an error for a value that is not a domain name."""
    _require_values("validate_domain_name", values)


@function("stdlib::validate_email_address", "Stdlib::Email values*")
def validate_email_address(context: Context, *values: Value) -> None:
    """Raise an error for a value that is not an e-mail address."""
    _require_values("validate_email_address", values)


# --- validate_legacy ----------------------------------------------------------------------------------------------


@function("validate_legacy", "Type target_type", "String function_name", "Any value", "Any args*")
def validate_legacy(context: Context, target_type: PuppetType, function_name: str, value: Value, *args: Value) -> None:
    """Raise an error for a value that is not of the type; the name and the arguments of the replaced function are ignored."""
    if not target_type.instance(value):
        raise EvaluationError(describe_mismatch(f"validate_legacy({target_type}, ...)", target_type, infer_set(value)))


@validate_legacy.also("String type_string", "String function_name", "Any value", "Any args*")
def validate_legacy_text(context: Context, type_string: str, function_name: str, value: Value, *args: Value) -> None:
    target_type = parse_type(type_string, context.types)
    validate_legacy.call(context, [target_type, function_name, value, *args])


# --- before stdlib 9 ----------------------------------------------------------------------------------------------


def _validator(name: str, check: Callable[[tuple[Value, ...]], None], doc: str) -> Function:
    def code(context: Context, *arguments: Value) -> None:
        check(arguments)

    return Function(name, [Dispatch(["Any args*"], code)], doc)


def _check_each(name: str, fits: Callable[[Value], bool], message: Callable[[Value], str]) -> Callable[[tuple[Value, ...]], None]:
    def check(arguments: tuple[Value, ...]) -> None:
        if not arguments:
            raise EvaluationError(f"{name}(): wrong number of arguments (0; must be > 0)")
        for argument in arguments:
            if not fits(argument):
                raise EvaluationError(message(argument))

    return check


def _class_validator(kind: str, fits: Callable[[Value], bool], noun: str) -> Function:
    """Return a validator of values of one class, which the message calls `noun`."""
    name = f"validate_{kind.lower()}"
    check = _check_each(name, fits, lambda value: f"{inspect(value)} is not {noun}.  It looks to be a {ruby_class(value)}")
    return _validator(name, check, f"Raise an error for a value that is not {noun.lower()}.")


def _address_validator(kind: str, version: int | None, noun: str) -> Function:
    """Return a validator of addresses of an IP version, None for any; `noun` is how messages call them."""

    def fits(value: Value) -> bool:
        return address_version(value) == version if version else address_version(value) is not None

    def message(value: Value) -> str:
        return f"{inspect(value)} is not a {'valid ' + noun if isinstance(value, str) else 'string'}."

    name = f"validate_{kind}_address"
    doc = f"Raise an error for a value that is not an {noun}."
    return _validator(name, _check_each(name, fits, message), doc)


def _check_paths(arguments: tuple[Value, ...]) -> None:
    if not arguments:
        raise EvaluationError("validate_absolute_path(): wrong number of arguments (0; must be > 0)")
    for argument in arguments:
        for path in argument if isinstance(argument, list) else [argument]:
            if not is_absolute_path(path):
                raise EvaluationError(f"{inspect(path)} is not an absolute path.")


validate_absolute_path = _validator("validate_absolute_path", _check_paths, "Raise an error for a value that is not an absolute path.")
validate_array = _class_validator("Array", lambda value: isinstance(value, list), "an Array")
validate_bool = _class_validator("Bool", lambda value: isinstance(value, bool), "a boolean")
validate_hash = _class_validator("Hash", lambda value: isinstance(value, dict), "a Hash")
validate_string = _class_validator("String", lambda value: value is None or isinstance(value, str), "a string")
validate_ip_address = _address_validator("ip", None, "IP address")
validate_ipv4_address = _address_validator("ipv4", 4, "IPv4 address")
validate_ipv6_address = _address_validator("ipv6", 6, "IPv6 address")


class _Bounds:
    """The checks of validate_integer and validate_numeric: a value or an array of values between a smallest and a largest one."""

    def __init__(self, name: str, noun: str, convert: Callable[[Value], float]) -> None:
        self.name = name
        self.noun = noun
        self.convert = convert

    def check(self, arguments: tuple[Value, ...]) -> None:
        if not 0 < len(arguments) < 4:
            raise EvaluationError(f"{self.name}(): Wrong number of arguments; must be 1, 2 or 3, got {len(arguments)}")
        value = arguments[0]
        high = self._bound(arguments, 1, "second") if len(arguments) > 1 else None
        low = self._bound(arguments, 2, "third") if len(arguments) > 2 else None
        if low is not None and high is not None and low > high:
            relation = f"{ruby_text(high)} < {ruby_text(low)}"
            raise EvaluationError(f"{self.name}(): Expected second argument to be larger than third argument, got {relation}")
        article = f"{self.noun} or Array"
        if isinstance(value, dict):
            # The reference names validate_integer here for both functions.
            raise EvaluationError(f"validate_integer(): Expected first argument to be {article}, got Hash")
        if isinstance(value, list):
            for position, item in enumerate(value):
                number = self._number(item, f"Expected element at array position {position} to be {self.noun}, got {ruby_class(item)}")
                self._check_range(number, value, low, high)
            return
        number = self._number(value, f"Expected first argument to be {article}, got {ruby_class(value)}")
        self._check_range(number, number, low, high)

    def _number(self, value: Value, message: str) -> float:
        try:
            return self.convert("{}" if isinstance(value, dict) else ruby_text(value))
        except EvaluationError as error:
            raise EvaluationError(f"{self.name}(): {message}") from error

    def _bound(self, arguments: tuple[Value, ...], index: int, which: str) -> float | None:
        text = ruby_text(arguments[index])
        if index == 1 and len(arguments) > 2 and text == "":
            return None
        try:
            return self.convert(text)
        except EvaluationError as error:
            description = f"{text}:String" if index == 1 else f"{text}:{ruby_class(arguments[index])}"
            raise EvaluationError(f"{self.name}(): Expected {which} argument to be unset or {self.noun}, got {description}") from error

    def _check_range(self, number: float, subject: Value, low: float | None, high: float | None) -> None:
        text = inspect(subject)
        if high is not None and number > high:
            raise EvaluationError(f"{self.name}(): Expected {text} to be smaller or equal to {ruby_text(high)}, got {text}.")
        if low is not None and number < low:
            raise EvaluationError(f"{self.name}(): Expected {text} to be greater or equal to {ruby_text(low)}, got {text}.")


validate_integer = _validator(
    "validate_integer",
    _Bounds("validate_integer", "an Integer", to_integer).check,
    "Raise an error for a value that is not an integer, or not within the bounds: largest, smallest.",
)
validate_numeric = _validator(
    "validate_numeric",
    _Bounds("validate_numeric", "a Numeric", to_float).check,
    "Raise an error for a value that is not a number, or not within the bounds: largest, smallest.",
)


def _check_length(arguments: tuple[Value, ...]) -> None:
    if len(arguments) not in (2, 3):
        raise EvaluationError(f"validate_slength(): Wrong number of arguments ({len(arguments)}; must be 2 or 3)")
    value = arguments[0]
    high = _parse_size(arguments[1], 1, "second argument to be a positive Numeric")
    low = 0
    if len(arguments) == 3 and arguments[2] is not False:
        low = _parse_size(arguments[2], 0, "third argument to be unset or a positive Numeric")
    if high < low:
        raise EvaluationError("validate_slength(): Expected second argument to be equal to or larger than third argument")
    if not isinstance(value, str | list):
        raise EvaluationError(f"validate_slength(): Expected first argument to be a String or Array, got {ruby_class(value)}")
    for position, item in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(item, str):
            problem = f"Expected element at array position {position} to be a String, got {ruby_class(item)}"
            raise EvaluationError(f"validate_slength(): {problem}")
        if not low <= len(item) <= high:
            problem = f"Expected length of {inspect(value)} to be between {low} and {high}, was {len(value)}"
            raise EvaluationError(f"validate_slength(): {problem}")


def _parse_size(value: Value, least: int, expected: str) -> int:
    try:
        number = to_integer(value)
    except EvaluationError:
        number = -1
    if number < least:
        raise EvaluationError(f"validate_slength(): Expected {expected}, got {ruby_text(value)}:{ruby_class(value)}")
    return number


validate_slength = _validator("validate_slength", _check_length, "Raise an error for strings that are too long or too short.")


def _check_pattern(arguments: tuple[Value, ...]) -> None:
    if len(arguments) not in (2, 3):
        raise EvaluationError(f"validate_re(): wrong number of arguments ({len(arguments)}; must be 2 or 3)")
    text, patterns = arguments[:2]
    if not isinstance(text, str):
        raise EvaluationError(f"validate_re(): input needs to be a String, not a {ruby_class(text)}")
    for pattern in flatten_arrays([patterns]):
        if not isinstance(pattern, str | Regexp):
            raise EvaluationError(f"no implicit conversion of {ruby_class(pattern)} into String")
        if (pattern if isinstance(pattern, Regexp) else Regexp(pattern)).search(text) is not None:
            return
    if len(arguments) > 2 and arguments[2] is not False:
        raise EvaluationError(ruby_text(arguments[2]))
    raise EvaluationError(f"validate_re(): {inspect(text)} does not match {inspect(patterns)}")


validate_re = _validator("validate_re", _check_pattern, "Raise an error for a string that matches none of the regular expressions.")
