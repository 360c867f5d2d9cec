"""The names that generated code calls: those in `NAMES`, with an underscore, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from shared.errors import EvaluationError, Location
from shared.regexps import Match, Regexp

from ..callables import operators
from ..callables.signatures import Closure, Parameter, Signature, of_type
from ..catalog.collectors import test_all, test_any, test_is
from ..catalog.definitions import class_title
from ..catalog.resources import capitalized_type
from ..errors.control import Break, Jump, Next, Return, Returned
from ..errors.issues import LanguageError
from ..errors.locations import current_place
from ..syntax.checker import problem
from ..types.kinds.base import TypeReference
from ..types.kinds.objects import LOOKUP_CONTEXT
from ..types.kinds.references import ClassType, ResourceEntryType
from ..types.notation.operands import flatten_arrays
from ..values import comparison
from ..values.core import DEFAULT, MISSING, Instance, MaybeValue, PuppetType, Reporter, Sensitive, Value, key_of
from ..values.members import WITH_MEMBERS, member
from ..values.text import inspect, inspect_bare, to_s
from .compilation import MatchVariables, Scope, declaring_scope
from .declarations import resource_expressions
from .declarations.relationship_expressions import relate


class Lazy:
    """A value that is made when it is first needed and is then the same for the environment: a type, a signature."""

    __slots__ = ("make", "value")

    def __init__(self, make: Callable[[Scope], Value]) -> None:
        self.make: Callable[[Scope], Value] | None = make
        self.value: Value = None

    def __call__(self, scope: Scope) -> Value:
        make = self.make
        if make is not None:
            # `make` is dropped only after success: an error must occur again at the next use, with its place.
            self.value = make(scope)
            self.make = None
        return self.value


class TemplateOutput:
    """The text of a template so far; one Sensitive in it makes all of it Sensitive."""

    __slots__ = ("append", "parts", "sensitive")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.append = self.parts.append
        self.sensitive = False

    def add(self, value: Value) -> None:
        if isinstance(value, Sensitive):
            # A template with one Sensitive value is Sensitive as a whole: its text contains the secret.
            self.sensitive = True
            value = value.unwrap()
        self.append(value if value.__class__ is str else to_s(value))

    def result(self) -> Value:
        text = "".join(self.parts)
        return Sensitive(text) if self.sensitive else text


# --- values -------------------------------------------------------------------------------------------------------


def text(value: Value) -> str:
    """Return a value as it is in an interpolated string."""
    return value if value.__class__ is str else to_s(value)


# --- operators ----------------------------------------------------------------------------------------------------


def _reporting(operator: Callable[[Value, Value, Reporter], Value]) -> Callable[[Scope, Value, Value], Value]:
    """Return an operator of two values that reports to the compilation of a scope."""
    return lambda scope, left, right: operator(left, right, scope.compilation.reporter)


plus = _reporting(operators.plus)
minus = _reporting(operators.minus)
times = _reporting(operators.times)
divide = _reporting(operators.divide)
modulo = _reporting(operators.modulo)
shift_left = _reporting(operators.shift_left)
shift_right = _reporting(operators.shift_right)


def negative(scope: Scope, value: Value) -> Value:
    return operators.negate(value, scope.compilation.reporter)


def remember_match(match: Match | bool | None, holder: MatchVariables | None) -> bool:
    """Return whether `match`, a match, None or a bool, is a success; a match is set in `holder`."""
    if match is True or match is False:
        return bool(match)
    if holder is not None and match is not None:
        # A failed match keeps the variables of the last successful one, as in the reference.
        holder.last = match
    return match is not None


def matches(left: Value, right: Value, holder: MatchVariables | None) -> bool:
    """Return whether `left =~ right`; the match variables are set in `holder`."""
    return remember_match(comparison.match(left, right), holder)


def within(left: Value, right: Value, holder: MatchVariables | None) -> bool:
    """Return whether `left in right`; the match variables are set in `holder`."""
    return remember_match(comparison.contains(left, right), holder)


def case(option: Value, value: Value, holder: MatchVariables | None) -> bool:
    """Return whether an option of a `case` or selector takes the value."""
    if option.__class__ is list and holder is not None and value.__class__ is list and len(value) == len(option):
        # Regular expressions inside set the match variables too.
        return all(case(part, item, holder) for part, item in zip(option, value, strict=True))
    if option.__class__ is dict and holder is not None and value.__class__ is dict:
        return all(case(part, value.get(key), holder) for key, part in option.items())
    return remember_match(comparison.matches(value, option), holder)


def any_case(options: list[Value], value: Value, holder: MatchVariables | None) -> bool:
    """Return whether one of the options of `*options` takes the value."""
    return any(case(option, value, holder) for option in options)


def access(scope: Scope, left: Value, *keys: Value) -> Value:
    """Return `left[keys]`; of a reference to a resource, its attributes of these names."""
    if isinstance(left, ResourceEntryType) and left.type_name is not None and left.title is not None:
        return _attribute_access(scope, left, left.type_name, left.title, keys)
    if isinstance(left, ClassType) and left.class_name is not None:
        return _attribute_access(scope, left, "class", class_title(left.class_name), keys)
    return operators.access(left, keys, scope.compilation.reporter)


def entry(scope: Scope, left: Value, key: str) -> Value:
    """Return `left['key']`; `left` is mostly a Hash."""
    if left.__class__ is dict:
        return left.get(key)
    return access(scope, left, key)


def fact(scope: Scope, name: str) -> Value:
    """Return `$facts['name']`."""
    return scope.compilation.fact(name)


def _attribute_access(scope: Scope, reference: PuppetType, type_name: str, title: str, keys: Sequence[Value]) -> Value:
    resource = scope.compilation.catalog.find(capitalized_type(type_name), title)
    if resource is None:
        reference_text = f"Class['{reference.class_name}']" if isinstance(reference, ClassType) else reference.notation()
        raise LanguageError(f"Resource not found: {reference_text}")
    values: list[Value] = []
    for key in flatten_arrays(keys):
        if not isinstance(key, str) or not resource.has_parameter(key):
            resource_text = f"{'Class' if isinstance(reference, ClassType) else type_name.capitalize()}['{_own_title(reference, title)}']"
            raise LanguageError(f"The resource {resource_text} does not have a parameter called '{inspect_bare(key)}'")
        value = resource.values.get(key)
        scope_of_resource = declaring_scope(resource)
        # Defaults are applied at the end of a compilation, so that an earlier read has to look them up.
        if value is None and scope_of_resource is not None:
            defaults = scope_of_resource.default_attributes(resource.type)
            if defaults and key in defaults:
                value = defaults[key].value
        values.append(value)
    return values[0] if len(values) == 1 else values


def _own_title(reference: PuppetType, title: str) -> str:
    return reference.class_name or "" if isinstance(reference, ClassType) else title


# --- names --------------------------------------------------------------------------------------------------------


def type_named(scope: Scope, name: str) -> PuppetType:
    """Return the type of that name; raise LanguageError when there is none."""
    type_ = scope.compilation.definitions.find_type(name)
    if type_ is None:
        raise LanguageError(f"Resource type not found: {name.removeprefix('::')}")
    return type_


def type_or_reference(scope: Scope, name: str) -> PuppetType:
    """Return the type, or the mere name of one that is not there."""
    type_ = scope.compilation.definitions.find_type(name)
    return type_ if type_ is not None else TypeReference(name.removeprefix("::"))


def check_syntax(scope: Scope, syntax: str, value: str) -> Value:
    """Return the text of a heredoc; raise LanguageError when it is wrong in the syntax that the heredoc names."""
    syntax_error = problem(syntax, value)
    if syntax_error is not None:
        raise LanguageError(str(syntax_error))
    return value


def refuse_reassignment(name: str, value: Value) -> Value:
    """Raise the error of a second assignment to a variable."""
    raise LanguageError(f"Cannot reassign variable '${name}'")


def refuse_reserved(name: str, value: Value) -> Value:
    """Raise the error of an assignment to a reserved name in a lambda or function."""
    if name == "server_facts":
        raise LanguageError(f"Attempt to assign to a reserved variable name: '${name}'")
    raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'")


def set_once(current: MaybeValue, name: str, value: Value) -> Value:
    """Return `value`; raise LanguageError when the variable, whose value is `current`, is set already."""
    if current is not MISSING:
        raise LanguageError(f"Cannot reassign variable '${name}'")
    return value


def rest(
    arguments: tuple[Value, ...], default: Callable[[], Value], type_: PuppetType | None = None, label: str = "", name: str = ""
) -> list[Value]:
    """Return the values of a captures-rest parameter; the default applies to no argument, and to a single undef."""
    # For the reference, one undef for a splat means no argument.
    if not arguments or (len(arguments) == 1 and arguments[0] is None):
        value = default()
        values = value if isinstance(value, list) else [value]
        element = Parameter.declared(name, type_, splat=True).type
        return values if element is None else [of_type(item, element, label, name) for item in values]
    return list(arguments)


NameShape: TypeAlias = "tuple[str | NameShape, ...]"
"""The names on the left of a destructuring assignment, nested as they are there."""


def split(scope: Scope, shape: NameShape, value: Value) -> list[Value]:
    """Return the values for the names of a destructuring assignment, in order."""
    values: list[Value] = []
    _split(scope, shape, value, values)
    return values


def _split(scope: Scope, shape: NameShape, value: Value, destination: list[Value]) -> None:
    if isinstance(value, dict):
        for part in shape:
            key = part if isinstance(part, str) else key_of(_name_list(part))
            if key not in value:
                key_text = part if isinstance(part, str) else inspect(_name_list(part))
                raise LanguageError(f"No value for required key '{key_text}' in assignment to variables from hash")
            if isinstance(part, str):
                destination.append(value[key])
            else:
                _split(scope, part, value[key], destination)
        return
    if isinstance(value, ClassType) and value.class_name is not None:
        if scope.compilation.catalog.find("Class", class_title(value.class_name)) is None:
            raise LanguageError(f"Resource not found: Class['{value.class_name}']", operand="value")
        for name in _names(shape):
            variable_value = scope.compilation.scopes.qualified(value.class_name, name)
            if variable_value is MISSING:
                message = f"No value for required variable '${value.class_name}::{name}' in assignment to variables from class reference"
                raise LanguageError(message, operand=f"${name}")
            destination.append(variable_value)
        return
    values = value if isinstance(value, list) else [value]
    if len(values) != len(shape):
        raise LanguageError(f"Mismatched number of assignable entries and values, expected {len(shape)}, got {len(values)}")
    for part, item in zip(shape, values, strict=True):
        if isinstance(part, tuple):
            _split(scope, part, item, destination)
        else:
            destination.append(item)


def _name_list(shape: NameShape) -> list[Value]:
    """Return nested names as the language's array of them, which is used as their key in a hash."""
    return [part if isinstance(part, str) else _name_list(part) for part in shape]


