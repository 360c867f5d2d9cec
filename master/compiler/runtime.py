"""What generated code calls. The names with an underscore in `NAMES` are the only words it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from shared.errors import EvaluationError, Location

from . import operators
from .collectors import Collector, Override, Test, test_all, test_any, test_is
from .control import Break, Next, Return
from .definitions import ParameterSpec, capital
from .issues import Issue, Refused
from .labels import label
from .locations import UNIT
from .members import WITH_MEMBERS, member
from .regexps import Regexp
from .relationships import relate
from .resources import Attribute, Resource, capitalized_type, flat_tags
from .scope import MISSING, Matches, Scope
from .signatures import Closure, Parameter, Signature
from .text import inspect, to_s
from .types.base import Type
from .types.infer import infer
from .types.references import ClassType, ResourceType
from .values import DEFAULT, Iterator, Sensitive, Value, entries, key_of

__all__ = ["NAMES", "Output", "create_resources", "declare_error"]


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


class Kept:
    """A value that is made when it is first needed and is then the same for the environment: a type, a signature."""

    __slots__ = ("made", "value")

    def __init__(self, made: Callable[[Scope], Value]) -> None:
        self.made: Callable[[Scope], Value] | None = made
        self.value: Value = None

    def __call__(self, scope: Scope) -> Value:
        made = self.made
        if made is not None:
            self.value = made(scope)
            self.made = None
        return self.value


class Output:
    """The text of a template so far; one Sensitive in it makes all of it Sensitive."""

    __slots__ = ("append", "parts", "sensitive")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.append = self.parts.append
        self.sensitive = False

    def add(self, value: Value) -> None:
        if isinstance(value, Sensitive):
            self.sensitive = True
            value = value.unwrap()
        self.append(value if value.__class__ is str else to_s(value))

    def result(self) -> Value:
        text = "".join(self.parts)
        return Sensitive(text) if self.sensitive else text


# --- values -------------------------------------------------------------------------------------------------------


def text(value: Value) -> str:
    """As in an interpolated string."""
    return value if value.__class__ is str else to_s(value)


def inspect_bare(value: Value) -> str:
    """As some messages of the reference show values: collections in Ruby's notation, undef as nothing."""
    return inspect(value) if isinstance(value, list | dict) else to_s(value)


# --- operators ----------------------------------------------------------------------------------------------------


def plus(scope: Scope, left: Value, right: Value) -> Value:
    return operators.plus(left, right, scope.compiler.reporter)


def minus(scope: Scope, left: Value, right: Value) -> Value:
    return operators.minus(left, right, scope.compiler.reporter)


def times(scope: Scope, left: Value, right: Value) -> Value:
    return operators.times(left, right, scope.compiler.reporter)


def divide(scope: Scope, left: Value, right: Value) -> Value:
    return operators.divide(left, right, scope.compiler.reporter)


def modulo(scope: Scope, left: Value, right: Value) -> Value:
    return operators.modulo(left, right, scope.compiler.reporter)


def shift_left(scope: Scope, left: Value, right: Value) -> Value:
    return operators.shift_left(left, right, scope.compiler.reporter)


def shift_right(scope: Scope, left: Value, right: Value) -> Value:
    return operators.shift_right(left, right, scope.compiler.reporter)


def negative(scope: Scope, value: Value) -> Value:
    return operators.negate(value, scope.compiler.reporter)


def _kept_match(found: Any, holder: Matches | None) -> bool:
    if found is True or found is False:
        return bool(found)
    if holder is not None and found is not None:
        holder.last = found
    return found is not None


def matches(left: Value, right: Value, holder: Matches | None) -> bool:
    """`=~`"""
    return _kept_match(operators.match(left, right), holder)


def within(left: Value, right: Value, holder: Matches | None) -> bool:
    """`in`"""
    return _kept_match(operators.contains(left, right), holder)


def case(option: Value, value: Value, holder: Matches | None) -> bool:
    """Whether an option of a `case` or selector takes the value."""
    if option.__class__ is list and holder is not None and value.__class__ is list and len(value) == len(option):
        # Regular expressions inside set the match variables too.
        return all(case(part, item, holder) for part, item in zip(option, value, strict=True))
    if option.__class__ is dict and holder is not None and value.__class__ is dict:
        return all(key in value and case(part, value[key], holder) for key, part in option.items())
    return _kept_match(operators.matches(value, option), holder)


