"""The key `lookup_options` of the data: how other keys are merged and converted. Source: language reference 18.5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from .errors import DataError, LookupUsageError
from .keys import LookupKey
from .merging import HASH

OPTIONS = "lookup_options"


def is_options_key(key: str) -> bool:
    """Return whether a key names lookup_options, which cannot be looked up."""
    return key == OPTIONS or key.startswith(f"{OPTIONS}.")


@dataclass(frozen=True)
class LookupOptions:
    """The options by exact key, and by pattern in the order of the data."""

    by_key: Mapping[str, Any] = field(default_factory=dict)
    by_pattern: tuple[tuple[Regexp, Any], ...] = ()

    @classmethod
    def compile(cls, options: Mapping[str, Any] | None) -> LookupOptions:
        """Return validated options, as the data has them, in this form; LookupUsageError when a pattern is malformed."""
        options = options or {}
        patterns = []
        for key, value in options.items():
            if str(key).startswith("^"):
                pattern = Regexp(str(key))
                try:
                    _ = pattern.pattern
                except EvaluationError as error:
                    raise LookupUsageError(error.message, hint=error.hint) from error
                patterns.append((pattern, value))
        return cls({key: value for key, value in options.items() if not str(key).startswith("^")}, tuple(patterns))

    def for_key(self, key: LookupKey) -> Mapping[str, Any]:
        """Return the options of a key: those by its name, else those of the first pattern that matches it."""
        options = self.by_key.get(key.root)
        if options is None:
            options = next((value for pattern, value in self.by_pattern if pattern.search(key.root)), None)
        return options if isinstance(options, dict) else {}


def validate_options(options: Any, module: str | None) -> Mapping[str, Any]:
    """Return `options`; raise DataError when they are not a hash, or a module's have keys or patterns that are not of the module."""
    if not isinstance(options, dict):
        raise DataError(f"value of {OPTIONS} must be a hash")
    prefix = f"{module}::"
    for key in options if module is not None else ():
        if str(key).startswith("^"):
            if str(key)[1 : len(prefix) + 1] != prefix:
                raise DataError(f"all {OPTIONS} patterns must match a key starting with module name '{module}'")
        elif not str(key).startswith(prefix):
            raise DataError(f"all {OPTIONS} keys must start with module name '{module}'")
    return options


def merge_options(higher: Mapping[str, Any] | None, lower: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the options of two layers as one; None when neither has any."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    merged = HASH.merge(dict(higher), dict(lower))
    return merged if isinstance(merged, dict) else None
