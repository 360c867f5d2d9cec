"""Data files (YAML, JSON and HOCON) as plain values, each read once for all compilations of an environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from language.types.inference.infer import infer
from language.values.core import Strictness, Value
from shared.data import hocon, plainjson, plainyaml
from shared.data.yamlscalars import STANDARD, Psych, utf8_of
from shared.errors import BadData, EvaluationError, octet_place

from ...files.code_files import CodeFiles, Signature
from ..errors import DataError

Warn = Callable[[str], None]
MAX_FILES = 50_000
"""Data files that are kept in memory."""
_SUFFIX = {"yaml_data": "yaml", "json_data": "json", "hocon_data": "hocon"}


class _ForeignText(str):
    """A text that the reference reads as something that is not data, such as a symbol; `kind` is its Ruby class."""

    kind: str

    def __new__(cls, text: str, kind: str) -> _ForeignText:
        instance = super().__new__(cls, text)
        instance.kind = kind
        return instance


class _HieraScalars(Psych):
    """YAML scalars as Hiera reads them: symbols differ from text, times are refused, and unknown tags are ignored."""

    def symbol(self, name: str) -> Any:
        return _ForeignText(name, "Symbol")

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


def parse_yaml(content: bytes) -> Any:
    """Return the value of a YAML text; raise BadData with the reference's message, except for messages of its parser."""
    try:
        return plainyaml.loads(content, aliases=True, first=True, scalars=_SCALARS)
    except plainyaml.YamlError as error:
        position = f" at line {error.line} column {error.column}" if error.line is not None else ""
        raise BadData(error.problem + position) from error


class DataFile:
    """The top-level keys of a file; a value is checked at its first use."""

    __slots__ = ("_has_expressions", "data")

    def __init__(self, data: dict[Any, Any]) -> None:
        self.data = data
        self._has_expressions: dict[str, bool] = {}  # of the values that were checked

    def value(self, key: str, where: Callable[[], str]) -> tuple[Value, bool]:
        """
        Return the raw value of a key that exists, and whether it has expressions to interpolate.

        Args:
            where: returns the label of the file, for the message.
        Raises:
            EvaluationError: the value is not data.
        """
        has_expressions = self._has_expressions.get(key)
        if has_expressions is None:
            try:
                self.data[key], has_expressions = _check_data(self.data[key])
            except _NoDataError:
                actual = _describe_type(self.data[key])
                text = f"Value for key '{key}', in hash returned from {where()} has wrong type, expects Puppet::LookupValue, got {actual}"
                raise EvaluationError(text) from None
            self._has_expressions[key] = has_expressions
        return self.data[key], has_expressions


class _NoDataError(Exception):
    """A value is not data."""