def any_case(options: list[Value], value: Value, holder: Matches | None) -> bool:
    """The same for `*options`."""
    return any(case(option, value, holder) for option in options)


def access(scope: Scope, left: Value, *keys: Value) -> Value:
    """`left[keys]`; of a resource reference, its attributes."""
    if isinstance(left, ResourceType) and left.type_name is not None and left.title is not None:
        return _attribute_access(scope, left, left.type_name, left.title, keys)
    if isinstance(left, ClassType) and left.class_name is not None:
        return _attribute_access(scope, left, "class", capital(left.class_name), keys)
    found = operators.access(left, keys, scope.compiler.reporter)
    if left.__class__ is ResourceType and left.type_name is None and isinstance(found, ResourceType) and found.type_name is not None:
        return found
    return found


def entry(scope: Scope, left: Value, key: str) -> Value:
    """`left['key']`, mostly of a Hash."""
    if left.__class__ is dict:
        return left.get(key)
    return access(scope, left, key)


def _attribute_access(scope: Scope, reference: Type, type_name: str, title: str, keys: Sequence[Value]) -> Value:
    resource = scope.compiler.catalog.find(capitalized_type(type_name), title)
    if resource is None:
        raise Issue(f"Resource not found: {reference}")
    found: list[Value] = []
    for key in _flat(list(keys)):
        if not isinstance(key, str) or not resource.has_parameter(key):
            raise Issue(f"The resource {reference} does not have a parameter called '{inspect_bare(key)}'")
        value = resource.values.get(key)
        if value is None and resource.scope is not None:
            defaults = resource.scope.default_attributes(resource.type)
            if defaults and key in defaults:
                value = defaults[key].value
        found.append(value)
    return found[0] if len(found) == 1 else found


# --- names --------------------------------------------------------------------------------------------------------


def type_named(scope: Scope, name: str) -> Type:
    found = scope.compiler.find_type(name)
    if found is None:
        raise Issue(f"Resource type not found: {capitalized_type(name.removeprefix('::'))}")
    return found


def checked_syntax(scope: Scope, syntax: str, value: Value) -> Value:
    """The text of a heredoc with a syntax, checked now that it is known."""
    from .checker import problem

    found = problem(syntax, value)
    if found is not None:
        raise Issue(str(found))
    return value


def reassigned(name: str, value: Value) -> Value:
    raise Issue(f"Cannot reassign variable '${name}'")


def once(current: Value, name: str, value: Value) -> Value:
    if current is not UNSET:
        raise Issue(f"Cannot reassign variable '${name}'")
    return value


def rest(given: tuple[Value, ...], default: Callable[[], Value]) -> list[Value]:
    """A captures-rest parameter with a default, which a single undef stands for as well."""
    if not given or (len(given) == 1 and given[0] is None):
        value = default()
        return value if isinstance(value, list) else [value]
    return list(given)


def split(scope: Scope, shape: tuple[Any, ...], value: Value) -> list[Value]:
    """The values for the names of a destructuring assignment, in order."""
    found: list[Value] = []
    _split(scope, shape, value, found)
    return found


def _split(scope: Scope, shape: tuple[Any, ...], value: Value, into: list[Value]) -> None:
    if isinstance(value, dict):
        for name in _names(shape):
            if name not in value:
                raise Issue(f"No value for required key '{name}' in assignment to variables from hash")
            into.append(value[name])
        return
    if isinstance(value, ClassType) and value.class_name is not None:
        for name in _names(shape):
            found = scope.compiler.qualified(value.class_name, name)
            if found is MISSING:
                message = f"No value for required variable '${value.class_name}::{name}' in assignment to variables from class reference"
                raise Issue(message, operand=f"${name}")
            into.append(found)
        return
    values = value if isinstance(value, list) else [value]
    if len(values) != len(shape):
        raise Issue(f"Mismatched number of assignable entries and values, expected {len(shape)}, got {len(values)}")
    for part, item in zip(shape, values, strict=True):
        if isinstance(part, tuple):
            _split(scope, part, item, into)
        else:
            into.append(item)


