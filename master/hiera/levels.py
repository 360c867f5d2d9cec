"""A level of a hierarchy at work, for one node: its function is asked at each of its locations."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import BadData, EvaluationError, Unsupported
from shared.errors import Location as Place

from ..compiler.errors.locations import FINAL, located
from ..compiler.functions.api import Function
from ..compiler.host import NotFoundInData
from ..compiler.types.builtin import RICH_DATA, RICH_DATA_KEY
from ..compiler.types.containers import HASH, HashType
from ..compiler.types.descriptions.describe import describe_mismatch, describe_wrong_type
from ..compiler.types.infer import infer
from ..compiler.values.core import Value, key_of
from .config import Entry
from .contexts import Cache, LookupContext
from .datafiles import DataFile
from .eyaml import decrypted
from .failures import BadUse, DataError
from .interpolation import Key, interpolated
from .invocations import Invocation
from .locations import Location, extra_locations
from .merging import MISSING, Merge

if TYPE_CHECKING:
    from .providers import Provider

__all__ = ["BUILT_IN", "Level", "decrypted_value", "without_path"]

BUILT_IN = ("yaml_data", "json_data", "hocon_data")
_TRUSTED = HashType(RICH_DATA_KEY, RICH_DATA)


def without_path(function: str, kind: str) -> str:
    """The complaint about a function that was given no file."""
    return (
        f"'{function}'{':' if kind == 'lookup_key' else ''} one of 'path', 'paths' 'glob', 'globs' or 'mapped_paths' "
        f"must be declared in hiera.yaml when using this {kind} function"
    )


class Level:
    """
    One entry with its locations.

    Attributes:
        locations: None when the function is asked once, without one.
        options: as they are given to the function.
    """

    def __init__(self, entry: Entry, provider: Provider, locations: list[Location] | None, options: dict[str, Value]) -> None:
        self.entry = entry
        self.provider = provider
        self.locations: list[Location | None] = [None] if locations is None else list(locations)
        self.options = options
        self.title = f'Hierarchy entry "{entry.name}"'
        if entry.kind == "v4_data_hash":
            self.title = f'Deprecated API function "{entry.function}"'
        self.is_file = entry.kind == "data_hash" and entry.function in BUILT_IN and locations is not None
        self._function: Function | None = None
        self._validated = False
        self._caches: dict[Location | None, Cache] = {}
        self._hashes: dict[Location | None, DataFile] = {}
        self._find: Callable[[Invocation, Location | None, Key], Value] = {
            "data_hash": self._in_hash,
            "v4_data_hash": self._in_hash,
            "lookup_key": self._by_key,
            "data_dig": self._by_digging,
            "hiera3_backend": self._in_ruby,
        }[entry.kind]

    def find(self, invocation: Invocation, key: Key, merge: Merge) -> Value:
        """The value of a key at this level; MISSING when there is none."""
        locations = self.locations
        if self.entry.site and invocation.extra_paths:
            files = invocation.lookups.sources.data.files
            extra = extra_locations(self.entry, list(invocation.extra_paths), invocation, files)
            locations = [*extra, *locations]
        with invocation.within("data_provider", self.title):
            return invocation.over(merge, locations, lambda location: self._at(invocation, location, key))

    def _at(self, invocation: Invocation, location: Location | None, key: Key) -> Value:
        if location is None:
            return self._find(invocation, None, key)
        with invocation.within(location.kind, location.text, location.original):
            if not location.exists:
                invocation.tell("location_not_found")
                return MISSING
            return self._find(invocation, location, key)

    # --- data_hash ---

    def _in_hash(self, invocation: Invocation, location: Location | None, key: Key) -> Value:
        file = self.hash_at(invocation, location)
        if key.root not in file.data:
            invocation.tell("not_found", key.root)
            return MISSING
        value, marked = file.value(key.root, lambda: f"{self.name}{self.at(location)}")
        if marked:
            value = interpolated(invocation, value)
        invocation.tell("found", key.root, value)
        return value

    def hash_at(self, invocation: Invocation, location: Location | None) -> DataFile:
        """All that a location has; what does not belong to the module is left out, with a warning."""
        found = self._hashes.get(location)
        if found is None:
            found = self._hashes[location] = self._read(invocation, location)
        return found

    def _read(self, invocation: Invocation, location: Location | None) -> DataFile:
        function = self.entry.function
        if function in BUILT_IN and self.entry.kind == "data_hash":
            if location is None:
                raise BadUse(without_path(function, "data_hash"))
            file = invocation.lookups.sources.data.read(function, location.text, invocation.context.warn)
        else:
            context = [] if self.entry.kind == "v4_data_hash" else [self._options(location), self._context(invocation, location).instance()]
            file = DataFile(self._call(invocation, context))
        if not isinstance(file.data, dict):
            raise EvaluationError(describe_wrong_type(f"Value returned from {self.name}{self.at(location)}", HASH, file.data))
        module = self.provider.module
        if module is None:
            return file
        prefix = f"{module}::"
        foreign = [key for key in file.data if not (key == "lookup_options" or str(key).startswith(prefix))]
        for _ in foreign:
            what = f"Value returned from {self.name}{self.at(location)}"
            invocation.context.warn(f"Module '{module}': {what} must use keys qualified with the name of the module")
        return DataFile({key: value for key, value in file.data.items() if key not in foreign}) if foreign else file

    # --- lookup_key ---

    def _by_key(self, invocation: Invocation, location: Location | None, key: Key) -> Value:
        cache = self._cache(location)
        if key.root not in cache.values:
            try:
                if self.entry.function == "eyaml_lookup_key":
                    value = self._decrypted(invocation, location, key.root)
                else:
                    context = self._context(invocation, location).instance()
                    value = self._call(invocation, [key.root, self._options(location), context])
            except NotFoundInData:
                invocation.tell("not_found", key.root)
                return MISSING
            cache.values[key.root] = self._checked(value, f"Value for key '{key.root}', returned from {self.name}{self.at(location)}")
        value = cache.values[key.root]
        invocation.tell("found", key.root, value)
        return value

    def _decrypted(self, invocation: Invocation, location: Location | None, key: str) -> Value:
        if location is None:
            raise BadUse(without_path("eyaml_lookup_key", "lookup_key"))
        return decrypted_value(invocation, key, self._options(location), self.name)

    # --- data_dig ---

    def _by_digging(self, invocation: Invocation, location: Location | None, key: Key) -> Value:
        cache = self._cache(location)
        if key.text not in cache.values:
            try:
                context = self._context(invocation, location).instance()
                value = self._call(invocation, [[key.root, *key.segments], self._options(location), context])
            except NotFoundInData:
                invocation.tell("not_found", key.text)
                return MISSING
            cache.values[key.text] = self._checked(value, f"Value for key '{key.text}', returned from {self.name}{self.at(location)}")
        value = cache.values[key.text]
        invocation.tell("found", key.text, value)
        return key.undug(value)

    # --- hiera3_backend ---

    def _in_ruby(self, invocation: Invocation, location: Location | None, key: Key) -> Value:
        backend = self.entry.function
        raise DataError(
            f"The backend '{backend}' is written in Ruby (hiera/backend/{backend.lower()}_backend.rb), which is not run here",
            where=Place(self.provider.config_path),
            hint="Use yaml_data, json_data, hocon_data or eyaml_lookup_key, or write a lookup_key function in the Puppet language or "
            "in Python.",
        )

    # --- functions ---

    @property
    def name(self) -> str:
        if self.entry.kind == "v4_data_hash":
            return f"deprecated API function '{self.entry.function}'"
        return f"{self.entry.kind} function '{self.entry.function}'"

    def at(self, location: Location | None) -> str:
        return f", when using location '{location.text}'," if location is not None else ""

    def _options(self, location: Location | None) -> dict[str, Value]:
        return self.options if location is None else {**self.options, location.kind: location.text}

    def _cache(self, location: Location | None) -> Cache:
        return self._caches.setdefault(location, Cache())

    def _context(self, invocation: Invocation, location: Location | None) -> LookupContext:
        return LookupContext(invocation, self.provider.module, self._cache(location))

    def _call(self, invocation: Invocation, args: list[Value]) -> Any:
        function = self._loaded(invocation)
        try:
            return function.call(invocation.context.scope, args)
        except EvaluationError as error:
            if error.where is None and not isinstance(error, DataError | BadUse):
                placed = located(error)
                if placed.where is FINAL:  # the call itself is wrong, nothing in the function
                    raise BadUse(error.message, hint=error.hint) from error
                raise placed from error
            raise

    def _loaded(self, invocation: Invocation) -> Function:
        if self._function is None:
            found = invocation.context.function(self.entry.function)
            if found is None:
                raise DataError(
                    f"Unable to find '{self.entry.kind}' function named '{self.entry.function}'",
                    where=Place(self.provider.config_path),
                    hint=_place_of(self.entry.function),
                )
            self._function = found
            self._validated = self._promises(invocation, found)
        return self._function

    def _promises(self, invocation: Invocation, function: Function) -> bool:
        """Whether all signatures declare to return data; an error when one declares something else."""
        trusted = _TRUSTED if self.entry.kind == "data_hash" else RICH_DATA
        declared = [signature.returns for signature in function.signatures(invocation.context.types)]
        for returns in declared:
            if returns is not None and not trusted.accepts(returns, None):
                subject = f"Return type of '{self.entry.kind}' function named '{self.entry.function}'"
                text = describe_mismatch(subject, trusted, returns)
                raise EvaluationError(text.replace(f"{subject} ", f"{subject} is incorrect, ", 1))
        return bool(declared) and all(returns is not None for returns in declared)

    def _checked(self, value: Value, subject: str) -> Value:
        if self._validated or RICH_DATA.instance(value):
            return value
        raise EvaluationError(f"{subject} has wrong type, expects Puppet::LookupValue, got {infer(value)}")


def decrypted_value(invocation: Invocation, key: str, options: Mapping[str, Any], name: str) -> Value:
    """
    A value of the YAML file at `options["path"]`, with what is encrypted in it in the clear.

    Raises:
        NotFoundInData: the file does not have the key. DataError: it cannot be decrypted; the message says nothing of the value.
    """
    sources = invocation.lookups.sources
    path = str(options["path"])
    file = sources.data.read("yaml_data", path, invocation.context.warn)
    if key not in file.data:
        raise NotFoundInData
    value, _ = file.value(key, lambda: f"{name}, when using location '{path}',")

    def opened(value: Value) -> Value:
        if isinstance(value, str):
            try:
                return interpolated(invocation, decrypted(value, lambda: sources.keys(options)))
            except (BadData, Unsupported) as error:
                raise DataError(f"A value cannot be decrypted when looking up {key} in {path}: {error.message}", hint=error.hint) from error
        if isinstance(value, list):
            return [opened(item) for item in value]
        if isinstance(value, dict):
            return {key_of(interpolated(invocation, name)): opened(item) for name, item in value.items()}
        return value

    return opened(value)


def _place_of(function: str) -> str:
    module, colons, rest = function.partition("::")
    if not colons:
        return f"It would be in functions/{function}.pp of the environment."
    path = posixpath.join(*rest.split("::"))
    if module == "environment":
        return f"It would be in functions/environment/{path}.pp of the environment."
    return f"It would be in the module {module}: functions/{path}.pp, or lib/puppet/functions/{module}/{path}.py."
