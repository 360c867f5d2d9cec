"""The state of one lookup: its variables, the keys that led to it, and the options of its caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import Any

from language.errors.locations import locate_error
from language.host import DataContext, LookupArguments
from language.values.core import MISSING, MaybeValue, Value
from shared.errors import EvaluationError

from .errors import DataError, LookupUsageError
from .explanation import NO_EXPLAINER, Explainer
from .interpolation import fill_text, interpolate
from .keys import Segment, dig_one

# Far above real data, and below Python's recursion limit with the frames of each step.
MAX_DEPTH = 200
"""Keys and expressions that a lookup may lead through."""

CONSTANT_VARIABLES = frozenset(("facts", "trusted", "server_facts", "environment"))
"""Variables that stay the same for a whole compilation."""

CALLER_VARIABLES = frozenset(("calling_class", "calling_class_path", "calling_module"))

_VARIABLE_EVENTS = {"overrides": "found_in_overrides", "scope": "found", "defaults": "found_in_defaults"}

FindNested = Callable[["Invocation", str], MaybeValue]
"""Returns the value of another key for an invocation; MISSING when there is none."""


@dataclass(eq=False, repr=False, slots=True)
class Invocation:
    """
    The state of one lookup.

    Attributes:
        stack: the keys and expressions that are being looked up.
        top_key: the key that this lookup is about.
        module: the module that may have data for it.
        global_only: only the global layer is searched.
        hiera_call: one of the old hiera functions asks.
        extra_paths: levels that the caller of an old function puts before all others.
        arguments: the caller's arguments: values that hide variables and keys, and defaults for them.
        bound: the name that a mapped_paths entry binds, with its value.
        version_3: variables are seen as version 3 does: '' is undef, and there are some more.
        explainer: records the steps of the lookup.
        reads: names and values of the variables that were read, while a hierarchy is resolved; None at other times.
    """

    context: DataContext
    find_nested: FindNested
    arguments: LookupArguments
    above: InitVar[Invocation | None] = None
    global_only: bool = field(default=False, init=False)
    hiera_call: bool = field(default=False, init=False)
    extra_paths: Sequence[str] = field(default=(), init=False)
    version_3: bool = field(default=False, init=False)
    stack: list[str] = field(default_factory=list, init=False)
    bound: dict[str, Value] = field(default_factory=dict, init=False)
    reads: list[tuple[str, Value]] | None = field(default=None, init=False)
    top_key: str = field(default="", init=False)
    module: str | None = field(default=None, init=False)
    explainer: Explainer = field(default=NO_EXPLAINER, init=False)

    def __post_init__(self, above: Invocation | None) -> None:
        self.explainer = above.explainer if above is not None and above.explainer.is_asked else self.arguments.explainer or NO_EXPLAINER
        if above is not None:
            # A copy: two lookups from one value must not see each other's keys.
            self.stack = list(above.stack)
            self.global_only, self.hiera_call = above.global_only, above.hiera_call
            self.extra_paths, self.version_3 = above.extra_paths, above.version_3

    def inner(self) -> Invocation:
        """Return a copy for another lookup that this one needs."""
        return Invocation(self.context, self.find_nested, self.arguments, self)

    def inner_for_paths(self) -> Invocation:
        """Return a copy that resolves the paths of a hierarchy: it records the variables it reads, and explains nothing."""
        inner = self.inner()
        inner.explainer, inner.reads = NO_EXPLAINER, []
        return inner

    @contextmanager
    def guard(self, name: str) -> Iterator[None]:
        """
        Raise DataError when `name` is looked up again within the block.

        Errors that leave the block and have no location in a manifest get none later.
        """
        if name in self.stack:
            raise DataError(f"Recursive lookup detected in [{', '.join(self.stack)}]")
        if len(self.stack) >= MAX_DEPTH:
            raise DataError(f"The lookup of '{name}' leads through more than {MAX_DEPTH} others")
        self.stack.append(name)
        try:
            yield
        except EvaluationError as error:
            if error.where is None and not isinstance(error, LookupUsageError):
                raise locate_error(error) from error
            raise
        finally:
            self.stack.pop()

    # --- steps ---

    def explain(self, text: Callable[[], Any]) -> None:
        """Add what `text` returns to the explanation, if somebody asked for one."""
        if self.explainer.is_asked:
            self.explainer.add_text(str(text()))

    def dig(self, value: Value, segments: Sequence[Segment], key: str) -> MaybeValue:
        """Return what lies at a path in a value, MISSING when there is nothing. `key` is for messages."""
        explainer = self.explainer
        with explainer.within("sub_key", ".".join(map(str, segments))):
            for segment in segments:
                with explainer.within("segment", segment):
                    element = dig_one(value, segment, key)
                    if element is MISSING:
                        explainer.record("not_found", segment)
                        return MISSING
                    explainer.record("found", segment, element)
                value = element
        return value

    def interpolate(self, value: Value, *, methods: bool | None = True) -> Value:
        """Return a value with its expressions replaced; see `interpolation.interpolate`."""
        return interpolate(self, value, methods=methods)

    def interpolate_text(self, text: str, methods: bool | None) -> Value:
        with self.explainer.within("interpolate", text):
            return fill_text(self, text, methods)

    def variable_at(self, root: str, path: Sequence[Segment], name: str) -> Value:
        value = self.variable_for_path(root, path)
        if value is None or not path:
            return value
        part = self.dig(value, path, name)
        return None if part is MISSING else part

    def variable_for_path(self, root: str, path: Sequence[Segment]) -> Value:
        """
        Return the value of a variable into which `path` can be dug.

        Of `$facts` this is a hash of one fact only, so that it is known which facts a catalog depends on.
        """
        if self.explainer.is_asked or root != "facts" or not path or not isinstance(path[0], str) or self._hides("facts"):
            with self.explainer.within("scope", "Global Scope"):
                return self.variable(root)
        fact = self.context.fact(path[0])
        return {} if fact is None else {path[0]: fact}

    def variable(self, name: str) -> Value:
        """Return the value of a variable, None when there is none."""
        source, value = self.resolve_variable(name)
        if source in _VARIABLE_EVENTS:
            self.explainer.record(_VARIABLE_EVENTS[source], name, value)
        return value

    # --- variables and other keys ---

    def resolve_variable(self, name: str) -> tuple[str, Value]:
        """Return where a variable has its value from (bound, overrides, scope, defaults, or '') and the value, None when there is none."""
        if name in self.bound:
            return "bound", self.bound[name]
        if name in self.arguments.overrides:
            return "overrides", self.arguments.overrides[name]
        value = self._scope_variable(name)
        if value is not None:
            return "scope", value
        return ("defaults", self.arguments.defaults[name]) if name in self.arguments.defaults else ("", None)

    def _scope_variable(self, name: str) -> Value:
        """Return the value that the scope has for a variable, None when there is none; note that it was read."""
        try:
            value = self.context.caller(name) if self.version_3 and name in CALLER_VARIABLES else self.context.variable(name)
        except EvaluationError as error:  # "undefined" is reported at the location that looks the data up
            raise LookupUsageError(error.message, where=error.where, hint=error.hint) from error
        # Hiera 3 treats an empty variable like a missing one.
        if self.version_3 and value == "":
            value = None
        if self.reads is not None and name not in CONSTANT_VARIABLES and (value is None or not name.startswith("::")):
            self.reads.append((name, value))
        return value

    def peek(self, name: str) -> Value:
        """Return the value that the scope has for a variable, None when there is none; nothing is reported or noted."""
        value = self.context.caller(name) if self.version_3 and name in CALLER_VARIABLES else self.context.peek(name)
        return None if self.version_3 and value == "" else value

    def _hides(self, name: str) -> bool:
        """Return whether a value given to this lookup overrides the variable of that name."""
        return name in self.bound or name in self.arguments.overrides or name in self.arguments.defaults

    def sub_lookup(self, key: str) -> Value:
        """Return the value of another key, for `%{lookup('key')}`; '' when it has none."""
        if key in self.arguments.overrides:
            return self.arguments.overrides[key]
        inner = self.inner()
        # A nested lookup of a site with data of version 5 searches all layers.
        if not inner.global_only:
            inner.version_3 = False
        value = self.find_nested(inner, key)
        return self.arguments.defaults.get(key, "") if value is MISSING else value
