"""Functions that read files of the environment: templates, files, and data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from shared.errors import EvaluationError, Unsupported

from ..locations import FINAL
from ..templates import render_epp
from ..text import program as quoted
from ..text import to_s
from ..types.base import Type
from ..types.describe import describe_mismatch
from ..types.infer import infer
from ..values import Binary, Value
from ..world import NotFoundInData
from .api import Closure, Context, function

if TYPE_CHECKING:
    from ..scope import Scope


def _scope(context: Context) -> Scope:
    return cast("Scope", context)


def _flat(values: Iterable[Value]) -> Iterator[str]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield to_s(value)


@function("epp", "String path", "Hash[Pattern[/^\\w+$/], Any] parameters?", returns="Variant[String, Sensitive[String]]")
def epp(context: Context, path: str, parameters: dict[str, Value] | None = None) -> Value:
    """The text of an EPP template, `module/file.epp`; it sees top scope and its parameters only."""
    scope = _scope(context)
    world = scope.compiler.world
    exact = path.endswith(".epp") or (path.startswith("/") and world.find_file(path, "templates") is not None)
    shown = path if exact else f"{path}.epp"
    found = world.find_file(shown, "templates")
    if found is None:
        raise EvaluationError(
            f"Could not find template '{shown}'", hint="Templates are named module/path, below the module's templates folder."
        )
    text = world.read_file(found).decode("utf-8", "surrogateescape")
    return render_epp(scope, "epp", text, found, parameters, outside=scope.global_scope())


@function("inline_epp", "String template", "Hash[Pattern[/^\\w+$/], Any] parameters?", returns="Variant[String, Sensitive[String]]")
def inline_epp(context: Context, template: str, parameters: dict[str, Value] | None = None) -> Value:
    """The text of an EPP template given as text; it sees the variables of the place where it is called."""
    scope = _scope(context)
    return render_epp(scope, "inline_epp", template, "inlined-epp-text", parameters, outside=scope)


def _erb(scope: Scope, text: str, file: str | None, what: str) -> str:
    ruby = scope.compiler.world.ruby
    if ruby is None:
        raise Unsupported(f"{what} is an ERB template, which needs Ruby", hint="Rewrite it as EPP: epp() and inline_epp() work.")
    return ruby.erb(text, file, scope.variables())


@function("template", "Any files+")
def template(context: Context, *files: Value) -> str:
    """The text of ERB templates, one after the other. They are Ruby code: without Ruby they are named, and refused."""
    scope = _scope(context)
    texts: list[str] = []
    for name in _flat(files):
        found = scope.compiler.world.find_file(name, "templates")
        if found is None:
            raise EvaluationError(f"Could not find template '{name}'")
        content = scope.compiler.world.read_file(found).decode("utf-8", "surrogateescape")
        texts.append(_erb(scope, content, found, found))
    return "".join(texts)


@function("inline_template", "Any templates+")
def inline_template(context: Context, *templates: Value) -> str:
    """The text of ERB templates that are given as text."""
    scope = _scope(context)
    return "".join([_erb(scope, text, None, "The text given to inline_template()") for text in _flat(templates)])


@function("generate", "Any command+")
def generate(context: Context, *command: Value) -> str:
    """What a program on the compiling host prints; it has to be named by its whole path."""
    program, *arguments = _flat(command)
    if not program.startswith("/"):
        raise EvaluationError("Generators must be fully qualified")
    if re.fullmatch(r"[-/\w.+]+", program, re.ASCII) is None:
        raise EvaluationError("Generators can only contain alphanumerics, file separators, and dashes")
    if "/.." in program:
        raise EvaluationError("Can not use generators with '..' in them.")
    return _scope(context).compiler.world.execute([program, *arguments])


@function("file", "Any paths+")
def file(context: Context, *paths: Value) -> str:
    """The content of the first of these files that exists: `module/file` below `files/`, or an absolute path."""
    world = _scope(context).compiler.world
    names = list(_flat(paths))
    for name in names:
        found = world.find_file(name, "files")
        if found is not None:
            return world.read_file(found).decode("utf-8", "surrogateescape")
    raise EvaluationError(f"Could not find any files from {', '.join(names)}")


@function("binary_file", "String path")
def binary_file(context: Context, path: str) -> Binary:
    """The content of a file as Binary."""
    world = _scope(context).compiler.world
    found = world.find_file(path, "files")
    if found is None:
        raise EvaluationError(f"binary_file(): The given file '{path}' does not exist")
    return Binary(world.read_file(found))


@function("module_directory", "Variant[String, Array[String]] names*")
def module_directory(context: Context, *names: Value) -> str | None:
    """The folder of the first of these modules that exists, or undef."""
    world = _scope(context).compiler.world
    return next((found for name in _flat(names) if (found := world.module_root(name)) is not None), None)


@function("find_file", "Variant[String, Array[String]] paths*")
def find_file(context: Context, *paths: Value) -> str | None:
    """The path of the first of these files that exists, or undef."""
    world = _scope(context).compiler.world
    return next((found for name in _flat(paths) if (found := world.find_file(name, "files")) is not None), None)


@function("find_template", "Variant[String, Array[String]] paths*")
def find_template(context: Context, *paths: Value) -> str | None:
    """The path of the first of these templates that exists, or undef."""
    world = _scope(context).compiler.world
    return next((found for name in _flat(paths) if (found := world.find_file(name, "templates")) is not None), None)


# --- data ---------------------------------------------------------------------------------------------------------

_OPTIONS = frozenset(("name", "value_type", "default_value", "override", "default_values_hash", "merge"))


@function("lookup", "Variant[String, Array[String]] name", "Type value_type?", "Variant[String[1], Hash] merge?", "Callable[1,1] &block?")
def lookup(context: Context, name: Value, value_type: Type | None = None, merge: Value = None, *, block: Closure | None = None) -> Value:
    """A value of the site's data, or what the block gives."""
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge}, block)


