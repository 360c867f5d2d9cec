"""A layer at work, for one compilation: the site's own data, the environment's, a module's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError

from ..compiler.types.containers import HASH
from ..compiler.values.core import Value
from .config import Config, Entry
from .datafiles import DataFile
from .failures import DataError
from .interpolation import Key, interpolated
from .invocations import Invocation
from .levels import Level
from .locations import Location, locations_of
from .merging import MISSING, Merge, typed

if TYPE_CHECKING:
    pass

__all__ = ["GlobalProvider", "Provider"]

_UNDEFINED = re.compile(r"Undefined variable '([^']+)'")


class _Slot:
    """A data file among all of a layer, read when it is first needed."""

    __slots__ = ("file", "level", "location")

    def __init__(self, level: Level, location: Location) -> None:
        self.level = level
        self.location = location
        self.file: DataFile | None = None

    def value(self, invocation: Invocation, root: str) -> Value:
        """The value of a top-level key, MISSING when the file does not have it."""
        file = self.file
        if file is None:
            file = self.file = self.level.hash_at(invocation, self.location)
        if root not in file.data:
            return MISSING
        value, marked = file.value(root, self._where)
        return interpolated(invocation, value) if marked else value

    def _where(self) -> str:
        return f"{self.level.name}{self.level.at(self.location)}"


class Provider:
    """The levels of one configuration, with the variables of a node put in; found anew when those change."""

    def __init__(self, place: str, config: Config, module: str | None = None) -> None:
        self.place = place
        self.config = config
        self.module = module
        self._levels: tuple[list[Level], list[Level]] | None = None
        self._reads: list[tuple[str, Value]] = []
        self._files: list[list[_Slot]] | None = None

    @property
    def config_path(self) -> str | None:
        return self.config.path

    @property
    def title(self) -> str:
        named = f'"{self.module}" ' if self.module is not None else ""
        return f"{self.place} {named}Data Provider ({self.config.name})"

    def find(self, invocation: Invocation, key: Key, merge: Merge, *, default: bool = False) -> Value:
        """
        The value of a key; MISSING when there is none.

        Raises:
            DataError, EvaluationError: the data or its configuration is wrong.
        """
        if invocation.explainer is None and not default and not invocation.extra_paths:
            self._resolve(invocation)
            if self._files is not None:
                return self._first(invocation, key) if merge.first else self._merged(invocation, key, merge)
        with invocation.within("data_provider", self.title, self.config.path, self.module):
            levels = self._resolve(invocation)[default]
            if not levels:
                invocation.tell("not_found", key.text)
                return MISSING
            return invocation.over(merge, levels, lambda level: level.find(invocation, key, merge))

    def _first(self, invocation: Invocation, key: Key) -> Value:
        """The short way through data files, when only the first value counts and nobody wants to know more."""
        root = key.root
        for slots in self._files or ():
            for slot in slots:
                value = slot.value(invocation, root)
                if value is not MISSING:
                    return value
        return MISSING

    def _merged(self, invocation: Invocation, key: Key, merge: Merge) -> Value:
        """The short way through data files for values that are merged: level by level, and those of a level first."""
        root = key.root
        result: Value = MISSING
        levels = self._files or []
        assert self._levels is not None
        for level, slots in zip(self._levels[0], levels, strict=True):
            found: Value = MISSING
            for slot in slots:
                value = slot.value(invocation, root)
                if value is not MISSING:
                    found = merge.converted(value) if found is MISSING else merge.merged(found, value)
            if found is MISSING:
                continue
            if len(level.locations) == 1:
                found = merge.single(slots[0].value(invocation, root)) if merge.strategy == "unique" else found
            result = merge.converted(found) if result is MISSING else merge.merged(result, found)
        return merge.single(found) if result is not MISSING and len(levels) == 1 else result

    # --- levels ---

    def _resolve(self, invocation: Invocation) -> tuple[list[Level], list[Level]]:
        """The levels of the hierarchy, and of the default hierarchy."""
        if self._levels is not None:
            for name, value in self._reads:
                if invocation.peek(name) != value:
                    if invocation.explainer is not None:
                        invocation.explainer.say(
                            "Hiera configuration recreated due to change of scope variables used in interpolation expressions"
                        )
                    break
            else:
                return self._levels
        reading = invocation.inner()
        reading.explainer = None
        reading.reads = []
        try:
            own = self._made(self.config.entries, reading)
            default = self._made(self.config.default_entries or (), reading)
        except EvaluationError as error:
            match = _UNDEFINED.match(error.message)
            if match is None and error.message.startswith("Interpolation using method"):
                raise self.config.failure(error.message) from error
            if match is None:
                raise
            line = self.config.line_of(rf"%\{{['\"]?{re.escape(match[1])}['\"]?}}")
            raise self.config.failure(f"Undefined variable '{match[1]}'", line) from error
        self._reads = list({name: (name, value) for name, value in reading.reads}.values())
        self._files = None
        if all(level.is_file for level in own):
            self._files = [[_Slot(level, each) for each in level.locations if each is not None and each.exists] for level in own]
        self._levels = (own, default)
        return self._levels

    def _made(self, entries: Sequence[Entry], reading: Invocation) -> list[Level]:
        found = []
        for entry in entries:
            locations = locations_of(entry, reading, reading.lookups.sources.data.files)
            if self.config.path is None and locations is not None:  # the default configuration: only what is there
                locations = [each for each in locations if each.exists]
                if not locations:
                    continue
            options: Any = interpolated(reading, dict(entry.options), methods=False) if entry.options else {}
            found.append(Level(entry, self, locations, options))
        return found


class GlobalProvider(Provider):
    """The site's own layer, which may be of version 3."""

    def find(self, invocation: Invocation, key: Key, merge: Merge, *, default: bool = False) -> Value:
        if self.config.version != 3:
            return super().find(invocation, key, merge)
        lookups = invocation.lookups
        inner = invocation
        if not invocation.old:
            inner = invocation.inner()
            inner.top_key, inner.module = invocation.top_key, invocation.module
            inner.old = True
            inner.global_only = inner.global_only or not lookups.has_environment_data(invocation)
        if self.config.merge.strategy != "default" and inner.hiera_call and merge.strategy == "hash":
            merge = self.config.merge
        value = super().find(inner, key, merge)
        if value is not MISSING and inner.hiera_call:
            self._check(key, merge, value)
        return value

    @staticmethod
    def _check(key: Key, merge: Merge, value: Value) -> None:
        """What the old functions insist on."""
        hashes = merge.strategy == "hash" or merge.deep
        if hashes:
            typed("value", HASH, value)
        if key.segments and merge.strategy in ("hash", "unique"):
            kind = "hash" if merge.strategy == "hash" else "array"
            raise DataError(f"Resolution type :{kind} is illegal when accessing values using dotted keys. Offending key was '{key.text}'")
