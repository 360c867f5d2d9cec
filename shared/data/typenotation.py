"""The notation of a type that a catalog has as data: `Integer[1, 5]` of `{"__ptype": "Pcore::IntegerType", "from": 1, "to": 5}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import BadData, Unsupported
from ..names import quoted_for_log

PREFIX = "Pcore::"
"""The beginning of each type's kind."""
MAX_DEPTH = 100  # levels of nesting
_UNITS = frozenset(("Timestamp", "Timespan", "SemVerRange", "SemVer", "URI"))

Data = Mapping[str, Any]


def type_notation(data: Data, *, aliases: bool = True) -> str:
    """
    Return the notation of a type.

    Args:
        aliases: true: write the name of an alias; false: write its target, which the reader knows in any case.
    Raises:
        BadData: it is not formed as its kind demands.
        Unsupported: a kind that has no notation here.
    """
    try:
        return _Notation(aliases).of(data)
    except (KeyError, TypeError, AttributeError, IndexError) as err:
        raise BadData(f"A type that is malformed: {quoted_for_log(str(data.get('__ptype')))}") from err


class _Notation:
    def __init__(self, aliases: bool) -> None:
        self.aliases = aliases
        self.depth = 0

    def of(self, data: Data) -> str:
        kind = str(data["__ptype"])
        name = kind.removeprefix(PREFIX).removesuffix("Type")
        if not kind.startswith(PREFIX) or not kind.endswith("Type") or not name.isalpha():
            raise Unsupported(f"The type {quoted_for_log(kind)} cannot be read", hint="Pass its name as a string in the manifest.")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise BadData(f"A type nested more than {MAX_DEPTH} levels deep")
        try:
            if name == "TypeAlias":
                return str(data["name"]) if self.aliases else self.of(data["resolved_type"])
            if name == "TypeReference":
                return str(data["type_string"])
            if name == "Object":
                return self._object(data)
            if name == "Resource" and "type_name" in data:
                return self._resource(data)
            if (value := _text_of(data)) is not None:
                return f"Enum[{_quoted(value)}]"
            arguments = _ARGUMENTS[name](self, data) if name in _ARGUMENTS else self._none(name, data)
            return f"{name}[{', '.join(arguments)}]" if arguments else name
        finally:
            self.depth -= 1

    def _none(self, name: str, data: Data) -> list[str]:
        if data.keys() != {"__ptype"}:
            raise Unsupported(f"The type {name} with parameters cannot be read", hint="Pass its name as a string in the manifest.")
        return []

    def all(self, types: Sequence[Data]) -> list[str]:
        return [self.of(each) for each in types]

    def value(self, value: Any) -> str:
        """Return a value that is an argument of a type."""
        if isinstance(value, Mapping):
            kind = value["__ptype"]
            if kind == "Regexp":
                return _pattern(value["__pvalue"])
            return _quoted(str(value["__pvalue"])) if kind in _UNITS else self.of(value)
        if value is None:
            return "default"
        return _quoted(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)

    def bounds(self, data: Data) -> list[str]:
        if data.get("to") is not None:
            return [self.value(data.get("from")), self.value(data["to"])]
        return [self.value(data["from"])] if data.get("from") is not None else []

    def size(self, data: Data) -> list[str]:
        return self.bounds(data["size_type"]) if data.get("size_type") else []

    def string(self, data: Data) -> list[str]:
        size = data.get("size_type_or_value")
        return self.bounds(size) if size else []

    def wrapped(self, data: Data) -> list[str]:
        inner = data.get("type")
        if not inner:
            return []
        value = _text_of(inner)
        return [self.of(inner) if value is None else _quoted(value)]

    def hash(self, data: Data) -> list[str]:
        types = [self.of(data[name]) for name in ("key_type", "value_type") if name in data]
        return [*types, *self.size(data)]

    def struct(self, data: Data) -> list[str]:
        members = [f"{self._key(each)} => {self.of(each['value_type'])}" for each in data.get("elements") or ()]
        return [f"{{{', '.join(members)}}}"] if members else []

    def _key(self, element: Data) -> str:
        """
        Return a member's name; one whose value may be undef is written `NotUndef[name]`, so that the member stays required.
        """
        key = _text_of(element["key_type"])
        if key is None:
            return self.of(element["key_type"])
        may_be_undef = element["value_type"]["__ptype"] in ("Pcore::OptionalType", "Pcore::AnyType", "Pcore::UndefType")
        return f"NotUndef[{_quoted(key)}]" if may_be_undef else _quoted(key)

    def callable(self, data: Data) -> list[str]:
        """Return parameters, block and result; a result follows a list of the others."""
        parameters = data.get("param_types")
        if parameters is None:
            return []
        types = [self.of(each) for each in parameters.get("types") or () if each != {"__ptype": "Pcore::UnitType"}]
        inner = [*types, *self.size(parameters)] or ["0", "0"]
        inner += [self.of(data["block_type"])] if data.get("block_type") else []
        return [f"[{', '.join(inner)}]", self.of(data["return_type"])] if data.get("return_type") else inner

    def _object(self, data: Data) -> str:
        """Return the name of a type with attributes of its own; the attributes have no notation here."""
        definition = data["_pcore_init_hash"]
        if definition and "name" not in definition:
            raise Unsupported("An Object type without a name cannot be read", hint="Pass its name as a string in the manifest.")
        return str(definition.get("name", "Object"))

    def _resource(self, data: Data) -> str:
        name = "::".join(part.capitalize() for part in str(data["type_name"]).split("::"))
        return name if data.get("title") is None else f"{name}[{_quoted(data['title'])}]"


def _text_of(data: Data) -> str | None:
    """Return the one text that a type of texts accepts; None: it is another type."""
    value = data.get("size_type_or_value")
    return value if isinstance(value, str) else None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _pattern(source: str) -> str:
    escaped = re.sub(r"(\\.)|/", lambda found: found[1] or "\\/", source, flags=re.DOTALL)
    return f"/{escaped}/"


_ARGUMENTS: Final[Mapping[str, Callable[[_Notation, Data], list[str]]]] = {
    **dict.fromkeys(("Integer", "Float", "Timespan", "Timestamp"), _Notation.bounds),
    **dict.fromkeys(("Optional", "NotUndef", "Type", "Sensitive", "Iterable", "Iterator"), _Notation.wrapped),
    "String": _Notation.string,
    "Enum": lambda at, data: [*map(_quoted, data.get("values") or ()), *(["true"] if data.get("case_insensitive") else [])],
    "Pattern": lambda at, data: [_pattern(each["pattern"]) for each in data.get("patterns") or ()],
    "Regexp": lambda at, data: [_pattern(data["pattern"])] if data.get("pattern") is not None else [],
    "Array": lambda at, data: [*([at.of(data["element_type"])] if "element_type" in data else []), *at.size(data)],
    "Hash": _Notation.hash,
    "Collection": _Notation.size,
    "Struct": _Notation.struct,
    "Tuple": lambda at, data: [*at.all(data.get("types") or ()), *at.size(data)],
    "Variant": lambda at, data: at.all(data.get("types") or ()),
    "Callable": _Notation.callable,
    "SemVer": lambda at, data: [at.value(each) for each in data.get("ranges") or ()],
    "Init": lambda at, data: [*([at.of(data["type"])] if data.get("type") else []), *map(at.value, data.get("init_args") or ())],
    "Class": lambda at, data: [_quoted(data["class_name"])] if data.get("class_name") is not None else [],
    "Runtime": lambda at, data: [at.value(data[name]) for name in ("runtime", "name_or_pattern") if data.get(name) is not None],
}