@lookup.also(
    "Variant[String, Array[String]] name", "Optional[Type] value_type", "Optional[Variant[String[1], Hash]] merge", "Any default_value"
)
def _lookup_default(context: Context, name: Value, value_type: Type | None, merge: Value, default_value: Value) -> Value:
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge, "default_value": default_value}, None)


@lookup.also("Variant[String, Array[String]] name", "Hash options", "Callable[1,1] &block?")
def _lookup_options(context: Context, name: Value, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    return _lookup(_scope(context), name, options, block)


@lookup.also("Hash options", "Callable[1,1] &block?")
def _lookup_hash(context: Context, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    if "name" not in options:
        raise EvaluationError("lookup(): expects a value for key 'name'")
    return _lookup(_scope(context), options["name"], options, block)


def _lookup(scope: Scope, name: Value, options: dict[str, Value], block: Closure | None) -> Value:
    """Source: language reference 18.7."""
    unknown = set(options) - _OPTIONS
    if unknown:
        raise EvaluationError(f"lookup(): unrecognized key '{sorted(unknown)[0]}'")
    names = name if isinstance(name, list) else [name]
    if not all(isinstance(each, str) for each in names):
        raise EvaluationError("lookup(): expects a String or an Array of them as name", hint="A reference or a type is no key.")
    value_type = options.get("value_type")
    merge = options.get("merge")
    override = options.get("override") or {}
    for each in names:
        if each in override:
            return _checked(f"Value found for key '{each}' in override hash", override[each], value_type)
        try:
            found = scope.compiler.data_for(each, scope, merge)
        except NotFoundInData:
            continue
        return _checked("Found value", found, value_type)
    defaults = options.get("default_values_hash") or {}
    for each in names:
        if each in defaults:
            return _checked(f"Value found for key '{each}' in default values hash", defaults[each], value_type)
    if block is not None:
        return _checked("Value returned from default block", block(name), value_type)
    if "default_value" in options:
        return _checked("Default value", options["default_value"], value_type)
    if len(names) == 1:
        raise EvaluationError(f"Function lookup() did not find a value for the name '{names[0]}'", where=FINAL)
    shown = ", ".join(quoted(each) for each in names)
    raise EvaluationError(f"Function lookup() did not find a value for any of the names [{shown}]", where=FINAL)


def _checked(what: str, value: Value, wanted: Type | None) -> Value:
    if wanted is None or wanted.instance(value):
        return value
    text = describe_mismatch(what, wanted, infer(value))
    raise EvaluationError(text.replace(f"{what} expects", f"{what} has wrong type, expects", 1))
