"""Types that modules declare in Ruby, as types of the resource layer: their values, comparisons and effects are asked of Ruby."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import new_class
from typing import Any, ClassVar, cast

from shared.errors import BadData, ResourceError
from shared.ral import ABSENT, Origin, Param, Property, Ref, TitlePatterns, Type, Value
from shared.ral.attributes import State

from .process import RubyProcess, RubyReport


class RubyParam(Param[Any]):
    """A parameter of a type in Ruby. Ruby has checked and converted its values."""

    ruby_patterns: Sequence[str] = ()

    @property
    def pattern_texts(self) -> Sequence[str]:
        return self.ruby_patterns

    def accept(self, resource: Any, raw: Any) -> Any:
        return raw


class RubyProperty(Property[Any]):
    """A property of a type in Ruby; its comparison and its messages are stored with the resource, because the provider requested them."""

    ruby_patterns: Sequence[str] = ()

    @property
    def pattern_texts(self) -> Sequence[str]:
        return self.ruby_patterns

    def accept(self, resource: Any, raw: Any) -> list[Any]:
        return raw if isinstance(raw, list) else [raw]

    def should(self, resource: Any, state: State, desired: list[Any]) -> Any:
        answer = resource.verdicts.get(self.name, {})
        return answer["should"] if "should" in answer else super().should(resource, state, desired)

    def is_text(self, resource: Any, value: Any) -> str:
        answer = resource.verdicts.get(self.name, {})
        known = "is_text" in answer and value == resource.state.get(self.name, ABSENT)
        return str(answer["is_text"]) if known else super().is_text(resource, value)

    def should_text(self, resource: Any, value: Any) -> str:
        answer = resource.verdicts.get(self.name, {})
        return str(answer["should_text"]) if "should_text" in answer else super().should_text(resource, value)

    def change_text(self, resource: Any, current: Any, desired: Any) -> str:
        done = resource.changes.get(self.name)
        return done if done is not None else super().change_text(resource, current, desired)

    def event_name(self, resource: Any, desired: Any) -> str:
        answer = resource.verdicts.get(self.name, {})
        return str(answer["event"]) if "event" in answer else super().event_name(resource, desired)


class RubyType(Type):
    """Base of all types in Ruby."""

    ruby: ClassVar[RubyProcess]
    own_titles: ClassVar[bool] = False  # it splits titles in a way of its own
    checked: ClassVar[bool] = False  # it has a check before the run
    _prepared: ClassVar[dict[tuple[str, int], tuple[int, Any]]]  # answers for resources that are made later

    def __init__(self, title: str, parameters: Mapping[str, Any], origin: Origin | None = None, *, ref: Ref | None = None) -> None:
        self.number = 0
        self.state: Mapping[str, Any] = {}  # as it was read
        self.present = False
        self.verdicts: dict[str, dict[str, Any]] = {}  # what comparing a property gave, until it or one before it is changed
        self.changes: dict[str, str] = {}  # messages of what was changed
        self._relations: Mapping[str, Sequence[str]] = {}
        super().__init__(title, parameters, origin, ref=ref)

    @classmethod
    def prepare(cls, resources: Sequence[tuple[str, Mapping[str, Any], Origin]]) -> None:
        wanted = [(id(parameters), cls._data(title, parameters, origin)) for title, parameters, origin in resources if not origin.pending]
        answers = cls.ruby.ask("make", [data for _, data in wanted], subject=f"The type {cls.declaration.name}")
        for key, data in wanted:
            cls._prepared[data["title"], key] = data["id"], answers.get(str(data["id"]))
            cls.ruby.remember(data["id"], data)

    @classmethod
    def adopt(cls, title: str, parameters: Mapping[str, Any], origin: Origin, number: int, answer: Any) -> Type:
        """Return a resource that Ruby has made already."""
        cls._prepared[title, id(parameters)] = number, answer
        data = cls._data(title, parameters, origin)
        cls.ruby.remember(number, {**data, "id": number})
        return cls(title, parameters, origin)

    @classmethod
    def _data(cls, title: str, parameters: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
        """Return the data of a resource for Ruby; metaparameters belong to the agent, except those that Ruby may request."""
        where = origin.where
        return {
            "id": cls.ruby.number(),
            "type": cls.declaration.name,
            "title": title,
            "parameters": {name: value for name, value in parameters.items() if value is not None},
            "sensitive": sorted(origin.sensitive),
            "purging": origin.purging,
            "file": where.file if where else None,
            "line": where.line if where else None,
            "tags": list(origin.tags),
        }

    # --- values

    def _assign_all(self, parameters: Mapping[str, Any]) -> None:
        for name, value in parameters.items():
            if self.is_sensitive(name):
                self.redaction.add(value)
            if value is None:
                raise ResourceError(f"Got nil value for {name}")
        for name, value in parameters.items():
            declared = self.declaration.attributes.get(name)
            if declared is not None and (declared.meta or name == "provider"):
                self.assign(name, value)
        self._given.update(parameters)
        if self.pending:
            self._late = dict(parameters)
            self._values.update({name: value for name, value in self.names_in(self.title).items() if name not in self._values})
            return
        self._make(parameters)

    def resolve_pending(self) -> None:
        late = {name: give() for name, give in self.pending.items()}
        secret = {name for name, (_, hidden) in late.items() if hidden}
        values = {name: value for name, (value, _) in late.items()}
        self.origin = replace(self.origin, sensitive=self.origin.sensitive | secret, pending={})
        self.pending = {}
        self._assign_all({**self._late, **values})

    def _make(self, parameters: Mapping[str, Any]) -> None:
        """Have Ruby make the resource, unless it did so with all others of the catalog, and take over its values."""
        number, answer = self._prepared.pop((self.title, id(parameters)), (0, None))
        if not number:
            data = self._data(self.title, parameters, self.origin)
            number = data["id"]
            answer = self.ruby.ask("make", [data], subject=f"The type {self.declaration.name}").get(str(number))
            self.ruby.remember(number, data)
        if not isinstance(answer, dict) or "error" in answer:
            raise RubyReport.of((answer or {}).get("error")).error(f"The type {self.declaration.name}")
        self.number = number
        entry = self.ruby.resource(number)
        if entry is not None:
            entry.resource = self
        self._relations = answer["relations"]
        for name, value in answer["values"].items():
            declared = self.declaration.attributes.get(name)
            if declared is None or declared.meta or name == "provider" or value is None:
                continue
            self._values[name] = declared.accept(self, value)
            if self.is_sensitive(name):
                self.redaction.add(_without_markers(value))

    @classmethod
    def title_patterns(cls) -> TitlePatterns:
        return [(r"(.*)", [cls.declaration.namevars[0]])]

    @classmethod
    def names_in(cls, title: str) -> dict[str, Any]:
        if not cls.own_titles:
            return super().names_in(title)
        names = cls.ruby.ask("names_in", cls.declaration.name, title, subject=f"The type {cls.declaration.name}")
        return {name: value for name, value in names.items() if value is not None}

    # --- relationships and checks

    def pre_run_check(self) -> None:
        if self.checked:
            self.ruby.ask("pre_run_check", self.number, subject=f"The type {self.declaration.name}")

    def autorequire(self) -> Iterator[Ref]:
        return self._related("require")

    def autobefore(self) -> Iterator[Ref]:
        return self._related("before")

    def autosubscribe(self) -> Iterator[Ref]:
        return self._related("subscribe")

    def autonotify(self) -> Iterator[Ref]:
        return self._related("notify")

    def _related(self, kind: str) -> Iterator[Ref]:
        for text in self._relations.get(kind, ()):
            try:
                yield Ref.parse(text)
            except BadData:
                continue  # a block that names nothing, as for an attribute without a value

    def exists_in(self, state: Mapping[str, Any]) -> bool:
        return self.present if self.state else super().exists_in(state)


_MARKER = "Sensitive [value redacted]"  # stands for a secret that Ruby keeps wrapped


def _without_markers(value: Any) -> Any:
    """Return a value without the redaction marks of secrets, so that lines of the log may show it."""
    if isinstance(value, Mapping):
        return {key: _without_markers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_markers(item) for item in value]
    return None if value == _MARKER else value


def declared_type(ruby: RubyProcess, name: str, data: Mapping[str, Any]) -> type[RubyType]:
    """Return a type from Ruby's description of its declaration."""
    members: dict[str, Any] = {"__doc__": data["doc"], "__module__": __name__, "ruby": ruby, "_prepared": {}}
    members |= {"own_titles": bool(data["titles"]), "checked": bool(data["checked"])}
    for attribute in data["attributes"]:
        if attribute["name"] != "provider":
            members[_member(attribute["name"])] = _attribute(attribute)
    keywords = {
        "name": name,
        "features": data["features"],
        "isomorphic": data["isomorphic"],
        "refreshable": data["refreshable"],
        "self_refresh": data["self_refresh"],
        "apply_to": data["apply_to"],
        "ensure_retrieved": data["ensure_retrieved"],
        "providers": any(attribute["name"] == "provider" for attribute in data["attributes"]),
    }
    return cast("type[RubyType]", new_class(f"Ruby_{name}", (RubyType,), keywords, lambda body: body.update(members)))


def _member(name: str) -> str:
    """Return the name of a class's member for an attribute; one that would hide a part of Type gets an underscore."""
    return f"{name}_" if hasattr(RubyType, name) or name in _OWN else name


_OWN = frozenset(("title", "origin", "ref", "surroundings", "handler", "fault", "declaration", "pending", "number", "state", "present"))


def _attribute(data: Mapping[str, Any]) -> Param[Any]:
    values = [Value(each["name"], tuple(each["aliases"]), "", tuple(each["requires"]), each["invalidates"]) for each in data["values"]]
    requires = tuple(data["requires"])
    if data["property"]:
        made = RubyProperty(object, many=data["many"], idempotent=data["idempotent"], doc=data["doc"], values=values, requires=requires)
        made.namevar, made.ruby_patterns = data["namevar"], data["patterns"]
        return made
    param = RubyParam(object, namevar=data["namevar"], doc=data["doc"], values=values, requires=requires)
    param.ruby_patterns = data["patterns"]
    return param
