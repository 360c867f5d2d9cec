"""One lookup while it runs: whose variables it sees, what it has come through, who wants it explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError

from ..compiler.errors.locations import located
from ..compiler.host import DataContext
from ..compiler.values.core import Value
from .explaining import Explainer, silent
from .failures import BadUse, DataError
from .merging import MISSING, Merge

if TYPE_CHECKING:
    from .lookups import Lookups

__all__ = ["MAX_DEPTH", "Invocation"]

MAX_DEPTH = 200
"""Keys and expressions that a lookup may lead through."""

FIXED = frozenset(("facts", "trusted", "server_facts", "environment"))
"""Variables that stay the same for a whole compilation."""

CALLING = frozenset(("calling_class", "calling_class_path", "calling_module"))


class Invocation:
    """
    The state of one lookup.

    Attributes:
        stack: keys and expressions that are being looked up.
        top_key, module: the key that this is about, and the module that may have data for it.
        global_only: only the global layer is asked. hiera_call: one of the old hiera functions asks.
        extra_paths: levels that the caller of an old function puts before all others.
        overrides, defaults: values for variables, given to `lookup`.
        bound: names of mapped_paths with their values.
        old: variables are seen as version 3 does: '' is undef, and there are some more.
        reads: where reading of variables is noted while a hierarchy is resolved: name and value.
    """

    __slots__ = (
        "bound",
        "context",
        "defaults",
        "explainer",
        "extra_paths",
        "global_only",
        "hiera_call",
        "lookups",
        "module",
        "old",
        "overrides",
        "reads",
        "stack",
        "top_key",
    )

    def __init__(self, lookups: Lookups, context: DataContext, above: Invocation | None = None) -> None:
        self.lookups = lookups
        self.context = context
        self.explainer: Explainer | None = context.explainer if above is None else above.explainer
        self.global_only: bool = False
        self.hiera_call: bool = False
        self.extra_paths: Sequence[str] = ()
        self.old: bool = False
        self.stack: list[str] = [] if above is None else list(above.stack)
        if above is not None:
            self.global_only, self.hiera_call = above.global_only, above.hiera_call
            self.extra_paths, self.old = above.extra_paths, above.old
        self.overrides: Mapping[str, Value] = context.overrides
        self.defaults: Mapping[str, Value] = context.defaults
        self.bound: dict[str, Value] = {}
        self.reads: list[tuple[str, Value]] | None = None
        self.top_key = ""
        self.module: str | None = None

    def inner(self) -> Invocation:
        """The same, for a lookup that this one needs."""
        made = Invocation(self.lookups, self.context, self)
        made.overrides, made.defaults = self.overrides, self.defaults
        return made

    # --- explaining ---

    def within(self, kind: str, about: Any, detail: Any = None, module: str | None = None) -> AbstractContextManager[Any]:
        return silent() if self.explainer is None else self.explainer.within(kind, about, detail, module)

    def tell(self, event: str, key: Any = None, value: Value = None) -> None:
        if self.explainer is not None:
            self.explainer.tell(event, key, value)

    def over(self, merge: Merge, variants: Sequence[Any], find: Callable[[Any], Value]) -> Value:
        """What `find` gives for the variants, merged; MISSING when there is nothing."""
        if not variants:
            return MISSING
        if len(variants) == 1:
            value = find(variants[0])
            return value if value is MISSING else merge.single(value)
        if self.explainer is None or merge.first:
            return merge.over(variants, find)
        options = {key: value for key, value in merge.options.items() if key != "strategy"}
        with self.explainer.within("merge", merge.strategy, options):
            value = merge.over(variants, find)
            if value is not MISSING:
                self.explainer.tell("result", None, value)
            return value

    # --- what it needs ---

    @contextmanager
    def checked(self, name: str) -> Iterator[None]:
        """
        For as long as the block runs, `name` must not come up again.

        Errors that come out of the block are those of the data then.
        """
        if name in self.stack:
            raise DataError(f"Recursive lookup detected in [{', '.join(self.stack)}]")
        if len(self.stack) >= MAX_DEPTH:
            raise DataError(f"The lookup of '{name}' leads through more than {MAX_DEPTH} others")
        self.stack.append(name)
        try:
            yield
        except EvaluationError as error:
            if error.where is None and not isinstance(error, BadUse):
                raise located(error) from error
            raise
        finally:
            self.stack.pop()

    def hides(self, name: str) -> bool:
        """Whether a value given to this lookup may stand before the variable of that name."""
        return name in self.bound or name in self.overrides or name in self.defaults

    def variable(self, name: str) -> Value:
        """A variable by its name, undef when there is none."""
        if name in self.bound:
            return self.bound[name]
        if name in self.overrides:
            self.tell("found_in_overrides", name, self.overrides[name])
            return self.overrides[name]
        try:
            value = self.context.caller(name) if self.old and name in CALLING else self.context.variable(name)
        except EvaluationError as error:  # that it is undefined is told of the place that looks the data up
            raise BadUse(error.message, where=error.where, hint=error.hint) from error
        if self.old and value == "":
            value = None
        if self.reads is not None and name not in FIXED and (value is None or not name.startswith("::")):
            self.reads.append((name, value))
        if value is not None:
            self.tell("found", name, value)
        elif name in self.defaults:
            value = self.defaults[name]
            self.tell("found_in_defaults", name, value)
        return value

    def peek(self, name: str) -> Value:
        """A variable by its name; nobody is told when there is none."""
        value = self.context.caller(name) if self.old and name in CALLING else self.context.peek(name)
        return None if self.old and value == "" else value

    def sub_lookup(self, key: str) -> Value:
        """Another key, for `%{lookup('key')}`; '' when there is none."""
        if key in self.overrides:
            return self.overrides[key]
        inner = self.inner()
        if not inner.global_only:
            inner.old = False
        value = self.lookups.find(inner, key, None)
        if value is not MISSING:
            return value
        return self.defaults.get(key, "")
