"""Ruby as the compiles of one environment use it: renders templates, loads and calls functions, and answers the questions they ask."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from language.callables.signatures import Parameter, Signature
from language.functions.api import Closure, Context, Dispatch, Function, LegacyFunction, RubyFunction
from language.functions.old_api import old_api_value
from language.host import NotFoundInData
from language.syntax.source import Source
from language.values.core import MISSING, Value
from shared.errors import EvaluationError, Location, PuppetError
from shared.ruby import RubyChild, RubyProgram

from ..files.code_files import CodeFiles
from ..repeated_calls import RepeatedCalls, RubyCall, RubyCode
from .errors import NONSENSE, LeftBlock, RaisedInRuby, refuse_lacking
from .objects import RubyObjects
from .questions import ScopeQuestions
from .recording import NOT_FOUND, Recording, Replay, has_own
from .results import BackendCall, BackendResults, Reads
from .templates import RenderedTemplate
from .wire import dump_value, load_value

if TYPE_CHECKING:
    from language.evaluation.compilation import Scope

HOST = Path(__file__).with_name("host.rb")

MAX_TEMPLATES = 2000
"""Templates in the cache; a site that puts facts into the text of inline_template() has no end of them."""


def _no_compilation() -> None:
    pass


def _repeated() -> object:
    """Stands for a compilation whose calls are made again."""
    return _repeated


class RubyHost(RubyObjects, ScopeQuestions):
    """
    One environment's Ruby; its child is started when it is first needed, and again after it has ended.

    Args:
        libraries: returns the folders lib/ of the modules.
        note: is called with each of their files that Ruby read by itself, and a time before it did (nanoseconds of time.time).
        files: the files that functions and templates read by themselves.
        calls: records calls that may read something else.
        root: the environment's folder.
    """

    def __init__(
        self,
        program: RubyProgram,
        libraries: Callable[[], Sequence[str]],
        note: Callable[[str, int], object],
        files: CodeFiles,
        calls: RepeatedCalls,
        root: str,
    ) -> None:
        super().__init__()
        self.program = program
        self.libraries = libraries
        self.note = note
        self.calls = calls
        self.root = root
        self._child: RubyChild | None = None
        self._templates: dict[tuple[str | None, str], RenderedTemplate] = {}
        self._functions: dict[RubyCode, int] = {}
        self._loaded: set[int] = set()  # numbers of the templates and functions that the child has
        self._answers: deque[Any] = deque()  # of functions that the template has called before Ruby renders it
        self._asked_at = 0  # when the outermost of the running questions was asked
        self._compilation: Callable[[], Any] = _no_compilation  # the one that Ruby works for, weakly
        self._recordings: list[Recording] = []  # of the running calls, innermost last
        self._has_recorded_objects = False  # whether the compilation has objects of Ruby's from recorded calls
        self._results = BackendResults(files)
        self._reads: Reads = ()  # what the last answer says that Ruby has read
        self._changes: list[tuple[Any, Value]] = []  # and changed in place
        self._questions = 0  # that Ruby has asked, those for the content of data files apart

    def close(self) -> None:
        """End the child; the next question starts one."""
        if self._child is not None:
            self._child.end()

    # --- templates ---

    def erb(
        self,
        scope: Scope,
        text: str,
        name: str | None,
        file: str | None,
        answers: Sequence[Any] = (),
        impurity: tuple[str, int] | None = None,
    ) -> str:
        """
        Return the rendered text of a template.

        Args:
            name: None when the template is the text given to inline_template().
            answers: the results of the first functions that the template calls; they have been called already.
            impurity: inputs that it may read in addition to the scope's, and the line; None: none.

        Raises:
            EvaluationError: rendering failed; the message has the reference's words.
        """
        try:
            template, code = self._template(text, file), RubyCode("", text, file)
            self._load(scope, template.number, code)
            self._answers = deque(answers)
            variables = template.variables(scope)
            rendered = self._run(scope, code, impurity, template.number, variables)
            self._keep_changes(scope, variables)
        except RaisedInRuby as error:
            subject = f"The template {name}" if name is not None else "The text given to inline_template()"
            refuse_lacking(error, subject)
            if name is None:
                raise EvaluationError(f"Failed to parse inline template: {error.message}") from error
            raise EvaluationError(
                f"Failed to parse template {name}:\n  Filepath: {error.file or file}\n  Line: {error.line}\n  Detail: {error.message}\n"
            ) from error
        if not isinstance(rendered, str):
            raise EvaluationError(NONSENSE)
        return rendered

    def has_set(self, value: Any) -> bool:
        """Return whether Ruby has an object of its own for a value of a variable."""
        return id(value) in self._ruby_objects

    def _template(self, text: str, file: str | None) -> RenderedTemplate:
        template = self._templates.get((file, text))
        if template is None:
            if len(self._templates) >= MAX_TEMPLATES:
                self._loaded.difference_update(template.number for template in self._templates.values())
                self._templates.clear()
                self._live_child(None)
                self._ask(None, "forget_templates")
            self._numbers += 1
            template = self._templates[file, text] = RenderedTemplate(self._numbers, text)
        return template

    # --- functions ---

    def function(self, name: str, source: Source, impurity: tuple[str, int] | None = None) -> Function:
        """
        Return the function that a file defines.

        Args:
            impurity: inputs that it may read in addition to its arguments, and the line; None: none.

        Raises:
            EvaluationError: it defines none, or cannot be read.
        """
        code = RubyCode(name, source.text, source.file)
        number = self._number(code)

        def call(context: Context, index: int, args: Sequence[Value], block: Closure | None, *, is_legacy: bool = False) -> Value:
            scope: Any = context
            backend = BackendCall.of(number, index, args) if impurity is None else None
            try:
                self._load(scope, number, code)
                self._answers.clear()
                if backend is not None:
                    return self._call_backend(backend, scope, list(args))
                sent = [old_api_value(arg) for arg in args] if is_legacy else list(args)
                value: Value = self._run(scope, code, impurity, number, index, sent, block)
                self._keep_changes(scope, args, is_copied=is_legacy)
                return value
            except RaisedInRuby as error:
                refuse_lacking(error, f"The function '{name}'")
                raise EvaluationError(error.message, hint=f"Raised in Ruby: {error.location}") from error

        try:
            self._loaded.discard(number)
            definition = self._load(None, number, code)
        except RaisedInRuby as error:
            refuse_lacking(error, f"The function '{name}'")
            raise EvaluationError(f"Could not load the function '{name}': {error.message}", hint=f"It is at {error.location}") from error
        if not isinstance(definition, dict):
            raise EvaluationError(NONSENSE)
        if "arity" in definition:
            return LegacyFunction(
                name,
                definition["arity"],
                lambda context, *args: call(context, 0, args, None, is_legacy=True),
                statement=definition["statement"],
                pure=True,
            )
        function = RubyFunction(name, pure=True, aliases=definition["aliases"])

        def call_dispatch(index: int, method: str, context: Context, *args: Value, block: Closure | None = None) -> Value:
            value = call(context, index, args, block)
            return function.dispatches[index].signature(context.types).check_return(method, value)

        for index, dispatch in enumerate(definition["dispatches"]):
            function.dispatches.append(
                Dispatch(
                    dispatch["parameters"],
                    partial(call_dispatch, index, f"function '{dispatch['method']}'"),
                    dispatch.get("returns"),
                    mismatch=dispatch["mismatch"],
                    aliases=definition["aliases"],
                )
            )
        return function

    def _keep_changes(self, scope: Scope, given: Any, *, is_copied: bool = False) -> None:
        """
        Take over what a function or template has changed in place: what it was given, by its places, and values of variables.

        Args:
            is_copied: Manifests give copies, as they do to functions of the 3.x API; only templates see the change.
        """
        for place, after in self._changes:
            if isinstance(place, list):
                name, is_top = place
                before = self._on_variable(scope.global_scope() if is_top else scope, name)
            else:
                before = given[place]
            scope.compilation.changed[id(before)] = (before, after)
            if is_copied and not isinstance(place, list):
                continue
            own, now = self._ruby_objects.pop(id(before), None), scope.replace(before, after)
            if own is not None:
                self._ruby_objects[id(now)] = (now, own[1])

    def _call_backend(self, call: BackendCall, scope: Scope, args: list[Any]) -> Value:
        """Return the result of a pure back end: the last one for these arguments, unless it asked more than what files have."""
        known = self._results.find(call)
        names = self._results.names_ahead(call) if known is MISSING else ()
        if names:
            for name, is_found, result, reads in self._ask(scope, "call_each", *call.function, names, args[1:]):
                self._results.keep(call._replace(name=name), result if is_found else MISSING, reads)
            known = self._results.find(call)
        if known is not MISSING:
            return known
        asked, value = self._questions, MISSING
        try:
            value = self._ask(scope, "call", *call.function, args, None)
        except NotFoundInData:
            pass
        if self._questions == asked:
            self._results.keep(call, value, self._reads)
        if value is MISSING:
            raise NotFoundInData
        return value

    # --- code that may read something else ---

    def _run(self, scope: Scope, code: RubyCode, impurity: tuple[str, int] | None, number: int, *args: Any) -> Any:
        """
        Return the value of a function, or the text of a template.

        A call of code that may read something else is recorded, to be made again; if that is not possible the catalog is uncacheable.
        """
        data = dump_value([number, *args], self)
        self._watch_objects(scope, data)
        if impurity is None:
            return self._put(scope, code.op, data)
        is_wanted = self.calls.wants(code.subject) and not self._answers
        recording = Recording(code, data[1:], len(self._scopes) + 1, self.root, is_wanted=is_wanted)
        self._recordings.append(recording)
        try:
            return self._put(scope, code.op, data)
        finally:
            self._recordings.pop()
            self._has_recorded_objects |= recording.has_own
            call = recording.call()
            if call is None or not self.calls.add(call):
                scope.mark_uncacheable(impurity[0], Location(code.file, impurity[1]) if code.file is not None else None)

    def _watch_objects(self, scope: Scope | None, data: Any) -> None:
        """Mark the catalog as uncacheable when Ruby gets an object that it has made of something else: what is in it, nobody compares."""
        if self._has_recorded_objects and scope is not None and has_own(data):
            scope.mark_uncacheable("Ruby gets an object that it has made of something else than its input")

    def begin_repeats(self) -> None:
        """Prepare for calls that are made again, for one catalog."""
        self._compilation = _no_compilation

    def repeat(self, call: RubyCall) -> bytes:
        """Return the digest of the result that a call has now; b"" for none, or when Ruby asks something else meanwhile."""
        child = self._live_child(None)
        if self._compilation is not _repeated:
            self._begin(_repeated, wants_debug=False)
        replay = Replay(call, self.register, self.root)
        try:
            number, asked_at = self._number(call.code), time.time_ns()
            self._load(None, number, call.code)
            message = child.ask({"op": call.code.op, "args": [number, *replay.args]}, replay.answer)
            self._look_after(child, message, asked_at)
        except RaisedInRuby:
            return b""
        finally:
            self._registered.clear()
        return replay.result_of(message)

    # --- questions to Ruby ---

    def _number(self, code: RubyCode) -> int:
        """Return the number by which Ruby knows a function or template, or will know it."""
        if not code.name:
            return self._template(code.text, code.file).number
        number = self._functions.get(code)
        if number is None:
            self._numbers += 1
            number = self._functions[code] = self._numbers
        return number

    def _load(self, scope: Scope | None, number: int, code: RubyCode) -> Any:
        """Send a template or function to the child; return Ruby's answer, None when the child had it already."""
        child = self._live_child(scope)
        if number in self._loaded:
            return None
        op, *args = code.loading
        answer = self._ask(scope, op, number, *args)
        if child is self._child:
            self._loaded.add(number)
        return answer

    def _live_child(self, scope: Scope | None) -> RubyChild:
        """Return the child, started if there is none; it forgets the objects of an earlier compilation."""
        child = self._child
        if child is None or not child.alive:
            if self._scopes:
                raise EvaluationError("Ruby has ended while it was asked")
            child = self._child = self.program.start(HOST)
            self.note(self.program.settings.program, time.time_ns())  # another Ruby may give something else
            self._loaded = set()
            self._compilation = _no_compilation
            self._ask(scope, "setup", list(self.libraries()))
        self.program.mark_used(child)
        if scope is not None and scope.compilation is not self._compilation():
            self._begin(weakref.ref(scope.compilation), wants_debug=scope.compilation.log.wants_debug)
        return child

    def _begin(self, compilation: Callable[[], Any], *, wants_debug: bool) -> None:
        self._compilation, self._has_recorded_objects = compilation, False
        self._ruby_objects.clear()
        self._caches.clear()
        self._results.begin()
        self._ask(None, "begin", wants_debug)

    def _ask(self, scope: Scope | None, op: str, *args: Any) -> Any:
        """Return Ruby's answer; raise RaisedInRuby when it raises, or the error of this process that passed through it."""
        return self._put(scope, op, dump_value(list(args), self))

    def _put(self, scope: Scope | None, op: str, data: Any) -> Any:
        """Do the same with arguments in the form for Ruby."""
        child = self._child
        assert child is not None
        if not self._scopes:
            self._asked_at = time.time_ns()
        self._scopes.append(scope)
        try:
            message = child.ask({"op": op, "args": data}, partial(self._answer, child))
            self._look_after(child, message, self._asked_at)
            if (recording := self._recording()) is not None:
                recording.end(message)
            self._reads = message.get("reads", ())
            self._changes = [(place, load_value(data, self)) for place, data in message.get("changes", ())]
            if scope is not None and not self._results.are_true(self._reads):
                scope.compilation.mark_uncacheable("a file changed while it was read")
            if "value" in message:
                return load_value(message["value"], self)
            if "passing" in message:
                raise self._registered[message["passing"]] if message["passing"] != NOT_FOUND else NotFoundInData
            if "left" in message:
                raise LeftBlock
            report = message.get("error")
            if not isinstance(report, dict):
                raise EvaluationError(NONSENSE)
            if report.get("origin") in self._registered:
                raise self._registered[report["origin"]]
            raise RaisedInRuby(report)
        finally:
            self._scopes.pop()
            if not self._scopes:
                self._registered.clear()

    def _look_after(self, child: RubyChild, message: dict[str, Any], since: int) -> None:
        """End the child if it is of no use any more, and note the modules' files that it has read by itself."""
        if message.get("exhausted"):  # no descriptors or memory are left in it
            child.end()
        for path in message.get("libraries", ()):
            self.note(path, since)

    def _recording(self) -> Recording | None:
        """Return the recording of the question that Ruby is answering; None when it is not recorded."""
        last = self._recordings[-1] if self._recordings else None
        return last if last is not None and last.depth == len(self._scopes) else None

    def block(self, number: int, parameters: int, rest: bool) -> Closure:
        """Return a lambda that calls a Ruby block; `rest`: it takes any number of arguments beyond its `parameters`."""
        scope = self._scopes[-1]

        def call(*args: Value) -> Value:
            try:
                for recording in self._recordings:
                    recording.is_repeatable = False  # the block would not be run
                value: Value = self._ask(scope, "yield", number, list(args))
                return value
            except RaisedInRuby as error:
                raise EvaluationError(error.message, hint=f"Raised in Ruby: {error.location}") from error

        positional = [Parameter(f"arg{index}") for index in range(parameters)]
        return Closure(call, Signature([*positional, Parameter("args", splat=True)] if rest else positional))

    # --- questions of Ruby's ---

    def _answer(self, child: RubyChild, message: dict[str, Any]) -> dict[str, Any]:
        recording = self._recording()
        answer = self._found(child, message)
        if recording is not None:
            recording.note(message, answer)
        self._watch_objects(self._scopes[-1], answer)
        return answer

    def _found(self, child: RubyChild, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question of Ruby's. Errors pass through Ruby; an exception that ends a compile is raised."""
        scope: Scope | None = self._scopes[-1]
        self._questions += 1
        try:
            if scope is None:
                raise EvaluationError("A function asks for something while it is only defined", hint="It may when it is called.")
            args = load_value(message["args"], self)
            if message.get("top"):
                scope = scope.global_scope()
            method = getattr(self, f"_on_{message['ask'].rstrip('?')}", None)
            if method is None or not isinstance(args, list):
                raise EvaluationError("Ruby asked nonsense", hint=f"There is no {message['ask']}.")
            return {"value": dump_value(self._as_set(scope, method(scope, *args)), self)}
        except PuppetError as error:
            if not child.alive:
                raise
            return {"raised": self.register(error), "message": str(error)}
        except MemoryError:
            raise
        except Exception as error:
            if not child.alive:
                raise
            return {"passing": self.register(error)}

    def _as_set(self, scope: Scope, value: Value) -> Value:
        """Return the object that a translated template has set, if a value is one that it has set."""
        held = scope.compilation.template_values.get(id(value))
        return held[1] if held is not None and self.own_number(value) is None else value

    def _on_set(self, scope: Scope, name: str, number: int, value: Value) -> None:
        if self._answers:  # a translated template has set it
            self._answers.popleft()
            value = self._on_peek(scope, name)
            scope.compilation.template_values.pop(id(value), None)
        else:
            scope.set(name, value)
        if isinstance(value, list | dict):
            self._ruby_objects[id(value)] = (value, number)

    def _on_call(self, scope: Scope, name: str, args: list[Value], block: Closure | None) -> Value:
        """Return the function's result, and number and value of each argument that it has changed in place."""
        if self._answers:
            return [self._as_set(scope, self._answers.popleft()), []]
        value, changed = scope.call_function(name, args, block), scope.compilation.changed
        changes = [[index, changed[id(arg)][1]] for index, arg in enumerate(args) if id(arg) in changed]
        return [self._as_set(scope, value), changes]

    def _on_file_text(self, scope: Scope, context: Any, path: str, known: str | None) -> Value:
        """Return a file's digest, and its text unless that is the digest of the text that Ruby has."""
        self._questions -= 1
        digest, text = context.behind.file_text(path)
        self._results.note_data(path, digest)
        return [digest, None if digest == known else text]

    def _on_block(self, scope: Scope, number: int, args: list[Value]) -> Value:
        value: Value = self.registered(number)(*args)
        return value
