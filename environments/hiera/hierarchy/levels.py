"""One level of a hierarchy for one node: an entry whose function is called at each of its locations."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from language.errors.locations import FINAL, locate_error
from language.functions.api import Function, RubyFunction
from language.host import NotFoundInData
from language.types.descriptions.describe import describe_mismatch, describe_wrong_type
from language.types.inference.infer import infer
from language.types.kinds.containers import HASH, HashType
from language.types.named.data import RICH_DATA, RICH_DATA_KEY
from language.values.core import MISSING, MaybeValue, Value
from shared.errors import EvaluationError, Location

from ..data.config import HierarchyEntry
from ..data.files import DataFile
from ..data.sources import DataSources
from ..errors import DataError, LookupUsageError
from ..invocation import Invocation
from ..keys import LookupKey
from .encrypted_values import decrypt_value
from .locations import DataLocation, extra_locations
from .lookup_context import BackendCache, LookupContext

BUILT_IN = ("yaml_data", "json_data", "hocon_data")
_RICH_DATA_HASH = HashType(RICH_DATA_KEY, RICH_DATA)


def _missing_path_message(function: str, kind: str) -> str:
    return (
        f"'{function}'{':' if kind == 'lookup_key' else ''} one of 'path', 'paths' 'glob', 'globs' or 'mapped_paths' "
        f"must be declared in hiera.yaml when using this {kind} function"
    )


class HierarchyLevel:
    """
    One entry with its locations.

    Attributes:
        module: whose data this is; None in the global layer and the environment.
        config_path: the hiera.yaml that has the entry.
        locations: `[None]` when the function is called once, without one.
        options: of the entry, with the expressions in them replaced.
        is_file: the level consists of data files that Hiera reads itself.
        digs: the function digs the path of the key itself.
    """

    def __init__(
        self,
        entry: HierarchyEntry,
        locations: list[DataLocation] | None,
        options: dict[str, Value],
        *,
        module: str | None,
        config_path: str | None,
        sources: DataSources,
    ) -> None:
        self.entry = entry
        self.module = module
        self.config_path = config_path
        self.sources = sources
        self.locations: list[DataLocation | None] = [None] if locations is None else list(locations)
        self.options = options
        self.is_file = entry.kind == "data_hash" and entry.function in BUILT_IN and locations is not None
        self.digs = entry.kind == "data_dig"
        self._function: Function | None = None
        self._returns_checked = False
        self._caches: dict[DataLocation | None, BackendCache] = {}
        self._hashes: dict[DataLocation | None, DataFile] = {}
        self._find: Callable[[Invocation, DataLocation | None, LookupKey], MaybeValue] = {
            "data_hash": self._find_in_hash,
            "v4_data_hash": self._find_in_hash,
            "lookup_key": self._find_by_key,
            "data_dig": self._find_by_digging,
            "hiera3_backend": self._find_in_ruby,
        }[entry.kind]

    @property
    def title(self) -> str:
        if self.entry.kind == "v4_data_hash":
            return f'Deprecated API function "{self.entry.function}"'
        return f'Hierarchy entry "{self.entry.name}"'

    @property
    def function_label(self) -> str:
        if self.entry.kind == "v4_data_hash":
            return f"deprecated API function '{self.entry.function}'"
        return f"{self.entry.kind} function '{self.entry.function}'"

    def label_at(self, location: DataLocation | None) -> str:
        """Return the function's label with the location, as used within a message."""
        return self.function_label if location is None else f"{self.function_label}, when using location '{location.text}',"

    def locations_for(self, invocation: Invocation) -> Sequence[DataLocation | None]:
        """Return the locations, with those that the caller of an old function passes first."""
        if not self.entry.version_3 or not invocation.extra_paths:
            return self.locations
        return [*extra_locations(self.entry, list(invocation.extra_paths), invocation, self.sources.data.files), *self.locations]

    def find_at(self, invocation: Invocation, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        """Return the value at one location; MISSING when there is none. If the level digs, it is that at the end of the key's path."""
        return self._find(invocation, location, key)

    # --- data_hash ---

    def _find_in_hash(self, invocation: Invocation, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        file = self.hash_at(invocation, location)
        if key.root not in file.data:
            return MISSING
        value, has_expressions = file.value(key.root, lambda: self.label_at(location))
        return invocation.interpolate(value) if has_expressions else value

    def hash_at(self, invocation: Invocation, location: DataLocation | None) -> DataFile:
        """Return all data of a location; keys that do not belong to the module are left out, with a warning."""
        file = self._hashes.get(location)
        if file is None:
            file = self._hashes[location] = self._read(invocation, location)
        return file

    def _read(self, invocation: Invocation, location: DataLocation | None) -> DataFile:
        function = self.entry.function
        if function in BUILT_IN and self.entry.kind == "data_hash":
            if location is None:
                raise LookupUsageError(_missing_path_message(function, "data_hash"))
            file = self.sources.data.read(function, location.text, invocation.context.warn)
            self._require_hash(file.data, location)
        else:
            args: list[Value] = (
                [] if self.entry.kind == "v4_data_hash" else [self._options(location), self._context(invocation, location).instance()]
            )
            file = DataFile(self._require_hash(self._call(invocation, args), location))
        if self.module is None:
            return file
        # A module must not set keys of other modules, which would let any module change the whole site.
        prefix = f"{self.module}::"
        foreign = [key for key in file.data if not (key == "lookup_options" or str(key).startswith(prefix))]
        # One warning for each key, without its name, as the reference logs them.
        for _ in foreign:
            subject = f"Value returned from {self.label_at(location)}"
            invocation.context.warn(f"Module '{self.module}': {subject} must use keys qualified with the name of the module")
        return DataFile({key: value for key, value in file.data.items() if key not in foreign}) if foreign else file

    def _require_hash(self, data: Value, location: DataLocation | None) -> dict[Any, Value]:
        """Return the data of a location; raise EvaluationError when they are not a hash."""
        if not isinstance(data, dict):
            raise EvaluationError(describe_wrong_type(f"Value returned from {self.label_at(location)}", HASH, data))
        return data

    # --- lookup_key ---

    def _find_by_key(self, invocation: Invocation, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        def find() -> Value:
            if self.entry.function != "eyaml_lookup_key":
                return self._call(invocation, [key.root, self._options(location), self._context(invocation, location).instance()])
            if location is None:
                raise LookupUsageError(_missing_path_message("eyaml_lookup_key", "lookup_key"))
            return decrypt_value(invocation, self.sources, key.root, self._options(location), self.function_label)

        return self._find_once(location, key.root, find)

    # --- data_dig ---

    def _find_by_digging(self, invocation: Invocation, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        def find() -> Value:
            context = self._context(invocation, location).instance()
            return self._call(invocation, [[key.root, *key.segments], self._options(location), context])

        return self._find_once(location, key.text, find)

    def _find_once(self, location: DataLocation | None, key: str, find: Callable[[], Value]) -> MaybeValue:
        """Return the result of `find` at the first lookup of the key in this location; MISSING when it raises NotFoundInData."""
        cache = self._cache(location)
        if key not in cache.results:
            try:
                value = find()
            except NotFoundInData:
                return MISSING
            cache.results[key] = self._check_value(value, f"Value for key '{key}', returned from {self.label_at(location)}")
        return cache.results[key]

    # --- hiera3_backend ---

    def _find_in_ruby(self, invocation: Invocation, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        backend = self.entry.function
        raise DataError(
            f"The backend '{backend}' is written in Ruby (hiera/backend/{backend.lower()}_backend.rb), which is not run here",
            where=Location(self.config_path),
            hint="Use yaml_data, json_data, hocon_data or eyaml_lookup_key, or write a lookup_key function in the Puppet language, "
            "in Python, or with Ruby's API of Puppet 4.",
        )

    # --- functions ---

    def _options(self, location: DataLocation | None) -> dict[str, Value]:
        return self.options if location is None else {**self.options, location.kind: location.text}

    def _cache(self, location: DataLocation | None) -> BackendCache:
        return self._caches.setdefault(location, BackendCache())

    def _context(self, invocation: Invocation, location: DataLocation | None) -> LookupContext:
        # With an explanation every step is asked of it, as what is explained lies here.
        in_ruby = isinstance(self._loaded_function(invocation), RubyFunction) and not invocation.explainer.is_asked
        return LookupContext(invocation, self.sources, self.module, self._cache(location), in_ruby=in_ruby)

    def _call(self, invocation: Invocation, args: list[Value]) -> Value:
        function = self._loaded_function(invocation)
        try:
            return function.call(invocation.context.scope, args)
        except EvaluationError as error:
            if error.where is None and not isinstance(error, DataError | LookupUsageError):
                error_with_location = locate_error(error)
                if error_with_location.where is FINAL:  # the call itself is wrong, nothing in the function
                    raise LookupUsageError(error.message, hint=error.hint) from error
                raise error_with_location from error
            raise

    def _loaded_function(self, invocation: Invocation) -> Function:
        if self._function is None:
            function = invocation.context.function(self.entry.function)
            if function is None:
                raise DataError(
                    f"Unable to find '{self.entry.kind}' function named '{self.entry.function}'",
                    where=Location(self.config_path),
                    hint=_hint_for(self.entry.function),
                )
            self._function = function
            self._returns_checked = self._declares_data(invocation, function)
        return self._function

    def _declares_data(self, invocation: Invocation, function: Function) -> bool:
        """Return whether all signatures declare to return data; raise EvaluationError when one declares something else."""
        data_type = _RICH_DATA_HASH if self.entry.kind == "data_hash" else RICH_DATA
        return_types = [signature.returns for signature in function.signatures(invocation.context.types)]
        for returns in return_types:
            if returns is not None and not data_type.accepts(returns, None):
                subject = f"Return type of '{self.entry.kind}' function named '{self.entry.function}'"
                text = describe_mismatch(subject, data_type, returns)
                raise EvaluationError(text.replace(f"{subject} ", f"{subject} is incorrect, ", 1))
        # With a declared return type the language has checked the value already.
        return bool(return_types) and all(returns is not None for returns in return_types)

    def _check_value(self, value: Value, subject: str) -> Value:
        """Return `value`; raise EvaluationError when it is not data."""
        if self._returns_checked or RICH_DATA.instance(value):
            return value
        raise EvaluationError(f"{subject} has wrong type, expects Puppet::LookupValue, got {infer(value)}")


def _hint_for(function: str) -> str:
    """Return the hint with the file in which a missing function would be."""
    module, colons, rest = function.partition("::")
    if not colons:
        return f"It would be in functions/{function}.pp of the environment."
    path = posixpath.join(*rest.split("::"))
    if module == "environment":
        return f"It would be in functions/environment/{path}.pp of the environment."
    return f"It would be in the module {module}: functions/{path}.pp, or lib/puppet/functions/{module}/{path}.py or .rb."
