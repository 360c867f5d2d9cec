"""Files of data as plain values: YAML, JSON and HOCON, each read once for all compilations of an environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from shared.data import hocon, plainyaml
from shared.data.yamlscalars import STANDARD, Psych, utf8_of
from shared.errors import BadData, EvaluationError

from ..compiler.types.infer import infer
from ..compiler.values.core import Strictness, Value
from ..files.code_files import CodeFiles
from .failures import DataError

__all__ = ["DataFile", "DataFiles", "yaml_text"]

Warn = Callable[[str], None]
Signature = tuple[int, ...] | None
MAX_FILES = 50_000
"""Data files that are kept in memory."""
_SUFFIX = {"yaml_data": "yaml", "json_data": "json", "hocon_data": "hocon"}


class _Foreign(str):
    """A text that the reference reads as something that is no data: a symbol."""

    kind: str

    def __new__(cls, text: str, kind: str) -> _Foreign:
        made = super().__new__(cls, text)
        made.kind = kind
        return made


class _HieraScalars(Psych):
    """YAML as Hiera reads it: symbols are told from text, times are refused, and a tag that nobody knows is as none."""

    def symbol(self, name: str) -> Any:
        return _Foreign(name, "Symbol")

    def moment(self, text: str, moment: datetime | None) -> Any:
        raise BadData("Tried to load unspecified class: Time")

    def day(self, text: str, day: date | None) -> Any:
        raise BadData("Tried to load unspecified class: Date")

    def binary(self, text: str) -> str:
        return utf8_of(text)

    def tagged(self, tag: str, text: str) -> Any:
        return super().tagged(tag, text) if tag.startswith(("!ruby/", STANDARD)) else self.plain(text)

    def collection(self, tag: str, value: Any) -> Any:
        return super().collection(tag, value) if tag.startswith(("!ruby/", STANDARD)) else value

    def ruby(self, tag: str, value: Any) -> Any:
        kind, _, name = tag.removeprefix("!ruby/").partition(":")
        if kind in ("sym", "symbol") and isinstance(value, str):
            return self.symbol(value)
        raise BadData(f"Tried to load unspecified class: {name or kind.capitalize()}")


_SCALARS = _HieraScalars()


def yaml_text(content: bytes) -> Any:
    """The value of a YAML text. BadData in the words of the reference, but for what only its parser says."""
    try:
        return plainyaml.loads(content, aliases=True, first=True, scalars=_SCALARS)
    except plainyaml.YamlError as error:
        place = f" at line {error.line} column {error.column}" if error.line is not None else ""
        raise BadData(error.problem + place) from error


class DataFile:
    """The top-level keys of a file; a value is looked at when it is first asked for."""

    __slots__ = ("_known", "data")

    def __init__(self, data: dict[Any, Any]) -> None:
        self.data = data
        self._known: dict[str, bool] = {}

    def value(self, key: str, where: Callable[[], str]) -> tuple[Value, bool]:
        """
        The raw value of a key that is there, and whether there is something to interpolate in it.

        `where` names the file in the EvaluationError for a value that is no data.
        """
        known = self._known.get(key)
        if known is None:
            try:
                self.data[key], known = checked(self.data[key])
            except _NoDataError:
                actual = described(self.data[key])
                text = f"Value for key '{key}', in hash returned from {where()} has wrong type, expects Puppet::LookupValue, got {actual}"
                raise EvaluationError(text) from None
            self._known[key] = known
        return self.data[key], known


class _NoDataError(Exception):
    """A value that cannot be data."""


def checked(value: Any) -> tuple[Value, bool]:
    """A value as data, and whether there is something to interpolate in it; _NoDataError when it is none."""
    kind = value.__class__
    if kind is str:
        return value, "%{" in value
    if kind is list:
        found = [checked(item) for item in value]
        return [item for item, _ in found], any(marked for _, marked in found)
    if kind is dict:
        pairs = {_key(key): checked(item) for key, item in value.items()}
        marked = any(marked or (key.__class__ is str and "%{" in key) for key, (_, marked) in pairs.items())
        return {key: item for key, (item, _) in pairs.items()}, marked
    if kind is _Foreign or kind in (bytes, set):
        raise _NoDataError
    return value, False


def _key(key: Any) -> Any:
    if isinstance(key, _Foreign) and key.kind == "Symbol":
        return str(key)
    if key is None or isinstance(key, bool | _Foreign) or not isinstance(key, str | int | float):
        raise _NoDataError
    return key


def described(value: Any) -> str:
    """The type of what is no data."""
    return f"Runtime[ruby, '{value.kind}']" if isinstance(value, _Foreign) else str(infer(value))


class DataFiles:
    """
    What was read of the data files of one environment; a file that has changed is read again.

    They are not watched with the environment's other files: there may be one for each of thousands of nodes, and a change of one
    is no reason to read manifests again.

    A file that is not a hash is told to `warn` when it is read, or is an error where `strict` says so.
    """

    def __init__(self, files: CodeFiles, strict: Strictness) -> None:
        self.files = files
        self.strict = strict
        self._read: dict[tuple[str, str], tuple[Signature, DataFile]] = {}
        self._made: dict[tuple[str, str], tuple[Signature, Value]] = {}

    def read(self, function: str, path: str, warn: Warn) -> DataFile:
        """
        The file at `path`, read as the function (yaml_data, json_data, hocon_data) does.

        Raises:
            DataError: it cannot be parsed. EvaluationError: it is gone, or it is no hash.
        """
        signature = self.files.signature(path)
        found = self._read.get((function, path))
        if found is None or found[0] != signature:
            if len(self._read) > MAX_FILES:
                self._read.clear()
            found = self._read[function, path] = (signature, DataFile(self._parsed(function, path, warn)))
        return found[1]

    def made(self, path: str, what: str, make: Callable[[str], Value]) -> Value:
        """What a function makes of the content of a file, made once until it changes; `what` tells several such from each other."""
        signature = self.files.signature(path)
        found = self._made.get((path, what))
        if found is None or found[0] != signature:
            try:
                text = self._content(path).decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{path} is not valid UTF-8: {error.reason} at octet {error.start}") from error
            if len(self._made) > MAX_FILES:
                self._made.clear()
            found = self._made[path, what] = (signature, make(text))
        return found[1]

    def _content(self, path: str) -> bytes:
        content = self.files.read(path)
        if content is None:
            raise EvaluationError(f"No such file or directory @ rb_sysopen - {path}", hint="The file was there when the levels were found.")
        return content

    def _parsed(self, function: str, path: str, warn: Warn) -> dict[Any, Any]:
        kind = _SUFFIX[function]
        content = self._content(path)
        try:
            read = {"yaml": yaml_text, "json": json_text, "hocon": hocon.loads}[kind](content)
        except BadData as error:
            raise DataError(f"Unable to parse ({path}): {error.message}", hint=error.hint) from error
        if kind == "yaml" and not isinstance(read, dict):
            text = f"{path}: file does not contain a valid yaml hash"
            if self.strict is Strictness.ERROR and not (read is None and not content.strip()) and read is not False:
                raise DataError(text)
            warn(text)
            return {}
        if not isinstance(read, dict):
            return read  # type: ignore[no-any-return]  # whoever asked says that it is no hash
        return {str(key) if isinstance(key, _Foreign) and key.kind == "Symbol" else key: value for key, value in read.items()}


def json_text(content: bytes) -> Any:
    """The value of a JSON text; of two equal keys the last counts. BadData when it is none."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise BadData(f"octet {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadData(f"{error.msg} at line {error.lineno} column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise BadData(f"it is nested too deep, or a number is too long: {type(error).__name__}") from error


def _constant(text: str) -> Any:
    raise BadData(f"{text} is not JSON")
