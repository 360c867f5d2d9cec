"""Functions that read files of the environment: templates, files, and data."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from shared.errors import EvaluationError

from ..values.core import Binary, Value
from ..values.text import to_s
from .api import function
from .catalog_context import CatalogContext


def _flatten_text(values: Iterable[Value]) -> Iterator[str]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flatten_text(value)
        else:
            yield to_s(value)


@function("epp", "String path", "Hash[Pattern[/^\\w+$/], Any] parameters?", returns="Variant[String, Sensitive[String]]")
def epp(context: CatalogContext, path: str, parameters: dict[str, Value] | None = None) -> Value:
    """Return the text of an EPP template, `module/file.epp`; it sees top scope and its parameters only."""
    compilation = context.compilation
    exact = path.endswith(".epp") or (path.startswith("/") and compilation.template_file(path) is not None)
    name = path if exact else f"{path}.epp"
    template = compilation.template_file(name)
    if template is None:
        raise EvaluationError(
            f"Could not find template '{name}'", hint="Templates are named module/path, below the module's templates folder."
        )
    return context.render_epp("epp", *template, parameters, outside=context.global_scope())


@function("inline_epp", "String template", "Hash[Pattern[/^\\w+$/], Any] parameters?", returns="Variant[String, Sensitive[String]]")
def inline_epp(context: CatalogContext, template: str, parameters: dict[str, Value] | None = None) -> Value:
    """Return the text of an EPP template given as text; it sees the caller's variables."""
    return context.render_epp("inline_epp", template, "inlined-epp-text", parameters, outside=context)


def _without_mark(content: bytes) -> str:
    """Return the text of a file, without the byte order mark that some editors put in front."""
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


@function("template", "Any files+")
def template(context: CatalogContext, *files: Value) -> str:
    """Return the text of ERB templates, one after the other. They are Ruby code: those that cannot be translated need Ruby."""
    texts: list[str] = []
    for name in _flatten_text(files):
        template = context.compilation.template_file(name)
        if template is None:
            raise EvaluationError(f"Could not find template '{name}'")
        text, file = template
        texts.append(context.render_erb(text.removeprefix("\ufeff"), name, file))  # the byte order mark
    return "".join(texts)


@function("inline_template", "Any templates+")
def inline_template(context: CatalogContext, *templates: Value) -> str:
    """Return the text of ERB templates that are given as text."""
    return "".join([context.render_erb(text) for text in _flatten_text(templates)])


@function("generate", "Any command+")
def generate(context: CatalogContext, *command: Value) -> str:
    """Return the output of a program on the compiling host, given by its absolute path."""
    program, *arguments = _flatten_text(command)
    if not program.startswith("/"):
        raise EvaluationError("Generators must be fully qualified")
    if re.fullmatch(r"[-/\w.+]+", program, re.ASCII) is None:
        raise EvaluationError("Generators can only contain alphanumerics, file separators, and dashes")
    if "/.." in program:
        raise EvaluationError("Can not use generators with '..' in them.")
    host = context.compilation.host
    output = host.execute([program, *arguments])
    if not host.is_executed_again([program, *arguments], output if context.compilation.uses_output else None):
        context.mark_uncacheable("generate() is called")
    return output


@function("file", "Any paths+")
def file(context: CatalogContext, *paths: Value) -> str:
    """Return the content of the first of these files that exists: `module/file` below `files/`, or an absolute path."""
    host = context.compilation.host
    names = list(_flatten_text(paths))
    for name in names:
        found_path = host.find_file(name, "files")
        if found_path is not None:
            return _without_mark(host.read_file(found_path))
    raise EvaluationError(f"Could not find any files from {', '.join(names)}")


@function("binary_file", "String path")
def binary_file(context: CatalogContext, path: str) -> Binary:
    """Return the content of a file as Binary."""
    host = context.compilation.host
    found_path = host.find_file(path, "files")
    if found_path is None:
        raise EvaluationError(f"binary_file(): The given file '{path}' does not exist")
    return Binary(host.read_file(found_path))


@function("module_directory", "Variant[String, Array[String]] names*")
def module_directory(context: CatalogContext, *names: Value) -> str | None:
    """Return the folder of the first of these modules that exists, or undef."""
    host = context.compilation.host
    return next((folder for name in _flatten_text(names) if (folder := host.module_root(name)) is not None), None)


@function("find_file", "Variant[String, Array[String]] paths*")
def find_file(context: CatalogContext, *paths: Value) -> str | None:
    """Return the path of the first of these files that exists, or undef."""
    host = context.compilation.host
    return next((path for name in _flatten_text(paths) if (path := host.find_file(name, "files")) is not None), None)


@function("find_template", "Variant[String, Array[String]] paths*")
def find_template(context: CatalogContext, *paths: Value) -> str | None:
    """Return the path of the first of these templates that exists, or undef."""
    host = context.compilation.host
    return next((path for name in _flatten_text(paths) if (path := host.find_file(name, "templates")) is not None), None)