def _names(shape: NameShape) -> Iterable[str]:
    for part in shape:
        if isinstance(part, tuple):
            yield from _names(part)
        else:
            yield part


# --- calls --------------------------------------------------------------------------------------------------------


def call(scope: Scope, name: str, block: Closure | None, *args: Value) -> Value:
    """Call a function by its name, and return its value."""
    compilation = scope.compilation
    compilation.function_names.add(name)
    function = compilation.loader.functions.get(name)
    if function is None:
        function = compilation.definitions.function(name)
    return function.call(scope, args, block)


def run(scope: Scope, name: str, block: Closure | None, *args: Value) -> None:
    """Call a function that starts a program whose output nobody uses."""
    scope.compilation.uses_output = False
    try:
        call(scope, name, block, *args)
    finally:
        scope.compilation.uses_output = True


def call_method(scope: Scope, name: str, block: Closure | None, *operands: Value) -> Value:
    """Return `receiver.name(args)`: an attribute of an object, otherwise the function's result."""
    if not operands:  # `(*[]).name`
        return call(scope, name, block)
    receiver, *args = operands
    if receiver.__class__ in WITH_MEMBERS and not args:
        try:
            return member(receiver, name)
        except KeyError:
            pass
    if receiver.__class__ is Instance and (receiver.behind is not None or receiver.type is LOOKUP_CONTEXT):
        if receiver.behind is None:  # the manifest made it itself
            module = receiver.attributes.get("module_name")
            receiver.behind = scope.lookup_context(module if isinstance(module, str) else None)
        try:
            return receiver.behind.call(name, args, block)
        except KeyError:
            pass
    return call(scope, name, block, *operands)


