"""One run's process of Ruby: questions to it, and its own about facts, settings and the catalog."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from shared.errors import PuppetError, ResourceError, Unsupported, WrappedError
from shared.models.catalog import Catalog
from shared.ral import Ref, Type
from shared.ral.attributes import Property
from shared.ral.metaparams import METAPARAMETERS
from shared.ruby import RubyChild, RubySettings
from shared.types.file import File

from ..state.runlog import RunLog
from .files import no_file
from .values import dump_value, load_value

PROGRAM = Path(__file__).with_name("program") / "program.rb"
NONSENSE = "Ruby answered nonsense"
FACTER_VERSION = "4.3.0"  # the version of Facter that modules see


@dataclass(frozen=True, slots=True)
class RunContext:
    """
    The questions about the run that modules' Ruby may ask.

    Attributes:
        fact: returns a fact's value by its name; None: there is none.
        find_out: returns the present value of a fact from its file in Ruby; blocks.
        facts: returns all.
        setting: returns a setting by its name; raises PuppetError for one that may not be read.
        file: returns the bytes of a file by its source; None: there is none.
    """

    fact: Callable[[str], Any]
    facts: Callable[[], Mapping[str, Any]]
    setting: Callable[[str, str], Any]
    find_out: Callable[[str, Path], Any]
    file: Callable[[str], bytes | None] = no_file


@dataclass(slots=True)
class RubyResource:
    """A resource as it was given to Ruby, so that a new process can be given it again."""

    number: int
    data: dict[str, Any]
    resource: Type | None = None
    provider: str = ""  # the name of the one that read it


@dataclass(slots=True)
class RubyReport:
    """
    An error that Ruby raised.

    Attributes:
        lacks: the missing part, which only Puppet's own Ruby has.
        wrapped: the log's text about the errors that it wraps.
    """

    message: str
    file: str = ""
    line: int = 0
    lacks: str = ""
    wrapped: str = ""

    @classmethod
    def of(cls, data: Any) -> RubyReport:
        if not isinstance(data, dict):
            return cls(NONSENSE)
        line = data.get("line")
        return cls(
            str(data.get("message") or ""),
            str(data.get("file") or ""),
            line if isinstance(line, int) else 0,
            str(data.get("lacks") or ""),
            str(data.get("wrapped") or ""),
        )

    def error(self, subject: str) -> ResourceError:
        """Return it as the error of a resource; `subject` is the code that uses a missing part."""
        place = f" ({self.file}:{self.line})" if self.file else ""
        if self.lacks:
            return ResourceError(
                f"{subject} uses {self.lacks}, which only Puppet's own Ruby has{place}",
                hint="docs/extending.md lists the classes that modules' Ruby can use.",
            )
        error = ResourceError(self.message)
        if self.wrapped:
            error.__cause__ = WrappedError(self.wrapped)
        return error


@dataclass(slots=True)
class RubyProcess:
    """
    One run's Ruby; its child is started when it is first needed, and again after it has died.

    Args:
        libraries: folders like a module's `lib`.
        types: the agent's own types, whose attributes Ruby may ask for.
        builtin_providers: the names of their providers that the agent has itself, by type.
        texts: whether values are texts of a command line, which types of the Resource API convert.
        stop: returns whether the run stops; Ruby is then ended, unless it answers soon or a program runs that it has started.
    """

    settings: RubySettings
    libraries: Sequence[Path]
    run: RunContext
    log: RunLog
    types: Mapping[str, type[Type]]
    environ: Mapping[str, str]
    catalog: Catalog | None = None
    builtin_providers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    texts: bool = False
    stop: Callable[[], bool] = lambda: False
    generation: int = 0  # grows with each child
    _child: RubyChild | None = None
    _closed: bool = False
    _caught: bool = False  # a signal that the event loop has not heard of yet
    _lock: Any = field(default_factory=threading.RLock)
    _resources: dict[int, RubyResource] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # --- questions

    async def asked(self, op: str, *args: Any, subject: str = "The module") -> Any:
        """Return Ruby's answer, while the event loop continues; see `ask`. When the caller is cancelled, Ruby is ended."""
        try:
            return await asyncio.to_thread(self.ask, op, *args, subject=subject)
        except asyncio.CancelledError:
            self.close()
            raise

    def ask(self, op: str, *args: Any, subject: str = "The module") -> Any:
        """
        Return Ruby's answer to an operation. Blocks.

        Raises:
            ResourceError: Ruby raised an error, or has ended or was ended because it took or answered too much.
        """
        with self._lock, self._noting_signals():
            child = self._live_child()
            message = self._exchange(child, {"op": op, "args": dump_value(list(args))})
            if message.get("exhausted"):  # no descriptors or memory are left in it
                child.end()
        if "value" in message:
            return load_value(message["value"])
        raise RubyReport.of(message.get("error")).error(subject)

    @contextmanager
    def _noting_signals(self) -> Iterator[None]:
        """Note the signals that an event loop handles, where it is held up by a question: it handles them afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        for stopping in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(stopping)
            if callable(handler) and handler is not signal.default_int_handler:
                handlers[stopping] = handler

        def note(number: int, frame: FrameType | None) -> None:
            self._caught = True
            handlers[number](number, frame)

        try:
            for number in handlers:
                signal.signal(number, note)
            yield
        finally:
            for number, before in handlers.items():
                signal.signal(number, before)
                signal.siginterrupt(number, False)  # as event loops have it
            self._caught = False

    def close(self) -> None:
        """End the process, and never start another one."""
        self._closed = True
        if self._child is not None:
            self._child.end()

    def _live_child(self) -> RubyChild:
        if self._child is not None and self._child.alive:
            return self._child
        if self._closed:
            raise ResourceError("Ruby is no longer asked, as the run is over")
        child = self._child = self._started()
        if self._closed:  # before there was a process to end
            child.end()
        self.generation += 1
        self._told(child, "setup", [str(path) for path in self.libraries], list(METAPARAMETERS), self.texts)
        known = [entry.data for entry in self._resources.values()]
        if known:
            self.log.notice("Ruby is started again")
            self._told(child, "make", known)
        return child

    def _started(self) -> RubyChild:
        try:
            return RubyChild(self.settings, PROGRAM, environ=self.environ, stop=lambda: self._caught or self.stop())
        except PuppetError as err:
            raise ResourceError(err.message, hint=err.hint) from err

    def _told(self, child: RubyChild, op: str, *args: Any) -> None:
        message = self._exchange(child, {"op": op, "args": dump_value(list(args))})
        if "value" not in message:
            raise RubyReport.of(message.get("error")).error("Ruby")

    def _exchange(self, child: RubyChild, question: dict[str, Any]) -> dict[str, Any]:
        """Return Ruby's answer to a question, after those that it asks before."""
        before = child.received

        def answer(message: dict[str, Any]) -> dict[str, Any]:
            if child.received - before > self.settings.answer:
                raise ResourceError(
                    f"Ruby logged and asked more than ruby_answer allows ({self.settings.answer} bytes)",
                    hint="Look for an endless loop in the module's Ruby code.",
                )
            return self._answer(message)

        try:
            return child.ask(question, answer)
        except PuppetError as err:
            raise ResourceError(err.message, hint=err.hint) from err

    # --- resources

    def number(self) -> int:
        """Return a number for a resource."""
        return next(self._numbers)

    def remember(self, number: int, data: dict[str, Any]) -> RubyResource:
        """Store a resource's data, for a process that is restarted."""
        entry = self._resources[number] = RubyResource(number, data)
        return entry

    def resource(self, number: int) -> RubyResource | None:
        """Return the resource that Ruby knows by this number; None when there is none."""
        return self._resources.get(number)

    def numbers(self) -> list[int]:
        """Return the numbers of all resources."""
        return list(self._resources)

    # --- Ruby's questions

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        args = load_value(message.get("args"))
        method = getattr(self, f"_on_{message['ask']}", None)
        if method is None or not isinstance(args, list):
            raise ResourceError(NONSENSE, hint=f"There is no {message['ask']}.")
        try:
            return {"value": dump_value(method(*args))}
        except PuppetError as err:
            return {"raised": 0, "message": str(err)}

    def _on_log(self, level: str, text: str, source: str) -> None:
        self.write(level, text, source)

    def write(self, level: str, text: str, source: str) -> None:
        """Log a line of Ruby's; `source`: a resource's number and perhaps an attribute, or another text, '' for Puppet."""
        number, _, attribute = source.partition(" ")
        entry = self._resources.get(int(number)) if number.isdecimal() else None
        if entry is not None and entry.resource is not None and entry.resource.surroundings is not None:
            entry.resource.log(level, text, attribute)
        elif entry is not None:
            ref = Ref(entry.data["type"], entry.data["title"])
            self.log.log(level, text, source=f"/{ref}" + (f"/{attribute}" if attribute else ""))
        else:
            self.log.log(level, text, source=source or "Puppet")

    def _on_broken_provider(self, type_name: str, name: str, error: Any) -> None:
        report = RubyReport.of(error).error(f"The provider {name} of {type_name}")
        self.log.err(f"Could not load the provider {name} of {type_name}: {report.message}")

    def _on_fact(self, name: str) -> Any:
        return self.run.fact(name)

    def _on_fact_now(self, name: str) -> Any:
        """Return the value that a fact of a module has now."""
        files = [folder / "facter" / f"{name}.rb" for folder in self.libraries]
        file = next((path for path in files if "/" not in name and path.is_file()), None)
        return self.run.fact(name) if file is None else self.run.find_out(name, file)

    def _on_facts(self) -> Any:
        return self.run.facts()

    def _on_setting(self, name: str, section: str = "") -> Any:
        return self.run.setting(name, section)

    def _on_file_content(self, source: str) -> bytes | None:
        return self.run.file(source)

    def _on_catalog_version(self) -> Any:
        return self.catalog.version if self.catalog is not None else None

    def _on_facter_version(self) -> str:
        return FACTER_VERSION

    def _on_new_id(self) -> int:
        return self.number()

    def _on_data_types(self, question: str, items: list[Any]) -> list[Any]:
        from . import datatypes

        return datatypes.answer(question, items)

    def _on_builtin_type(self, name: str) -> Any:
        declared = self.types.get(name)
        if declared is None:
            return None
        own = [attribute for attribute in declared.declaration.attributes.values() if not attribute.meta]
        return {
            "features": list(declared.declaration.features),
            "providers": sorted(self.builtin_providers.get(name, ())),
            "attributes": [
                {
                    "name": each.name,
                    "property": isinstance(each, Property),
                    "namevar": each.namevar,
                    "many": bool(each.many),
                    "boolean": each.kind is bool,
                    "values": [value.value for value in each.values if isinstance(value.value, str)],
                }
                for each in own
            ],
        }

    def _on_resource(self, type_name: str, title: str) -> Any:
        wanted = Ref(type_name, title)
        return next((found for found in self._on_resources() if Ref(found["type"], found["title"]) == wanted), None)

    def _on_assign(self, type_name: str, title: str, attribute: str, value: Any) -> None:
        """Set an attribute of another resource of the run, as a provider may before that resource is evaluated."""
        wanted = Ref(type_name, title)
        known = (entry.resource for entry in self._resources.values() if entry.resource is not None)
        live = next((found for found in (resource.find(wanted) for resource in known) if found is not None), None)
        if live is None or attribute not in live.declaration.attributes:
            raise ResourceError(f"{wanted} has no attribute {attribute} that could be set now")
        if isinstance(live, File) and attribute == "content" and isinstance(value, str):
            live.manage_content(value.encode("utf-8", "surrogateescape"))
        else:
            live.assign(attribute, value)

    def _on_resources(self) -> list[dict[str, Any]]:
        if self.catalog is None:
            return []
        return [
            {"type": str(each.type), "title": each.title, "parameters": _plain(each.parameters)}
            for each in self.catalog.resources
            if not each.virtual
        ]

    def _on_classes(self) -> Any:
        return list(self.catalog.classes) if self.catalog is not None else []


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's attributes without those whose values are rich data, which Ruby is not shown."""
    return {name: value for name, value in parameters.items() if not isinstance(value, dict) or "__ptype" not in value}


def refuse_setting(name: str) -> Unsupported:
    """Return the error for a setting that modules' Ruby may not read."""
    return Unsupported(f"The setting {name} cannot be read by modules", hint="docs/extending.md lists those that can.")
