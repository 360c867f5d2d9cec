"""Files of data as plain values: YAML, JSON and HOCON, each read once for all compilations of an environment."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from shared import hocon, plainyaml
from shared.errors import BadData, EvaluationError

from ..compiler.types.infer import infer
from ..compiler.values import Strictness, Value
from ..environment_files import Files
from .failures import DataError

__all__ = ["DataFile", "DataFiles", "yaml_text"]

Warn = Callable[[str], None]
Signature = tuple[int, ...] | None
MAX_FILES = 50_000
"""Data files that are kept in memory."""
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_SUFFIX = {"yaml_data": "yaml", "json_data": "json", "hocon_data": "hocon"}


class _Foreign(str):
    """A text that the reference reads as something that is no data: a symbol, a time."""

    kind: str

    def __new__(cls, text: str, kind: str) -> _Foreign:
        made = super().__new__(cls, text)
        made.kind = kind
        return made


class _DataLoader(plainyaml.PlainLoader):  # type: ignore[misc]
    """YAML as Hiera reads it: symbols and times are told from text."""


def _scalar(loader: Any, node: yaml.ScalarNode) -> str:
    text: str = loader.construct_scalar(node)
    if not node.style and text[:1] == ":" and len(text) > 1:
        return _Foreign(text[1:], "Symbol")
    return text


def _time(loader: Any, node: yaml.ScalarNode) -> str:
    text: str = loader.construct_scalar(node)
    if _DATE.fullmatch(text):
        raise BadData("Tried to load unspecified class: Date")
    return _Foreign(text, "Time")


def _tagged(loader: Any, suffix: str, node: yaml.Node) -> Any:
    kind, _, name = suffix.partition(":")
    if kind in ("sym", "symbol") and isinstance(node, yaml.ScalarNode):
        return _Foreign(loader.construct_scalar(node), "Symbol")
    raise BadData(f"Tried to load unspecified class: {name or kind.capitalize()}")


def _binary(loader: Any, node: yaml.ScalarNode) -> str:
    """`!!binary` is a text, as in Ruby."""
    try:
        return base64.b64decode(loader.construct_scalar(node)).decode("utf-8")
    except ValueError as error:
        raise BadData(f"!!binary at line {node.start_mark.line + 1} is not the base64 of UTF-8") from error


_DataLoader.add_constructor("tag:yaml.org,2002:str", _scalar)
_DataLoader.add_constructor("tag:yaml.org,2002:binary", _binary)
_DataLoader.add_constructor("tag:yaml.org,2002:timestamp", _time)
_DataLoader.add_multi_constructor("!ruby/", _tagged)


def yaml_text(content: bytes) -> Any:
    """The value of a YAML text. BadData in the words of the reference, but for what only its parser says."""
    try:
        return plainyaml.loads(plainyaml.first_document(content), aliases=True, loader=_DataLoader)
    except BadData as error:
        cause = error.__cause__
        if not isinstance(cause, yaml.MarkedYAMLError):
            raise
        mark = cause.problem_mark or cause.context_mark
        text = " ".join(str(part) for part in (cause.problem, cause.context) if part)
        place = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise BadData(text + place) from error


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

    def __init__(self, files: Files, strict: Strictness) -> None:
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