def _names(shape: tuple[Any, ...]) -> Iterable[str]:
    for part in shape:
        if isinstance(part, tuple):
            yield from _names(part)
        else:
            yield part


# --- calls --------------------------------------------------------------------------------------------------------


def call(scope: Scope, name: str, block: Closure | None, *args: Value) -> Value:
    """A function by its name."""
    compiler = scope.compiler
    function = compiler.loader.functions.get(name)
    if function is None:
        function = compiler.function(name)
    return function.call(scope, args, block)


def call_method(scope: Scope, name: str, block: Closure | None, receiver: Value, *args: Value) -> Value:
    """`receiver.name(args)`: an attribute of an object, else the function."""
    if receiver.__class__ in WITH_MEMBERS and not args:
        try:
            return member(receiver, name)
        except KeyError:
            pass
    return call(scope, name, block, receiver, *args)


def signature(parameters: Sequence[tuple[str, Type | None, bool, bool]], returns: Type | None) -> Signature:
    made = [Parameter.declared(name, type_, default=default, splat=splat) for name, type_, default, splat in parameters]
    return Signature(made, returns=returns)


def required_after_optional(name: str) -> None:
    raise Issue(f"Parameter ${name} is required but appears after optional parameters")


def stray(jump: Any, line: int) -> EvaluationError:
    """A jump at top scope, where it leads nowhere."""
    from .locations import current

    here = current()
    error: EvaluationError = jump.stray()
    error.where = Location(here.file if here else None, line)
    return error


def no_selector_entry(value: Value) -> None:
    raise Issue(f"No matching entry for selector parameter with value '{inspect_bare(value)}'")


# --- resources ----------------------------------------------------------------------------------------------------


