"""
The declaration of a setting: a field of a class of settings, with its kind of value, default, documentation and limits.

The classes are not pydantic's: every command builds them, and with pydantic they were a fifth of an agent's run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ..errors import ConfigError

_INTEGER = re.compile(r"\s*([+-]?\d+(?:_\d+)*)(?:\.0+)?\s*", re.ASCII)
_LONGEST_INTEGER = 4300  # digits that Python reads


@dataclass(frozen=True, slots=True)
class ValueReader:
    """
    The part of a setting's type that reads its values: `Annotated[int, ValueReader(duration)]`.

    Attributes:
        read: Returns the value of a text, or of a value; ValueError for anything else.
        write: Returns a value as it is written down; None: as it is.
        texts_only: Whether only texts may be read.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None = None
    texts_only: bool = False


class SettingField:
    """
    One setting.

    Attributes:
        annotation: The type of its values, without its reader.
        description: Its purpose.
        limits: Of a number: `ge`, `gt`, `le`.
        secret: Whether it is a password or may hold one, which catalogs must not get: manifests see undef.
        undefined: Whether manifests see undef, not an empty text, when it is not set.
    """

    __slots__ = ("_read", "annotation", "default", "description", "limits", "secret", "undefined", "write")

    def __init__(self, default: Any, description: str, limits: Mapping[str, int], *, secret: bool, undefined: bool) -> None:
        self.default = default
        self.description = description
        self.limits = limits
        self.secret = secret
        self.undefined = undefined
        self.annotation: Any = None
        self.write: Callable[[Any], Any] | None = None
        self._read: Callable[[Any], Any] = _text

    def bind(self, annotation: Any) -> None:
        """Take over the type that the class declares."""
        reader = next((part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, ValueReader)), None)
        self.annotation = annotation if reader is None else annotation.__origin__
        if reader is None:
            self._read = _reader_of(annotation)
        else:
            self._read = _texts_only(reader.read) if reader.texts_only else reader.read
            self.write = reader.write

    def value(self, raw: Any) -> Any:
        """Return the value of a text, or of a value; ValueError when it is not one, or is beyond the limits."""
        value = self._read(raw)
        if self.limits:
            _check_limits(value, self.limits)
        return value


def setting(default: Any, *, doc: str, secret: bool = False, undefined: bool = False, **limits: int) -> Any:
    """Declare a setting: its default (text may name other settings as `$name`); the rest is that of a SettingField."""
    return SettingField(default, doc, limits, secret=secret, undefined=undefined)


class DeclaredSettings:
    """The base of all classes of settings: their fields, frozen values. Their methods have the names of a model's."""

    model_fields: Mapping[str, SettingField] = {}

    def __init_subclass__(cls) -> None:
        own = {name: field for name, field in cls.__dict__.items() if isinstance(field, SettingField)}
        for name, field in own.items():
            field.bind(cls.__annotations__[name])
        cls.model_fields = {**cls.model_fields, **own}

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the texts, with those that depend on others filled in; classes override it."""
        return values

    @classmethod
    def relate(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values, with those that depend on others; raise ValueError for contradictory ones. Classes override it."""
        return values

    @classmethod
    def model_validate(cls, texts: Mapping[str, Any]) -> Any:
        """Return the settings of these texts or values, which must have one for each field; raise InvalidSetting."""
        raw = cls.complete(dict(texts))
        if unknown := raw.keys() - cls.model_fields.keys():
            raise InvalidSetting(min(unknown), "Extra inputs are not permitted")
        values: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            try:
                values[name] = field.value(raw.get(name, field.default))
            except ValueError as err:
                raise InvalidSetting(name, str(err)) from err
        try:
            values = cls.relate(values)
        except ValueError as err:
            raise InvalidSetting("", str(err)) from err
        settings = cls.__new__(cls)
        settings.__dict__.update(values)
        return settings

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: settings are frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} cannot be removed: settings are frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.model_dump() == self.model_dump()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return a text without values, because some are passwords."""
        return f"<{type(self).__name__}>"

    def model_dump(self, *, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return the values by name; `json`: paths as texts and tuples as lists."""
        values = {}
        for name, field in type(self).model_fields.items():
            value = self.__dict__[name]
            value = value if field.write is None else field.write(value)
            values[name] = _plain(value) if mode == "json" else value
        return values

    def model_dump_json(self) -> str:
        """Return the values as JSON."""
        from ..data.plainjson import dumps  # few processes hand their settings on

        return dumps(self.model_dump(mode="json")).decode()


class InvalidSetting(ConfigError):
    """A value that its setting does not allow; `name` is '' when several contradict each other."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _reader_of(annotation: Any) -> Callable[[Any], Any]:
    if get_origin(annotation) is Literal:
        return _choice(get_args(annotation))
    if annotation not in _READERS:
        raise TypeError(f"No setting is read as {annotation}; give it a type of shared/settings/values.py, such as Flag")
    return _READERS[annotation]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Input should be a valid string")
    return value


def _texts_only(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: read(_text(value))


def _path(value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError("Input is not a valid path for <class 'pathlib.Path'>")
    return Path(value)


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        raise ValueError("Input should be a valid integer")
    match = _INTEGER.fullmatch(value)
    if match is None:
        raise ValueError("Input should be a valid integer, unable to parse string as an integer")
    if len(match[1]) > _LONGEST_INTEGER:
        raise ValueError("Unable to parse input string as an integer, exceeded maximum size")
    return int(match[1])


def _choice(choices: tuple[str, ...]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value not in choices:
            *first, last = [f"'{choice}'" for choice in choices]
            raise ValueError(f"Input should be {', '.join(first)} or {last}")
        return value

    return read


_READERS: Mapping[Any, Callable[[Any], Any]] = {str: _text, int: _integer, Path: _path}


def _check_limits(value: int, limits: Mapping[str, int]) -> None:
    if "gt" in limits and not value > limits["gt"]:
        raise ValueError(f"Input should be greater than {limits['gt']}")
    if "ge" in limits and not value >= limits["ge"]:
        raise ValueError(f"Input should be greater than or equal to {limits['ge']}")
    if "le" in limits and not value <= limits["le"]:
        raise ValueError(f"Input should be less than or equal to {limits['le']}")
