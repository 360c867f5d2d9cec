"""deprecation(), and the old names of functions that stdlib 9 moved below `stdlib::`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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

DEPRECATED = {
    "parsepson": "This method is deprecated. From Puppet 8, PSON is no longer natively supported. Please use JSON.parse().",
    "validate_legacy": "This method is deprecated, please use Puppet data types to validate parameters",
}
"""Functions without a successor, which the setting `strict` forbids with stdlib 9; the default of `parsepson` is given instead."""


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


def _moved(name: str, bundled: Mapping[str, Function], has_namespaced_functions: Callable[[], bool]) -> Function:
    new_name = f"stdlib::{name}"

    def forward(context: Context, *args: Value, block: Closure | None = None) -> Value:
        if not has_namespaced_functions():
            # A site whose stdlib is older than 9 does not have the function of the new name.
            if name in OF_THE_OLD_API:
                args = tuple("" if arg is None else as_legacy_argument(arg) for arg in args)
            return Function(name, bundled[new_name].dispatches).call(context, args, block)
        deprecate(context, name, f"This function is deprecated, please use {new_name} instead.", use_strict=False)
        return context.call_function(new_name, args, block)

    moved = Function(name, (), f"Do what {new_name} does, the name since stdlib 9.")
    moved.also("Any args*", "Callable &block?")(forward)
    return moved


def _deprecated(function: Function, has_namespaced_functions: Callable[[], bool]) -> Function:
    def with_deprecation(code: Callable[..., Value]) -> Callable[..., Value]:
        def forward(context: Context, *args: Value) -> Value:
            if has_namespaced_functions():
                try:
                    deprecate(context, function.name, DEPRECATED[function.name])
                except EvaluationError:
                    if function.name == "parsepson" and len(args) > 1:
                        return args[1]
                    raise
            return code(context, *args)

        return forward

    dispatches = [Dispatch(dispatch.declared, with_deprecation(dispatch.code)) for dispatch in function.dispatches]
    return Function(function.name, dispatches, function.doc)


def deprecated_functions(bundled: Mapping[str, Function], has_namespaced_functions: Callable[[], bool]) -> dict[str, Function]:
    """
    Return the functions that stdlib 9 deprecates: those of the old names, each of which calls that of the new name, and DEPRECATED.

    Args:
        bundled: the functions of stdlib 9, by name.
        has_namespaced_functions: whether the site's stdlib, if it has one, knows the new names.
    """
    moved = {name: _moved(name, bundled, has_namespaced_functions) for name in MOVED}
    return moved | {name: _deprecated(bundled[name], has_namespaced_functions) for name in DEPRECATED}
