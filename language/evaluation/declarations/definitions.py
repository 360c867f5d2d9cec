"""The evaluation of a class, a define or a node: its scope, its parameters, its body."""

from __future__ import annotations

from shared.errors import EvaluationError, PuppetError

from ...catalog.definitions import Definition, HostClass, NodeBlock, ParameterPlan, ParameterSpec, class_title
from ...catalog.resources import METAPARAMETERS, DeclaredResource
from ...errors.locations import FINAL
from ...host import NotFoundInData
from ...types.attribute_references import as_attribute
from ...types.descriptions.describe import check_parameters
from ...values.core import Deferred, Value, own
from ...values.variables import BUILT_IN, RESERVED
from ..compilation import Compilation, MatchVariables, Scope, declaring_scope
from ..defaults import evaluate_default, evaluate_defaults

_COLLECTIONS = (list, dict)


def evaluate(compilation: Compilation, resource: DeclaredResource) -> None:
    """Run the body of a class, define or node, once."""
    if resource.evaluated:
        return
    # Before the body runs: a class that includes itself, directly or through others, must not run twice.
    resource.evaluated = True
    resource.add_scope_tags()
    evaluate_definition(compilation, resource)


def evaluate_definition(compilation: Compilation, resource: DeclaredResource) -> None:
    """Run the body of the class, define or node of `resource`, in a scope of its own."""
    definition = resource.definition
    assert definition is not None
    if isinstance(definition, HostClass):
        _evaluate_class(compilation, definition, resource)
    elif isinstance(definition, NodeBlock):
        _evaluate_node(compilation, definition, resource)
    else:
        _evaluate_define(compilation, definition, resource)


def _evaluate_class(compilation: Compilation, definition: HostClass, resource: DeclaredResource) -> None:
    """Run the body of a class, after the one that it inherits from. Source: language reference 5.2."""
    declared_in = declaring_scope(resource)
    inherited: Scope | None = None
    if definition.parent is not None:
        parent = compilation.catalog.find("Class", class_title(definition.parent.name))
        if parent is not None:
            # The parent's body runs first: the child reads its variables and overrides its resources.
            evaluate(compilation, parent)
        inherited = compilation.scopes.by_class.get(definition.parent.name)
    scope = Scope(compilation, "class", parent=inherited or declared_in, resource=resource, source=definition)
    # Variables are found through the parent class, then in node and top scope, never in the declaring scope.
    scope.next = inherited or compilation.scopes.behind(declared_in)
    compilation.catalog.classes.append(definition.name)
    _set_modules(scope, definition, scope.parent)
    # Titles of classes are capitalized in catalogs, but $title is the name as it was declared.
    scope.vars["title"] = resource.title.lower()
    name = resource.values.get("name")
    scope.vars["name"] = name.lower() if isinstance(name, str) else resource.title.lower()
    # Registered before the body runs, which may read its own variables by their qualified names.
    compilation.scopes.by_class[definition.name] = scope
    _bind_parameters(compilation, scope, definition, resource)
    compilation.catalog.contain_in_stage(resource)
    _run(definition, scope)


def _evaluate_define(compilation: Compilation, definition: Definition, resource: DeclaredResource) -> None:
    declared_in = declaring_scope(resource)
    scope = Scope(compilation, "define", parent=declared_in, resource=resource, source=definition)
    scope.next = compilation.scopes.behind(declared_in)
    _set_modules(scope, definition, declared_in)
    # create_resources() may pass a number as the title, which stays a number in $title.
    title = resource.title if resource.number_title is None else resource.number_title
    scope.vars["title"] = title
    name = resource.values.get("name")
    scope.vars["name"] = name if name is not None else title
    _bind_parameters(compilation, scope, definition, resource)
    _run(definition, scope)


