"""Ruby as one environment's compiles use it: templates are rendered, functions loaded and called, and what they ask is answered."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError, PuppetError, Unsupported

from ..compiler.callables.signatures import Parameter, Signature
from ..compiler.catalog.resources import capitalized_type
from ..compiler.evaluation.runtime import call_method
from ..compiler.evaluation.scope import MISSING
from ..compiler.functions.api import Closure, Context, Dispatch, Function, LegacyFunction
from ..compiler.syntax.source import Source
from ..compiler.values.core import Value
from .child import Child, RubyProgram
from .wire import dumped, loaded, of_first_kind

if TYPE_CHECKING:
    from ..compiler.catalog.resources import DeclaredResource
    from ..compiler.evaluation.scope import Scope

__all__ = ["RubyHost"]

_NAMED = re.compile(r"@(\w+)")
_ANY = re.compile(r"instance_variable|binding|eval|instance_exec")
"""What may read variables that the template does not name."""
_ODD = re.compile(r"\W")
MAX_TEMPLATES = 2000
"""Templates that are kept; a site that puts facts into the text of inline_template() has no end of them."""
NONSENSE = "Ruby answered nonsense"
VERSION = "7.23.0"  # of the language that modules find here


class _Failed(Exception):
    """Ruby raised an error: what it said of it."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said.get("message"))
        self.message = str(said.get("message"))
        self.file = said.get("file")
        self.line = said.get("line")
        self.lacks = said.get("lacks")

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