def _check_data(value: Any) -> tuple[Value, bool]:
    """Return a value as data, and whether it has expressions to interpolate; raise _NoDataError when it is not data."""
    kind = value.__class__
    if kind is str:
        return value, "%{" in value
    if kind is list:
        items = [_check_data(item) for item in value]
        return [item for item, _ in items], any(has_expressions for _, has_expressions in items)
    if kind is dict:
        pairs = {_check_key(key): _check_data(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, any(
            has_expressions or (key.__class__ is str and "%{" in key) for key, (_, has_expressions) in pairs.items()
        )
    if kind is _ForeignText or kind in (bytes, set):
        raise _NoDataError
    return value, False


def _check_key(key: Any) -> Any:
    """Return the key of a hash as data; raise _NoDataError when it is not."""
    if isinstance(key, _ForeignText) and key.kind == "Symbol":
        return str(key)
    if key is None or isinstance(key, bool | _ForeignText) or not isinstance(key, str | int | float):
        raise _NoDataError
    return key


def _describe_type(value: Any) -> str:
    """Return the type of a value that is not data."""
    return f"Runtime[ruby, '{value.kind}']" if isinstance(value, _ForeignText) else str(infer(value))


class DataFiles:
    """
    The parsed data files of one environment; a file that has changed is read again.

    They are not watched with the environment's other files: there may be one for each of thousands of nodes, and a change of one
    is not a reason to read manifests again.

    Args:
        strict: whether a YAML file that is not a hash is an error; otherwise it is a warning.
    """

    def __init__(self, files: CodeFiles, strict: Strictness) -> None:
        self.files = files
        self.strict = strict
        self._parsed: dict[tuple[str, str], tuple[Signature, bytes, DataFile]] = {}
        self._cached: dict[tuple[str, str], tuple[Signature, bytes, Value]] = {}

    def read(self, function: str, path: str, warn: Warn) -> DataFile:
        """
        Return the file at `path`, read as the function (yaml_data, json_data, hocon_data) does.

        Raises:
            DataError: it cannot be parsed, or is not a hash and `strict` is error.
            EvaluationError: it does not exist.
        """
        signature = self.files.signature(path)
        cached = self._parsed.get((function, path))
        if cached is None or cached[0] != signature:
            content = self._content(path)
            digest = hashlib.sha256(content).digest()
            # Another file with the same content, as after a deployment, is neither parsed nor warned of again.
            data = cached[2] if cached is not None and cached[1] == digest else DataFile(self._parse(function, path, content, warn))
            if len(self._parsed) > MAX_FILES:
                self._parsed.clear()
            cached = self._parsed[function, path] = (signature, digest, data)
        return cached[2]

    def cached(self, path: str, kind: str, convert: Callable[[str], Value]) -> Value:
        """
        Return the result of `convert` for the text of a file, cached under `kind` until the file changes.

        Raises:
            DataError: the file is not UTF-8.
        """
        signature = self.files.signature(path)
        cached = self._cached.get((path, kind))
        if cached is None or cached[0] != signature:
            content = self._content(path)
            digest = hashlib.sha256(content).digest()
            if cached is not None and cached[1] == digest:
                value = cached[2]
            else:
                try:
                    value = convert(content.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise DataError(f"{path} is not valid UTF-8: {error.reason} at octet {error.start}") from error
            if len(self._cached) > MAX_FILES:
                self._cached.clear()
            cached = self._cached[path, kind] = (signature, digest, value)
        return cached[2]

    def text(self, path: str) -> tuple[str, str]:
        """Return the text of a file, after its digest; raise DataError when it is not UTF-8."""
        text = self.cached(path, "text", lambda text: text)
        return self._cached[path, "text"][1].hex(), str(text)

    def _content(self, path: str) -> bytes:
        content = self.files.read(path)
        if content is None and self.files.is_folder(path):
            hint = "A level of files needs files; only the back ends of modules may take folders."
            raise EvaluationError(f"Is a directory @ io_fread - {path}", hint=hint)
        if content is None:
            raise EvaluationError(f"No such file or directory @ rb_sysopen - {path}", hint="The file was there when the levels were found.")
        return content

    def _parse(self, function: str, path: str, content: bytes, warn: Warn) -> dict[Any, Any]:
        kind = _SUFFIX[function]
        try:
            document = {"yaml": parse_yaml, "json": parse_json, "hocon": hocon.loads}[kind](content)
        except BadData as error:
            raise DataError(f"Unable to parse ({path}): {error.message}", hint=error.hint) from error
        if kind == "yaml" and not isinstance(document, dict):
            text = f"{path}: file does not contain a valid yaml hash"
            if self.strict is Strictness.ERROR and not (document is None and not content.strip()) and document is not False:
                raise DataError(text)
            warn(text)
            return {}
        if not isinstance(document, dict):
            return document  # type: ignore[no-any-return]  # the caller reports that it is no hash
        return {str(key) if isinstance(key, _ForeignText) and key.kind == "Symbol" else key: value for key, value in document.items()}


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text, of two equal keys the last; raise BadData when it is malformed."""
    plainjson.check_values(content)
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise BadData(octet_place(error)) from error
    except json.JSONDecodeError as error:
        raise BadData(f"{error.msg} at line {error.lineno} column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise BadData(f"it is nested too deep, or a number is too long: {type(error).__name__}") from error


def _refuse_constant(text: str) -> Any:
    raise BadData(f"{text} is not JSON")