def _evaluate_node(compilation: Compilation, definition: NodeBlock, resource: DeclaredResource) -> None:
    declared_in = declaring_scope(resource)
    scope = Scope(compilation, "node", parent=declared_in, resource=resource, source=definition)
    scope.next = compilation.top
    compilation.catalog.classes.append(definition.name)
    _set_modules(scope, definition, declared_in)
    scope.vars["title"] = resource.title
    scope.vars["name"] = resource.title
    # In a node block $1 comes from the regular expression that matched the node's name.
    scope.matched = MatchVariables(compilation.scopes.node_match)
    compilation.scopes.node = scope
    compilation.catalog.contain_in_stage(resource)
    _run(definition, scope)


def _set_modules(scope: Scope, definition: Definition, parent: Scope | None) -> None:
    scope.vars["module_name"] = definition.module
    scope.vars["caller_module_name"] = parent.module_name if parent is not None else ""


def _run(definition: Definition, scope: Scope) -> None:
    body = definition.body()
    if body is not None:
        body(scope, *map(scope.vars.__getitem__, definition.by_name))


def _bind_parameters(compilation: Compilation, scope: Scope, definition: Definition, resource: DeclaredResource) -> None:
    """
    Set the parameters in the scope: from the resource, the site's data, or the defaults.

    Raises:
        EvaluationError: parameters are missing, unknown or of a wrong type; one message names all.
    Source: language reference 5.1.
    """
    if isinstance(definition, HostClass):
        _bind_data(compilation, scope, definition, resource)
    if definition.plan is None:
        definition.plan = _plan(definition, scope)
    if _bind_by_plan(compilation, scope, definition, definition.plan, resource):
        return
    values = resource.values
    variables = scope.vars
    known_values: dict[str, Value] = {}
    # Checked once for each definition; only rare names need the slow check of each value.
    are_allowed = definition.names_are_allowed
    for name, value in values.items():
        if name in definition.by_name or name not in METAPARAMETERS:
            known_values[name] = value
        if not (are_allowed and name in definition.by_name):
            _refuse_name(definition, name)
        if name != "name" and (value is not None or name in METAPARAMETERS):
            variables[name] = value
    for name, value in known_values.items():
        if value.__class__ in _COLLECTIONS:
            known_values[name] = variables[name] = values[name] = own(value)
    arguments = {name: value for name, value in known_values.items() if name in definition.by_name}
    for name, value in evaluate_defaults(scope, definition.parameters, arguments, resource.ref):
        if not are_allowed:
            _refuse_name(definition, name)
        value = own(as_attribute(value))
        variables[name] = value
        known_values[name] = value
        resource.values[name] = value
    # After the defaults, so that one message names all faults of given and default values.
    _check(compilation, scope, definition, resource, known_values)
    for parameter in definition.parameters:
        variables[parameter.name] = known_values.get(parameter.name)


def _plan(definition: Definition, scope: Scope) -> ParameterPlan:
    """Return how the parameters of a definition get their values, as far as that is the same each time."""
    steps: list[tuple[dict[str, Value], ParameterSpec | None]] = []
    constants: dict[str, Value] = {}
    is_usable = definition.names_are_allowed
    try:
        checks = {parameter.name: parameter.type(scope).instance if parameter.typed else None for parameter in definition.parameters}
    except PuppetError:  # a type that is none, which is an error only behind those of the defaults
        return ParameterPlan({}, frozenset(), (), frozenset(), is_usable=False)
    for parameter in definition.parameters:
        if parameter.fixed:
            value = as_attribute(parameter.header.default)
            check = checks[parameter.name]
            is_usable = is_usable and (check is None or check(value))
            constants[parameter.name] = value
        elif parameter.has_default:
            steps.append((constants, parameter))
            constants = {}
    steps.append((constants, None))
    required = frozenset(parameter.name for parameter in definition.parameters if not parameter.has_default)
    collections = frozenset(name for constants, _ in steps for name, value in constants.items() if value.__class__ in _COLLECTIONS)
    return ParameterPlan(checks, required, tuple(steps), collections, is_usable=is_usable)