class RubyHost:
    """
    One environment's Ruby; its child is started when it is first needed, and again after it has ended.

    `libraries` gives the folders lib/ of the modules. `note` is told of their files that Ruby read by itself.
    """

    def __init__(self, program: RubyProgram, libraries: Callable[[], Sequence[str]], note: Callable[[str], object]) -> None:
        self.program = program
        self.libraries = libraries
        self.note = note
        self._child: Child | None = None
        self._templates: dict[tuple[str | None, str], _Template] = {}
        self._known: set[int] = set()  # numbers of templates and functions that the child has
        self._numbers = 0
        self._scopes: list[Any] = []  # who asks, innermost last
        self._held: dict[int, tuple[Value, int]] = {}  # what Ruby set, by identity, and Ruby's number of its own object
        self._compiler: Callable[[], Any] = lambda: None  # whose catalog that is for
        self._kept: dict[int, Any] = {}  # what Ruby knows by a number only, until the outermost question is answered

    def close(self) -> None:
        """End the child; the next question starts one."""
        if self._child is not None:
            self._child.end()

    # --- templates ---

    def erb(self, scope: Scope, text: str, name: str | None, file: str | None) -> str:
        """
        The text of a template; without `name` it was given as text.

        Raises:
            EvaluationError: in the reference's words.
        """
        scope.mark_uncacheable("a template in Ruby is rendered")
        try:
            template = self._template(scope, text, file)
            self._have(scope, template.number, "template", text, file)
            found = self._ask(scope, "render", template.number, template.variables(scope))
        except _Failed as failed:
            what = f"The template {name}" if name is not None else "The text given to inline_template()"
            self._refuse_lacking(failed, what)
            if name is None:
                raise EvaluationError(f"Failed to parse inline template: {failed.message}") from failed
            raise EvaluationError(
                f"Failed to parse template {name}:\n  Filepath: {failed.file or file}\n  Line: {failed.line}\n  Detail: {failed.message}\n"
            ) from failed
        if not isinstance(found, str):
            raise EvaluationError(NONSENSE)
        return found

    def _template(self, scope: Scope, text: str, file: str | None) -> _Template:
        template = self._templates.get((file, text))
        if template is None:
            if len(self._templates) >= MAX_TEMPLATES:
                self._known.difference_update(each.number for each in self._templates.values())
                self._templates.clear()
                self._running(scope)
                self._ask(scope, "forget_templates")
            self._numbers += 1
            template = self._templates[file, text] = _Template(self._numbers, text)
        return template

    # --- functions ---

    def function(self, name: str, source: Source) -> Function:
        """
        The function that a file defines.

        Raises:
            EvaluationError: it does not, or cannot be read.
        """
        self._numbers += 1
        number = self._numbers
        arguments = (name, source.text, source.file)

        def called(context: Context, index: int, args: Sequence[Value], block: Closure | None) -> Value:
            where: Any = context
            try:
                self._have(where, number, "load", *arguments)
                return self._ask(where, "call", number, index, list(args), block)
            except _Failed as failed:
                self._refuse_lacking(failed, f"The function '{name}'")
                raise EvaluationError(failed.message, hint=f"Raised in Ruby: {failed.place}") from failed

        try:
            said = self._have(None, number, "load", *arguments)
        except _Failed as failed:
            self._refuse_lacking(failed, f"The function '{name}'")
            raise EvaluationError(f"Could not load the function '{name}': {failed.message}", hint=f"It is at {failed.place}") from failed
        if not isinstance(said, dict):
            raise EvaluationError(NONSENSE)
        if "arity" in said:
            return LegacyFunction(
                name,
                said["arity"],
                lambda context, *args: called(context, 0, [of_first_kind(arg) for arg in args], None),
                statement=said["statement"],
                pure=False,
            )
        made = Function(name, pure=False, aliases=said["aliases"])

        def dispatched(index: int, method: str, context: Context, *args: Value, block: Closure | None = None) -> Value:
            value = called(context, index, args, block)
            return made.dispatches[index].signature(context.types).check_return(method, value)

        for index, each in enumerate(said["dispatches"]):
            made.dispatches.append(
                Dispatch(
                    each["parameters"],
                    partial(dispatched, index, f"function '{each['method']}'"),
                    each.get("returns"),
                    mismatch=each["mismatch"],
                    aliases=said["aliases"],
                )
            )
        return made

    def _refuse_lacking(self, failed: _Failed, what: str) -> None:
        if failed.lacks:
            raise Unsupported(
                f"{what} uses {failed.lacks}, which only Puppet's own Ruby has ({failed.place})",
                hint="Functions of the language, scope and Ruby's library are here. A function can be written in Python instead.",
            ) from failed

    # --- questions to Ruby ---

    def _have(self, scope: Scope | None, number: int, op: str, *args: Any) -> Any:
        """Have a template or function in the child, as `op` tells it; what it says of it, None when it was there."""
        child = self._running(scope)
        if number in self._known:
            return None
        said = self._ask(scope, op, number, *args)
        if child is self._child:
            self._known.add(number)
        return said

    def _running(self, scope: Scope | None) -> Child:
        child = self._child
        if child is None or not child.alive:
            if self._scopes:
                raise EvaluationError("Ruby has ended while it was asked")
            child = self._child = self.program.start()
            self._known = set()
            self._held.clear()
            self._ask(scope, "setup", list(self.libraries()))
        self.program.used(child)
        if self._held and scope is not None and scope.compilation is not self._compiler():
            self._held.clear()
            self._ask(scope, "release")
        return child

    def _ask(self, scope: Scope | None, op: str, *args: Any) -> Any:
        """What Ruby gives; _Failed when it raises, and whatever was raised here when that came through."""
        child = self._child
        assert child is not None
        self._scopes.append(scope)
        try:
            message = self._exchange(child, {"op": op, "args": dumped(list(args), self._keep)})
            for each in message.get("libraries", ()):
                self.note(each)
            if "value" in message:
                return loaded(message["value"], self._found)
            if "passing" in message:
                raise self._kept[message["passing"]]
            said = message.get("error")
            if not isinstance(said, dict):
                raise EvaluationError(NONSENSE)
            if said.get("origin") in self._kept:
                raise self._kept[said["origin"]]
            raise _Failed(said)
        finally:
            self._scopes.pop()
            if not self._scopes:
                self._kept.clear()

    def _exchange(self, child: Child, question: dict[str, Any]) -> dict[str, Any]:
        """The last message for a question. Whatever is raised in the middle leaves both sides out of step: the child is ended."""
        try:
            child.send(question)
            message = child.receive()
            while "ask" in message:
                child.send(self._answer(child, message))
                message = child.receive()
            return message
        except BaseException:
            child.end()
            raise

    def _keep(self, value: Any) -> int:
        self._numbers += 1
        self._kept[self._numbers] = value
        return self._numbers

    def _found(self, number: int) -> Any:
        if number < 0:
            return self._block(-number)
        if number not in self._kept:
            raise EvaluationError("Ruby gave a value that it was given in an earlier call", hint="It may not keep it.")
        return self._kept[number]

    def _block(self, number: int) -> Callable[[int, bool], Closure]:
        """What makes a block of Ruby's a lambda of so many parameters, and a rest."""
        scope = self._scopes[-1]

        def called(*args: Value) -> Value:
            try:
                return self._ask(scope, "yield", number, list(args))
            except _Failed as failed:
                raise EvaluationError(failed.message, hint=f"Raised in Ruby: {failed.place}") from failed

        def made(parameters: int, rest: bool) -> Closure:
            named = [Parameter(f"arg{index}") for index in range(parameters)]
            return Closure(called, Signature([*named, Parameter("args", splat=True)] if rest else named))

        return made

    # --- questions of Ruby's ---

    def _answer(self, child: Child, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to what Ruby asks. Errors pass through Ruby; what ends a compile is raised."""
        scope: Scope | None = self._scopes[-1]
        try:
            if scope is None:
                raise EvaluationError("A function asks for something while it is only defined", hint="It may when it is called.")
            args = loaded(message["args"], self._found)
            if message.get("top"):
                scope = scope.global_scope()
            answer = getattr(self, f"_on_{message['ask'].rstrip('?')}", None)
            if answer is None:
                raise EvaluationError("Ruby asked nonsense", hint=f"There is no {message['ask']}.")
            found = answer(scope, *args)
            held = self._held.get(id(found))
            return {"value": {"$": "held", "id": held[1]} if held is not None else dumped(found, self._keep)}
        except PuppetError as error:
            if not child.alive:
                raise
            return {"raised": self._keep(error), "message": str(error)}
        except MemoryError:
            raise
        except Exception as error:
            if not child.alive:
                raise
            return {"passing": self._keep(error)}

    def _on_variable(self, scope: Scope, name: str) -> Value:
        return scope.compilation.data.context_for(scope).variable(name)

    def _on_peek(self, scope: Scope, name: str) -> Value:
        found = scope.find(name)
        return None if found is MISSING else found

    def _on_set(self, scope: Scope, name: str, number: int, value: Value) -> None:
        scope.set(name, value)
        if isinstance(value, list | dict):
            self._held[id(value)] = (value, number)
            self._compiler = weakref.ref(scope.compilation)

    def _on_defaults(self, scope: Scope, type_name: str) -> Value:
        found = scope.default_attributes(capitalized_type(type_name)) or {}
        return {name: attribute.value for name, attribute in found.items()}

    def _on_find(self, scope: Scope, name: str, kind: str) -> str | None:
        return scope.compilation.host.find_file(name, kind)

    def _on_exists(self, scope: Scope, name: str) -> bool:
        return scope.exists(name)

    def _on_variables(self, scope: Scope) -> Value:
        return scope.variables()

    def _on_scope_name(self, scope: Scope) -> str:
        return scope.name()

    def _on_call(self, scope: Scope, name: str, args: list[Value], block: Closure | None) -> Value:
        return scope.call_function(name, args, block)

    def _on_function(self, scope: Scope, name: str) -> bool:
        return scope.has_function(name)

    def _on_method(self, scope: Scope, value: Any, name: str, args: list[Value], block: Closure | None) -> Value:
        return call_method(scope, name, block, value, *args)

    def _on_block(self, scope: Scope, number: int, args: list[Value]) -> Value:
        return self._found(number)(*args)

    def _on_log(self, scope: Scope, level: str, text: str) -> None:
        scope.log(level, text)

    def _on_warn_once(self, scope: Scope, kind: str, key: str, text: str) -> None:
        scope.warn_once(kind, key, text)

    def _on_setting(self, scope: Scope, name: str) -> Value:
        return scope.setting(name)

    def _on_version(self, scope: Scope) -> str:
        return VERSION

    def _on_environment(self, scope: Scope) -> str:
        return scope.compilation.host.environment

    def _on_classes(self, scope: Scope) -> Value:
        return list(scope.compilation.catalog.classes)

    def _on_tags(self, scope: Scope) -> Value:
        return list(scope.compilation.catalog.tags)

    def _on_resource(self, scope: Scope, type_name: str, title: str) -> Value:
        type_name = capitalized_type(type_name)
        return _shown(scope.compilation.catalog.find(type_name, capitalized_type(title) if type_name == "Class" else title))

    def _on_own_resource(self, scope: Scope) -> Value:
        return _shown(scope.resource)


def _shown(resource: DeclaredResource | None) -> Value:
    """What Ruby sees of a resource."""
    if resource is None:
        return None
    return {"type": resource.type, "title": resource.title, "parameters": dict(resource.values)}


class _Template:
    """A template that the child has by a number, with the variables that it needs."""

    __slots__ = ("names", "number")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.names = None if _ANY.search(text) else frozenset(_NAMED.findall(text))

    def variables(self, scope: Scope) -> dict[str, Value]:
        """Of `scope`, by the names of Ruby's instance variables; what is undef is not there."""
        if self.names is None:
            seen = scope.variables()
            return {_ODD.sub("_", name): value for name, value in seen.items() if value is not None and not name[:1].isdecimal()}
        found: dict[str, Value] = {}
        odd: dict[str, Value] | None = None
        for name in self.names:
            value = scope.find(name)
            if value is MISSING and "_" in name:
                if odd is None:
                    odd = {_ODD.sub("_", each): held for each, held in scope.variables().items() if _ODD.search(each)}
                value = odd.get(name)
            if value is not None and value is not MISSING:
                found[name] = value
        return found