def signature(parameters: Sequence[tuple[str, PuppetType | None, bool, bool]], returns: PuppetType | None) -> Signature:
    specs = [Parameter.declared(name, type_, default=default, splat=splat) for name, type_, default, splat in parameters]
    return Signature(specs, returns=returns)


def required_after_optional(name: str) -> None:
    raise LanguageError(f"Parameter ${name} is required but appears after optional parameters")


def rest_not_last(name: str) -> None:
    # The reference gives such parameters arguments of others, and drops some.
    raise LanguageError(f"Parameter ${name} is not last, and has 'captures rest'")


def stray(jump: Jump, line: int) -> EvaluationError:
    """Return the error of a jump at top scope, where it leads nowhere."""
    here = current_place()
    error = jump.stray()
    error.where = Location(here.file if here else None, line)
    return error


def no_selector_entry(value: Value) -> None:
    raise LanguageError(f"No matching entry for selector parameter with value '{inspect_bare(value)}'")


NAMES: Final[dict[str, Any]] = {
    "_Break": Break,
    "_Closure": Closure,
    "_DEFAULT": DEFAULT,
    "_Lazy": Lazy,
    "_MatchVariables": MatchVariables,
    "_Next": Next,
    "_TemplateOutput": TemplateOutput,
    "_Return": Return,
    "_Returned": Returned,
    "_MISSING": MISSING,
    "_attributes": resource_expressions.attributes,
    "_call": call,
    "_run": run,
    "_call_method": call_method,
    "_check_syntax": check_syntax,
    "_collect": resource_expressions.collect,
    "_declarable": resource_expressions.declarable,
    "_declare": resource_expressions.declare,
    "_fact": fact,
    "_illegal_query": resource_expressions.illegal_query,
    "_key": key_of,
    "_no_selector_entry": no_selector_entry,
    "_of_type": of_type,
    "_set_once": set_once,
    "_override": resource_expressions.override,
    "_query_all": test_all,
    "_query_any": test_any,
    "_query_is": test_is,
    "_refuse_reassignment": refuse_reassignment,
    "_refuse_reserved": refuse_reserved,
    "_regexp": Regexp,
    "_relate": relate,
    "_required_after_optional": required_after_optional,
    "_rest_not_last": rest_not_last,
    "_rest": rest,
    "_set_defaults": resource_expressions.set_defaults,
    "_signature": signature,
    "_splat": resource_expressions.splat,
    "_split": split,
    "_stray": stray,
    "_text": text,
    "_type": type_named,
    "_type_or_reference": type_or_reference,
    "_unfold": operators.unfold,
    "_plus": plus,
    "_minus": minus,
    "_times": times,
    "_divide": divide,
    "_modulo": modulo,
    "_shift_left": shift_left,
    "_shift_right": shift_right,
    "_negative": negative,
    "_equal": comparison.equals,
    "_less": comparison.less,
    "_less_equal": comparison.less_equal,
    "_greater": comparison.greater,
    "_greater_equal": comparison.greater_equal,
    "_matches": matches,
    "_within": within,
    "_case": case,
    "_any_case": any_case,
    "_access": access,
    "_entry": entry,
}