def _bind_by_plan(compilation: Compilation, scope: Scope, definition: Definition, plan: ParameterPlan, resource: DeclaredResource) -> bool:
    """
    Bind the parameters if all given values are right, as they nearly always are; return whether they were.

    No default has been evaluated when it returns False.

    Raises:
        EvaluationError: a default cannot be evaluated, or is of a wrong type.
    """
    if not plan.is_usable:
        return False
    values = resource.values
    variables = scope.vars
    checks = plan.checks
    given: dict[str, Value] = {}
    undefined: list[str] = []
    for name, value in values.items():
        if name in checks:
            if value is None:
                undefined.append(name)
                continue
            check = checks[name]
            if value.__class__ is Deferred or not (check is None or check(value)):
                return False
            if value.__class__ in _COLLECTIONS:
                value = values[name] = own(value)
            given[name] = variables[name] = value
        elif name in METAPARAMETERS:
            variables[name] = value
        elif name != "name":
            return False
    if not given.keys() >= plan.required:
        return False
    for name in undefined:
        variables.setdefault(name, None)
    is_right = True
    for constants, parameter in plan.steps:
        new = constants if given.keys().isdisjoint(constants) else {name: constants[name] for name in constants if name not in given}
        if not plan.collections.isdisjoint(new):
            new = {name: own(value) for name, value in new.items()}
        values.update(new)
        variables.update(new)
        if parameter is not None and parameter.name not in given:
            value = own(as_attribute(evaluate_default(scope, parameter, definition.parameters, resource)))
            check = checks[parameter.name]
            is_right = is_right and value.__class__ is not Deferred and (check is None or check(value))
            values[parameter.name] = variables[parameter.name] = value
    if not is_right:
        _check(compilation, scope, definition, resource, {name: value for name, value in values.items() if name in checks})
    return True


def _bind_data(compilation: Compilation, scope: Scope, definition: HostClass, resource: DeclaredResource) -> None:
    """Give the resource of a class the site's data for the parameters that it does not set."""
    for parameter in definition.parameters:
        name = parameter.name
        if resource.values.get(name) is None:
            try:
                value = scope.look_up(f"{definition.name}::{name}")
            except NotFoundInData:
                continue
            # A null in the data means the default, where there is one.
            if value is not None or not parameter.has_default:
                resource.set(name, value)


def _refuse_name(definition: Definition, name: str) -> None:
    """Raise EvaluationError, placed at the definition, when no parameter may be called `name`."""
    if name in RESERVED:
        raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'", where=definition.place)
    if name in BUILT_IN:
        raise EvaluationError(f"Cannot reassign variable '${name}'", where=definition.place)


def check_unevaluated(compilation: Compilation, definition: Definition, resource: DeclaredResource) -> None:
    """
    Check the attributes of a virtual resource against the parameters of its define, without a scope of its own.

    Raises:
        EvaluationError: parameters are missing, unknown or of a wrong type; it has no place, as in the reference.
    """
    defaulted = {parameter.name for parameter in definition.parameters if parameter.has_default}
    values = {name: value for name, value in resource.values.items() if value is not None or name not in defaulted}
    try:
        # Top scope, because the define's own scope does not exist without evaluation.
        _check(compilation, compilation.top, definition, resource, values)
    except EvaluationError as error:
        raise EvaluationError(error.message, hint=error.hint, where=FINAL) from None


def _check(compilation: Compilation, scope: Scope, definition: Definition, resource: DeclaredResource, values: dict[str, Value]) -> None:
    for name, value in values.items():
        parameter = definition.by_name.get(name)
        if parameter is None:
            if name == "name" or name in METAPARAMETERS:
                continue
            break
        if value.__class__ is Deferred or (parameter.typed and not parameter.type(scope).instance(value)):
            break
    else:
        for parameter in definition.parameters:
            if parameter.name not in values and not parameter.has_default:
                break
        else:
            return
    # Only now, after the quick check found a possible fault: computing all types is slow.
    declared = [(parameter.name, parameter.type(scope), parameter.has_default) for parameter in definition.parameters]
    checked = {
        name: value for name, value in values.items() if name in definition.by_name or (name != "name" and name not in METAPARAMETERS)
    }
    problems = check_parameters(resource.ref, declared, checked, deferred=compilation.definitions.deferred_type)
    if problems is not None:
        raise EvaluationError(problems)