def splat(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise Issue(f"Expected value of type Hash, got {infer(value).generalized()}", operand="value")
    for key, _ in entries(value):
        if not isinstance(key, str):
            raise EvaluationError(f"The attribute name {inspect_bare(key)} is not a String")
    return value


def attributes(*pairs: tuple[str | None, Value]) -> dict[str, Value]:
    """The attributes of one body; a pair without a name is a splat."""
    found: dict[str, Value] = {}
    for name, value in pairs:
        given = value.items() if name is None else ((name, value),)
        for each, item in given:
            if each in found:
                raise Issue(f"The attribute '{each}' has already been set")
            found[each] = item
    return found


def declarable(value: Value, acceptable: bool) -> str:
    """The name of the type to declare, of the value of the expression that says it."""
    if acceptable:
        if isinstance(value, ClassType) and value.class_name is None:
            return "class"
        if isinstance(value, ResourceType) and value.type_name is not None and value.title is None:
            return value.type_name
    titled = acceptable and isinstance(value, ClassType | ResourceType)
    actual = str(value) if titled else str(infer(value).generalized())
    raise Issue(f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}")


def _titles(value: Value, index: int, seen: set[str]) -> list[str]:
    operand = f"title {index}"
    if value is None:
        raise Issue("Missing title. The title expression resulted in undef", operand=operand)
    found: list[str] = []
    for position, title in enumerate(_flat(value)):
        if title is None:
            raise Issue(f"Missing title at index {position}. The title expression resulted in an undef title", operand=operand)
        if title is DEFAULT:
            name = "default"
            if name in seen:
                raise Issue(f"The title '{name}' has already been used in this resource expression")
            seen.add(name)
            found.append("")
            continue
        if not isinstance(title, str):
            actual = infer(title).generalized()
            raise Issue(f"Illegal title type at index {position}. Expected String, got {actual}", operand=operand)
        if not title:
            raise Issue(f"Empty string title at {position}. Title strings must have a length greater than zero.", operand=operand)
        if title in seen:
            raise Issue(f"The title '{title}' has already been used in this resource expression")
        seen.add(title)
        found.append(title)
    return found


def _flat(value: Value) -> Iterable[Value]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


Lines = tuple[tuple[str, int], ...]


def declare(scope: Scope, type_name: str, form: int, line: int, *bodies: tuple[Value, dict[str, Value], Lines]) -> list[Value]:
    """
    A resource expression: every body's resources, in order; gives references to them.

    `form` is 0, 1 (virtual) or 2 (exported). Source: language reference 4.1 to 4.4.
    """
    compiler = scope.compiler
    if form == 2 and not compiler.storeconfigs:
        compiler.warn_here("You cannot collect exported resources without storeconfigs being set; the export is ignored")
    seen: set[str] = set()
    titles = [_titles(title, index, seen) for index, (title, _, _) in enumerate(bodies)]
    defaults: dict[str, Value] = {}
    default_lines: Lines = ()
    for body_titles, (_, values, lines) in zip(titles, bodies, strict=True):
        for value_name, value in values.items():
            if isinstance(value, Iterator):
                label = "a '=>' expression"
                raise Refused("Use of an Iterator is not supported here", operand=f"attribute {value_name}", label=label)
        if "" in body_titles:
            defaults, default_lines = values, lines
    file = _file()
    made: list[Value] = []
    for body_titles, (_, values, lines) in zip(titles, bodies, strict=True):
        if defaults and values is not defaults:
            values, lines = {**defaults, **values}, (*default_lines, *lines)
        made += create_resources(
            scope, type_name, [title for title in body_titles if title], values, form=form, file=file, line=line, lines=lines
        )
    return made


def _file() -> str | None:
    import sys

    frame: Any = sys._getframe(2)
    unit = frame.f_globals.get(UNIT)
    while unit is None and frame.f_back is not None:
        frame = frame.f_back
        unit = frame.f_globals.get(UNIT)
    return None if unit is None else unit.source.file


def create_resources(
    scope: Scope,
    type_name: str,
    titles: Sequence[str],
    values: dict[str, Value],
    *,
    form: int = 0,
    file: str | None = None,
    line: int | None = None,
    lines: Lines = (),
) -> list[Value]:
    """
    Declare one resource per title; gives references to them.

    Raises:
        EvaluationError: an unknown type, or a resource that is there already.
    """
    compiler = scope.compiler
    lower = type_name.lower()
    is_class = lower == "class"
    native = definition = None
    kind = "class"
    type_ = "Class"
    if not is_class:
        native = compiler.world.types.find(lower)
        if native is not None:
            kind, type_ = "compilable_type", capitalized_type(lower)
        else:
            definition = compiler.loader.find_define(lower)
            if definition is None:
                raise EvaluationError(f"Unknown resource type: '{type_name}'", hint=declare_error(compiler, lower))
            kind, type_ = "defined_type", capitalized_type(lower)
    made: list[Value] = []
    for title in titles:
        if is_class:
            definition = compiler.find_class(title)  # type: ignore[assignment]
            if definition is None:
                raise EvaluationError(f"Could not find declared class {title}")
            title = capital(definition.name)
        resource = Resource(
            type_,
            title,
            scope=scope,
            source=scope.source,
            file=file,
            line=line,
            native=native,
            definition=definition,
            kind=kind,
        )
        resource.values = dict(values)
        resource.lines = lines
        if values.get("tag") is not None:
            _tag(resource, values["tag"])
        resource.virtual = form > 0
        resource.exported = form == 2
        defaults = scope.default_attributes(type_)
        if defaults:
            for name, attribute in defaults.items():
                if name not in resource.values:
                    resource.take(name, attribute)
        if is_class:
            compiler.instantiate(resource)
        compiler.add_resource(scope, resource)
        if is_class:
            compiler.evaluate(resource)
        made.append(resource.reference())
    return made


def _tag(resource: Resource, value: Value) -> None:
    try:
        resource.add_tags(flat_tags(value))
    except EvaluationError as error:
        error.where = error.where or Location(resource.file, resource.line)
        raise


def declare_error(compiler: Any, name: str) -> str:
    """A hint for a type that is not there."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(compiler.loader.defines), n=1)
    return f"Did you mean '{close[0]}'?" if close else "It is neither a built-in type nor a define in a module of this environment."


def _given(scope: Scope, values: dict[str, Value], line: int, lines: Lines, appended: Sequence[str] = ()) -> dict[str, Attribute]:
    file = _file()
    places = dict(lines)
    return {name: Attribute(value, scope.source, file, places.get(name, line), name in appended) for name, value in values.items()}


def set_defaults(scope: Scope, type_: Value, line: int, values: dict[str, Value], lines: Lines) -> Value:
    """`Type { attribute => value }`; gives the type."""
    if not (isinstance(type_, ResourceType) and type_.type_name is not None and type_.title is None):
        actual = infer(type_).generalized()
        message = f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}"
        raise Issue(message, operand="type")
    name = capitalized_type(type_.type_name)
    table = scope.defaults.setdefault(name, {})
    for attribute_name, attribute in _given(scope, values, line, lines).items():
        if attribute_name in table:
            raise EvaluationError(
                f"Default already defined for {name} {{ {attribute_name} }}; cannot redefine",
                where=Location(attribute.file, attribute.line),
            )
        table[attribute_name] = attribute
    scope.compiler.has_defaults = True
    return type_


def override(scope: Scope, references: Value, line: int, values: dict[str, Value], lines: Lines, appended: Sequence[str]) -> Value:
    """`Type['title'] { attribute => value }`; gives the reference(s)."""
    given = _given(scope, values, line, lines, appended)
    for reference in _flat(references):
        if not isinstance(reference, ResourceType) or reference.type_name is None or reference.title is None:
            raise Issue(f"Resource Override can only operate on resources, got: {label(reference)}")
        key = (capitalized_type(reference.type_name), reference.title)
        scope.compiler.add_override(Override(key, given, scope.source, _file(), line))
    return references


def collect(
    scope: Scope,
    type_name: str,
    exported: bool,
    test: Test | None,
    values: dict[str, Value] | None,
    line: int,
    lines: Lines,
    appended: Sequence[str],
) -> Collector:
    """A collector; it is evaluated again and again until the catalog is done."""
    compiler = scope.compiler
    lower = type_name.lower().removeprefix("::")
    if exported and not compiler.storeconfigs:
        compiler.warn_here("You cannot collect exported resources without storeconfigs being set; the collection will be ignored")
    if lower == "class":
        raise EvaluationError("Classes cannot be collected")
    if compiler.world.types.find(lower) is None and compiler.loader.find_define(lower) is None:
        raise EvaluationError(f"Resource type {type_name.lower()} doesn't exist")
    given = _given(scope, values, line, lines, appended) if values else None
    made = Collector(scope, capitalized_type(lower), test, exported=exported, attributes=given, file=_file(), line=line)
    compiler.collectors.append(made)
    return made


def illegal_query(what: str) -> Test:
    raise EvaluationError(f"{what} cannot be used in a query", hint="Queries compare attributes with values, by == and !=.")


def parameter(name: str, type_: Any, default: Any, has_default: bool, fixed: bool) -> ParameterSpec:
    return ParameterSpec(name, type_, default, has_default, fixed)


NAMES: Final[dict[str, Any]] = {
    "_Break": Break,
    "_Closure": Closure,
    "_DEFAULT": DEFAULT,
    "_Kept": Kept,
    "_Matches": Matches,
    "_Next": Next,
    "_Output": Output,
    "_Return": Return,
    "_UNSET": UNSET,
    "_attributes": attributes,
    "_call": call,
    "_call_method": call_method,
    "_checked_syntax": checked_syntax,
    "_collect": collect,
    "_declarable": declarable,
    "_declare": declare,
    "_illegal_query": illegal_query,
    "_key": key_of,
    "_no_selector_entry": no_selector_entry,
    "_once": once,
    "_override": override,
    "_parameter": parameter,
    "_query_all": test_all,
    "_query_any": test_any,
    "_query_is": test_is,
    "_reassigned": reassigned,
    "_regexp": Regexp,
    "_relate": relate,
    "_required_after_optional": required_after_optional,
    "_rest": rest,
    "_set_defaults": set_defaults,
    "_signature": signature,
    "_splat": splat,
    "_split": split,
    "_stray": stray,
    "_text": text,
    "_type": type_named,
    "_unfold": operators.unfold,
    "_plus": plus,
    "_minus": minus,
    "_times": times,
    "_divide": divide,
    "_modulo": modulo,
    "_shift_left": shift_left,
    "_shift_right": shift_right,
    "_negative": negative,
    "_equal": operators.equals,
    "_less": operators.less,
    "_less_equal": operators.less_equal,
    "_greater": operators.greater,
    "_greater_equal": operators.greater_equal,
    "_matches": matches,
    "_within": within,
    "_case": case,
    "_any_case": any_case,
    "_access": access,
    "_entry": entry,
}
