"""Functions that do something else in older releases of stdlib, for sites whose own stdlib is one of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.errors import EvaluationError

from ...types.descriptions.describe import describe_mismatch
from ...types.inference.infer import infer_set
from ...types.notation.parse import parse_type
from ...values.core import PuppetType, Value
from ..api import Closure, Context, Function
from ..catalog_context import CatalogContext
from .deprecations import deprecate
from .resources import declare_missing

Version = tuple[int, int]


def _ensure_packages(word: str) -> Function:
    """Return the function that declares all packages with one word for `present` and `installed`, whatever was declared before."""

    def ensure_packages(context: CatalogContext, packages: Value, attributes: dict[Value, Value] | None = None) -> None:
        for package in packages if isinstance(packages, list | dict) else [packages]:
            own = packages[package] if isinstance(packages, dict) else None
            values = {"ensure": word, **(attributes or {}), **(own if isinstance(own, dict) else {})}
            if values["ensure"] in ("present", "installed"):
                values["ensure"] = word
            declare_missing(context, "package", package, values)

    older = Function("ensure_packages", ())
    older.also("Any packages", "Hash attributes?")(ensure_packages)
    return older


def _validate_legacy(bundled: Mapping[str, Function]) -> Function:
    """Return the function that also accepts, with a warning, what the old validator accepts and the type does not."""

    def is_valid(context: Context, name: str, args: tuple[Value, ...]) -> bool:
        try:
            if name in bundled:  # without the warning of the function's own
                bundled[name].call(context, args)
            else:
                context.call_function(name, args)
        except EvaluationError:
            return False
        return True

    def validate_legacy(context: Context, type_: PuppetType | str, name: str, value: Value, *args: Value) -> None:
        target_type = parse_type(type_, context.types) if isinstance(type_, str) else type_
        fits, was_valid = target_type.instance(value), is_valid(context, name, (value, *args))
        if fits and not was_valid:
            context.log("notice", f"Accepting previously invalid value for target type '{target_type}'")
        if not fits:
            message = describe_mismatch(f"validate_legacy({name})", target_type, infer_set(value))
            if not was_valid:
                raise EvaluationError(message)
            deprecate(context, "validate_legacy", message)

    older = Function("validate_legacy", ())
    older.also("Variant[Type, String] type", "String function_name", "Any value", "Any args*")(validate_legacy)
    return older


def with_older(functions: Mapping[str, Function], bundled: Mapping[str, Function], version: Callable[[], Version]) -> dict[str, Function]:
    """
    Return the functions that are called in place of those of today's stdlib, which they call from some version on.

    Args:
        functions: What today's stdlib has.
        bundled: The same without warnings.
        version: Returns the version of the site's stdlib.
    """
    older = {
        "ensure_packages": (((8, 0), _ensure_packages("present")), ((8, 6), _ensure_packages("installed"))),
        "validate_legacy": (((9, 0), _validate_legacy(bundled)),),
    }
    return {name: _by_version(functions[name], releases, version) for name, releases in older.items()}


def _by_version(function: Function, older: tuple[tuple[Version, Function], ...], version: Callable[[], Version]) -> Function:
    def call(context: Context, *args: Value, block: Closure | None = None) -> Value:
        chosen = next((older_function for until, older_function in older if version() < until), function)
        return chosen.call(context, args, block)

    by_version = Function(function.name, (), function.doc)
    by_version.also("Any args*", "Callable &block?")(call)
    return by_version
