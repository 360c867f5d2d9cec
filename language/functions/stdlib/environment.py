"""The surroundings of the compilation: modules, functions, files, the time; and functions that are refused here."""

from __future__ import annotations

from shared.errors import EvaluationError, Unsupported

from ...values.core import Deferred, Value
from ...values.labels import ruby_class
from ...values.text import inspect
from ..api import Context, function, legacy_function, require_count
from ..catalog_context import CatalogContext
from ..strings import ruby_text


def module_path(context: CatalogContext, module: Value) -> str:
    """Return the folder of a module; raise EvaluationError when there is none."""
    compilation = context.compilation
    folder = compilation.host.module_root(module) if isinstance(module, str) and module else None
    if folder is None:
        bundled = "The functions and types of stdlib are bundled: it has no folder unless the site installs the module."
        message = f"Could not find module {ruby_text(module)} in environment {compilation.host.environment}"
        raise EvaluationError(message, hint=bundled if module == "stdlib" else "")
    return folder


@legacy_function("get_module_path", -1)
def get_module_path(context: CatalogContext, *arguments: Value) -> str:
    """Return the folder of a module."""
    if len(arguments) != 1:
        raise EvaluationError("get_module_path(): Wrong number of arguments, expects one")
    return module_path(context, arguments[0])


@function("stdlib::has_function", "String[1] function_name", returns="Boolean")
def has_function(context: Context, function_name: str) -> bool:
    """Return whether there is a function of that name that can be called."""
    return _is_callable(context, function_name)


@legacy_function("is_function_available", -1)
def is_function_available(context: Context, *arguments: Value) -> bool:
    """Return whether there is a function of that name."""
    if len(arguments) != 1:
        raise EvaluationError(f"is_function_available?(): Wrong number of arguments given {len(arguments)} for 1")
    return isinstance(arguments[0], str) and _is_callable(context, arguments[0])


def _is_callable(context: Context, name: str) -> bool:
    try:
        return context.has_function(name)
    except Unsupported:
        return False  # a module has it in Ruby only


@function("stdlib::time", "String timezone?", returns="Integer")
def time(context: Context, timezone: str = "") -> int:
    """Return the seconds since 1970, which do not depend on the time zone."""
    return context.now() // 1_000_000_000


@legacy_function("glob", -1)
def glob(context: CatalogContext, *arguments: Value) -> list[str]:
    """Return the files and folders of the compiling host that a pattern, or any of several, matches."""
    require_count("glob", arguments, 1, 1)
    paths: list[str] = []
    for pattern in arguments[0] if isinstance(arguments[0], list) else arguments:
        if not isinstance(pattern, str):
            raise EvaluationError("glob(): Requires either array or string to work")
        if not pattern.startswith("/"):
            raise EvaluationError(f"glob(): The pattern {inspect(pattern)} is not absolute")
        paths += context.compilation.host.matching_paths(pattern)
    return paths


@legacy_function("pry", -1, statement=True)
def pry(context: Context, *arguments: Value) -> None:
    """Raise an error: it would start a debugger of Ruby."""
    raise Unsupported(
        "The function 'pry' starts a debugger of Ruby",
        hint="Python's pdb stops at lines of manifests: pdb.Pdb().set_break(FILE, LINE).",
    )


@legacy_function("validate_augeas", -1, statement=True)
def validate_augeas(context: Context, *arguments: Value) -> None:
    """Raise an error: it would run a lens of Augeas on a file with the content."""
    if not 2 <= len(arguments) <= 4:
        raise EvaluationError(f"validate_augeas(): wrong number of arguments ({len(arguments)}; must be 2, 3, or 4)")
    raise Unsupported(
        "The function 'validate_augeas' needs the Ruby library of Augeas",
        hint="Validate on the agent: the validate_cmd attribute of the file resource.",
    )


@legacy_function("validate_cmd", -1, statement=True)
def validate_cmd(context: Context, *arguments: Value) -> None:
    """Raise an error: it would run a program on the compiling host on a file with the content."""
    if len(arguments) not in (2, 3):
        raise EvaluationError(f"validate_cmd(): wrong number of arguments ({len(arguments)}; must be 2 or 3)")
    raise Unsupported(
        f"The function 'validate_cmd' would run {inspect(arguments[1])} on the compiling host with a temporary file",
        hint="Validate on the agent: the validate_cmd attribute of the file resource.",
    )


@function("stdlib::deferrable_epp", "String template", "Hash variables", returns="Variant[String, Sensitive[String], Deferred]")
def deferrable_epp(context: Context, template: str, variables: dict[str, Value]) -> Value:
    """Return the text of an EPP template; when a variable contains a Deferred, return a Deferred that the agent renders."""
    if not _has_deferred(variables):
        return context.call_function("epp", [template, variables])
    path = context.call_function("find_template", [template])
    if path is None:
        raise EvaluationError(f"Could not find template '{template}'")
    return Deferred("inline_epp", [context.call_function("file", [path]), variables])


def _has_deferred(value: Value) -> bool:
    if isinstance(value, dict):
        return any(_has_deferred(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_deferred(item) for item in value)
    return isinstance(value, Deferred)


@legacy_function("validate_x509_rsa_key_pair", -1, statement=True)
def validate_x509_rsa_key_pair(context: Context, *arguments: Value) -> None:
    """Raise an error when a certificate was not signed by a private key; both are PEM text."""
    from .keypairs import check_key_pair

    if len(arguments) != 2:
        raise EvaluationError(f"validate_x509_rsa_key_pair(): wrong number of arguments ({len(arguments)}; must be 2)")
    texts: list[str] = []
    for argument in arguments:
        if not isinstance(argument, str):
            subject = f"a value of type {ruby_class(argument)}" if isinstance(argument, list | dict) else inspect(argument)
            raise EvaluationError(f"{subject} is not a string.")
        texts.append(argument)
    check_key_pair(*texts)
