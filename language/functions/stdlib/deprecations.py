"""deprecation(), and the old names of functions that stdlib 9 moved below `stdlib::`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from shared.errors import EvaluationError

from ...errors.locations import current_place
from ...types.attribute_references import as_legacy_argument
from ...values.core import Strictness, Value
from ..api import Closure, Context, Dispatch, Function, function

MOVED = (
    "batch_escape",
    "ensure_packages",
    "fqdn_rand_string",
    "fqdn_rotate",
    "has_interface_with",
    "has_ip_address",
    "has_ip_network",
    "merge",
    "os_version_gte",
    "parsehocon",
    "powershell_escape",
    "seeded_rand",
    "seeded_rand_string",
    "shell_escape",
    "time",
    "to_json",
    "to_json_pretty",
    "to_python",
    "to_ruby",
    "to_toml",
    "to_yaml",
    "type_of",
    "validate_domain_name",
    "validate_email_address",
)
"""Functions that are called `stdlib::<name>` since stdlib 9. Those of stdlib before 9 were never deprecated under the old name."""

OF_THE_OLD_API = frozenset(
    {
        *("fqdn_rand_string", "fqdn_rotate", "has_interface_with", "has_ip_address", "has_ip_network", "seeded_rand", "time"),
        *("validate_domain_name", "validate_email_address"),
    }
)
"""Those of them that were functions of the 3.x API before stdlib 9, which gives them resources and other values of types as texts."""

_MATCH: Final = (
    "This method is deprecated, please use match expressions with Stdlib::Compat::{} instead. They are described at "
    "https://docs.puppet.com/puppet/latest/reference/lang_data_type.html#match-expressions."
)
_VALIDATE: Final = (
    "This method is deprecated, please use the stdlib validate_legacy function, with {}. "
    "There is further documentation for validate_legacy function in the README."
)
_IS: Final = {
    "absolute_path": "Absolute_Path", "array": "Array", "bool": "Bool", "float": "Float", "ip_address": "Ip_address",
    "ipv4_address": "Ipv4", "ipv6_address": "Ipv6", "numeric": "Numeric", "string": "String",
}  # fmt: skip
_VALIDATED: Final = {
    "absolute_path": "Absolute_Path", "array": "Array", "bool": "Bool", "hash": "Hash", "integer": "Integer", "ip_address": "Ip_Address",
    "ipv4_address": "Ipv4_Address", "ipv6_address": "Ipv6_address", "numeric": "Numeric", "string": "String",
}  # fmt: skip
DEPRECATED: Final = {
    "parsepson": (
        (9, 0),
        "This method is deprecated. From Puppet 8, PSON is no longer natively supported. Please use JSON.parse().",
    ),
    "validate_legacy": ((9, 0), "This method is deprecated, please use Puppet data types to validate parameters"),
    **{f"is_{kind}": ((4, 13), _MATCH.format(type_)) for kind, type_ in _IS.items()},
    **{f"validate_{kind}": ((4, 13), _VALIDATE.format(f"Stdlib::Compat::{type_}")) for kind, type_ in _VALIDATED.items()},
    "validate_re": ((4, 13), _VALIDATE.format("Pattern[]")),
    "validate_slength": ((4, 13), _VALIDATE.format("String[]")),
}
"""
Functions without a successor: the version of stdlib since which they warn, and the warning; the setting `strict` can make it an error.
The default of `parsepson` is given instead of it.
"""


def deprecate(context: Context, key: str, message: str, *, use_strict: bool = True) -> None:
    """Warn once for a key; with `use_strict`, the setting `strict` can make it an error, or suppress it."""
    strict = context.reporter.strict
    if use_strict and strict is Strictness.OFF:
        return
    if use_strict and strict is Strictness.ERROR:
        location = current_place()
        suffix = f" at {location.file}:{location.line}" if location is not None else ""
        raise EvaluationError(f"deprecation. {key}. {message}{suffix}")
    context.warn_once("deprecations", key, message, place=True)


@function("deprecation", "String key", "String message", "Boolean use_strict_setting?")
def deprecation(context: Context, key: str, message: str, use_strict_setting: bool = True) -> None:
    """Warn, once for a key, that something should no longer be used."""
    deprecate(context, key, message, use_strict=use_strict_setting)


def _moved(name: str, bundled: Mapping[str, Function], version: Callable[[], tuple[int, int]]) -> Function:
    new_name = f"stdlib::{name}"

    def forward(context: Context, *args: Value, block: Closure | None = None) -> Value:
        if version() < (9, 0):
            # A site whose stdlib is older than 9 does not have the function of the new name.
            if name in OF_THE_OLD_API:
                args = tuple("" if arg is None else as_legacy_argument(arg) for arg in args)
            return Function(name, bundled[new_name].dispatches).call(context, args, block)
        deprecate(context, name, f"This function is deprecated, please use {new_name} instead.", use_strict=False)
        return context.call_function(new_name, args, block)

    moved = Function(name, (), f"Do what {new_name} does, the name since stdlib 9.")
    moved.also("Any args*", "Callable &block?")(forward)
    return moved


def _deprecated(function: Function, version: Callable[[], tuple[int, int]]) -> Function:
    since, message = DEPRECATED[function.name]

    def with_deprecation(code: Callable[..., Value]) -> Callable[..., Value]:
        def forward(context: Context, *args: Value) -> Value:
            if version() >= since:
                try:
                    deprecate(context, function.name, message)
                except EvaluationError:
                    if function.name == "parsepson" and len(args) > 1:
                        return args[1]
                    raise
            return code(context, *args)

        return forward

    dispatches = [Dispatch(dispatch.declared, with_deprecation(dispatch.code)) for dispatch in function.dispatches]
    return Function(function.name, dispatches, function.doc)


def deprecated_functions(bundled: Mapping[str, Function], version: Callable[[], tuple[int, int]]) -> dict[str, Function]:
    """
    Return the functions that stdlib deprecates: those of the old names, each of which calls that of the new name, and DEPRECATED.

    Args:
        bundled: the functions of stdlib 9, by name.
        version: returns the version of the site's stdlib.
    """
    moved = {name: _moved(name, bundled, version) for name in MOVED}
    return moved | {name: _deprecated(bundled[name], version) for name in DEPRECATED}
