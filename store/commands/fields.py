"""Reads the members of JSON objects by their types."""

from __future__ import annotations

from collections.abc import Iterator

from ..timestamps import parse_timestamp
from .commands import MAX_KEY, Json, PayloadRejected


class Fields:
    """
    The members of a JSON object. PayloadRejected names the member that is missing or of another type.

    What is optional may be missing or null.
    """

    __slots__ = ("_members", "_owner")

    def __init__(self, value: Json, owner: str) -> None:
        """`owner` is the owner of these members, for messages."""
        if not isinstance(value, dict):
            raise PayloadRejected(f"{owner} must be a JSON object")
        self._members = value
        self._owner = owner

    def check_names(self, required: frozenset[str], optional: frozenset[str]) -> None:
        """Refuse members that are unknown, and the lack of required ones."""
        self.require(required)
        if unknown := sorted(self._members.keys() - required - optional):
            raise PayloadRejected(f"{self._owner} has unknown keys: {', '.join(unknown)}")

    def require(self, names: frozenset[str]) -> None:
        """Refuse the lack of one of these members; null is enough."""
        if missing := sorted(names - self._members.keys()):
            raise PayloadRejected(f"{self._owner} lacks the keys: {', '.join(missing)}")

    def has(self, name: str) -> bool:
        """Return whether the member is there and not null."""
        return self._members.get(name) is not None

    def has_any(self, names: frozenset[str]) -> bool:
        """Return whether one of these members is there."""
        return not names.isdisjoint(self._members)

    def has_only(self, names: frozenset[str]) -> bool:
        """Return whether these members are there, and no others."""
        return names == self._members.keys()

    def value(self, name: str) -> Json:
        """Return a member of any type; None where it is missing."""
        return self._members.get(name)

    def text(self, name: str) -> str:
        value = self._members.get(name)
        if not isinstance(value, str):
            raise self._mistyped(name, "a string")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._members.get(name) is None else self.text(name)

    def certname(self) -> str:
        """Return the text of `certname`, which is not blank."""
        name = self.text("certname")
        if not name.strip():
            raise PayloadRejected(f"{self._owner} has an empty certname")
        if len(name) > MAX_KEY:
            raise PayloadRejected(f"{self._owner} has a certname of {len(name)} characters; at most {MAX_KEY} are allowed")
        return name

    def boolean(self, name: str) -> bool:
        value = self._members.get(name)
        if not isinstance(value, bool):
            raise self._mistyped(name, "a boolean")
        return value

    def optional_boolean(self, name: str) -> bool | None:
        return None if self._members.get(name) is None else self.boolean(name)

    def integer(self, name: str) -> int:
        value = self._members.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
            raise self._mistyped(name, "an integer of 32 bits")
        return value

    def optional_integer(self, name: str) -> int | None:
        return None if self._members.get(name) is None else self.integer(name)

    def time(self, name: str) -> int:
        """Return a time in microseconds since the epoch."""
        try:
            return parse_timestamp(self.text(name))
        except ValueError as err:
            raise PayloadRejected(f"{self._owner}: {name}: {err}") from err

    def object(self, name: str) -> dict[str, Json]:
        value = self._members.get(name)
        if not isinstance(value, dict):
            raise self._mistyped(name, "an object")
        return value

    def array(self, name: str) -> list[Json]:
        value = self._members.get(name)
        if not isinstance(value, list):
            raise self._mistyped(name, "a list")
        return value

    def texts(self, name: str) -> list[str]:
        values = self.array(name)
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) < len(values):
            raise self._mistyped(name, "a list of strings")
        return texts

    def tuples(self, name: str, length: int) -> Iterator[tuple[str, ...]]:
        """Yield the elements of a list whose elements are lists of this many strings each."""
        for value in self.array(name):
            texts = tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
            if not isinstance(value, list) or not len(value) == len(texts) == length:
                raise self._mistyped(name, f"a list of lists of {length} strings each")
            yield texts

    def objects(self, name: str, owner: str) -> Iterator[Fields]:
        """Yield the members of each object in a list of objects."""
        for value in self.array(name):
            yield Fields(value, owner)

    def _mistyped(self, name: str, type_name: str) -> PayloadRejected:
        return PayloadRejected(f"{self._owner}: {name} must be {type_name}")
