"""A file of an environment: its definitions with their code, which runs when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from shared.errors import EvaluationError, Location
from shared.regexps import Regexp

from ..callables.signatures import Closure, Signature, WrongDefaultError
from ..catalog.definitions import Body, DefaultCode, Define, Definition, HostClass, NodeBlock, ParameterSpec, TypeCode
from ..catalog.resources import METAPARAMETERS
from ..codegen import Marks
from ..codegen.typesets import MEMBER
from ..codegen.units import Part, Unit
from ..errors.control import Returned
from ..errors.locations import FINAL, UNIT
from ..functions import Dispatch, Function
from ..functions.catalog_context import CatalogContext
from ..syntax.checker.diagnostics import Severity
from ..syntax.source import Source
from ..values.core import Value

AliasCode: TypeAlias = Callable[[CatalogContext], Value]
"""The code of a type declaration; it returns what the name stands for, as `declared_type` takes it."""


@dataclass(slots=True)
class LoadedFile:
    """A file whose code runs in this environment; found from any frame of that code by its globals."""

    source: Source
    unit: Unit
    runtime: Mapping[str, Any]
    changed: Callable[[Unit], None]
    """Called when the unit has more code than before."""
    _marks: Marks = field(default_factory=dict)
    _marked: int = 0  # parts whose marks these are

    def marks(self) -> Marks:
        """Return the data for error messages at each place in its code: label, line, column and operands; computed for the first error."""
        if self._marked != len(self.unit.parts):
            self._marks, self._marked = self.unit.marks(self.source), len(self.unit.parts)
        return self._marks

    def run(self, index: int, part: Part) -> dict[str, Any]:
        """Return the names that the code of a part sets."""
        is_written = (index, part) in self.unit.parts
        code = self.unit.code(index, part, self.source)
        if not is_written:
            self.changed(self.unit)
        names = {**self.runtime, UNIT: self, "_file": self.source.file}
        exec(code, names)  # noqa: S102 -- code that this compiler made of a manifest
        return names


@dataclass(frozen=True, slots=True)
class _FileCode:
    """The code of one definition of a file."""

    file: LoadedFile
    index: int

    def body(self) -> Body:
        body: Body = self.file.run(self.index, "body")["_body"]
        return body

    def parameters(self) -> tuple[Mapping[str, TypeCode], Mapping[str, DefaultCode]]:
        names = self.file.run(self.index, "parameters")
        return names["_types"], names["_defaults"]

    def signature(self) -> tuple[Callable[[CatalogContext], Signature], Body]:
        """Return the factory of a function's signature, and its body."""
        names = self.file.run(self.index, "body")
        return names["_own_signature"], names["_body"]


@dataclass(frozen=True, slots=True)
class Template:
    """An EPP template: its function, and its parameters; None: any may be passed."""

    parameters: tuple[ParameterSpec, ...] | None
    body: Body
    file: str | None


@dataclass
class FileDefinitions:
    """The definitions of one file; they become visible when all of them are valid."""

    module: str = ""
    classes: list[HostClass] = field(default_factory=list)
    defines: list[Define] = field(default_factory=list)
    nodes: list[NodeBlock] = field(default_factory=list)
    functions: list[_LanguageFunction] = field(default_factory=list)
    aliases: list[tuple[str, AliasCode]] = field(default_factory=list)
    members: list[tuple[str, AliasCode]] = field(default_factory=list)  # of type sets
    places: list[tuple[str, str, Location]] = field(default_factory=list)
    main: list[Body] = field(default_factory=list)
    template: Template | None = None


def definitions_of(file: LoadedFile, module: str) -> FileDefinitions:
    """Return the definitions of a file, according to its headers."""
    definitions = FileDefinitions(module)
    name = file.source.file
    for index, header in enumerate(file.unit.headers):
        code = _FileCode(file, index)
        specs = [ParameterSpec(parameter, code) for parameter in header.parameters or ()]
        place = Location(name, header.line)
        if header.kind == "class":
            definitions.classes.append(HostClass(header.name, specs, code, header.parent, place=place, module=module))
        elif header.kind == "define":
            definitions.places.append(("define", header.name, Location(name, header.line, header.column)))
            definitions.defines.append(Define(header.name, specs, code, place=place, module=module))
        elif header.kind == "node":
            for match in header.matches:
                matches = match if isinstance(match, str) else Regexp(match[0])
                definitions.nodes.append(NodeBlock([matches], code, header.parent, place=place, module=module))
        elif header.kind == "function":
            definitions.places.append(("function", header.name, Location(name, header.line, header.column)))
            definitions.functions.append(_LanguageFunction(header.name, code))
        elif header.kind == "alias":
            definitions.places.append(("type", header.name, Location(name, header.line, header.column)))
            definitions.aliases.append((header.name, partial(_alias_value, code)))
        elif header.kind == MEMBER:
            definitions.members.append((header.name, partial(_alias_value, code)))
        elif header.kind == "epp":
            definitions.template = Template(None if header.parameters is None else tuple(specs), code.body(), name)
        else:
            definitions.main.append(code.body())
    return definitions


def check_metaparameters(definition: Definition, warn: Callable[[str], None]) -> None:
    """
    Warn of each parameter that has the name of a metaparameter.

    Raises:
        EvaluationError: such a parameter has no default.
    """
    for parameter in definition.parameters:
        severity, message = judge_metaparameter(definition.name, parameter.name, parameter.has_default)
        if severity == "error":
            raise EvaluationError(message, where=FINAL)
        if message:
            warn(message)


def judge_metaparameter(definition: str, name: str, has_default: bool) -> tuple[Severity, str]:
    """Return the error if a parameter has the name of a metaparameter; its message is '' if the parameter does not."""
    if name not in METAPARAMETERS:
        return "warning", ""
    if not has_default:
        return "error", f"{name} is a metaparameter; please choose another parameter name in the {definition} definition"
    return "warning", f"{name} is a metaparam; this value will inherit to all contained resources in the {definition} definition"


def _alias_value(code: _FileCode, scope: CatalogContext) -> Value:
    """Return the type that a declaration gives its name, in the form that `declared_type` takes."""
    return code.body()(scope)


class _LanguageFunction(Function):
    """A function written in the language: its code and signature are made when it is first called, for they may name types."""

    __slots__ = ("body", "code", "signature")

    def __init__(self, name: str, code: _FileCode) -> None:
        super().__init__(name)
        self.code = code
        self.body: Body | None = None
        self.signature: Signature | None = None

    def signatures(self, types: Any = None) -> list[Signature]:
        return [self._signature_and_body(types.top)[0]]

    def _signature_and_body(self, scope: CatalogContext) -> tuple[Signature, Body]:
        if self.signature is None or self.body is None:
            make_signature, body = self.code.signature()
            self.signature, self.body = make_signature(scope), body
            self.dispatches.append(Dispatch(self.signature, self.body))
        return self.signature, self.body

    def call(self, context: Any, args: Sequence[Value], block: Closure | None = None) -> Value:
        signature, body = self._signature_and_body(context.global_scope())
        if block is not None or not signature.accepts(args):
            raise signature.mismatch_error(self.name, args, block)
        if signature.reserved is not None:
            raise signature.reserved_name_error()
        try:
            value: Any = body(context, *args)
        except WrongDefaultError as error:
            raise EvaluationError(error.message) from None
        result: Value = value
        if value.__class__ is Returned:
            result = value.value
        elif signature.returns is not None:
            result = signature.check_return(self.name, value)
        return result
