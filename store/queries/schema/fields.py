"""The fields of entities: the kind of each value, which decides how it is compared and shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """The kind of a field's value."""

    TEXT = auto()
    INTEGER = auto()
    BOOLEAN = auto()
    TIME = auto()
    """Microseconds since the epoch."""
    STATE_TIME = auto()
    """The same, but without an order: since when a node is deactivated or expired."""
    JSON = auto()
    """Any value, compared with its type."""
    SERIALIZED = auto()
    """Any value, compared as its JSON; `<` and `>` make no sense of it."""
    PATH = auto()
    """A path of a fact: strings and integers."""
    LIST = auto()
    """A list of strings; comparisons look at its elements."""
    TAG = auto()
    """The same, compared in lower case."""
    DOCUMENT = auto()
    """An object that dotted fields look into."""
    LATEST_REPORT = auto()
    """True for a row of its node's latest report."""
    ROWS = auto()
    """A list or an object that is made of other rows; it is only shown."""
    PACKED = auto()
    """A list that is stored compressed; it is only shown."""


@dataclass(frozen=True, slots=True)
class MemberLink:
    """The form in which a member of a row is shown: an address for it, made with another field of the row, and its `data`."""

    path: str
    key: str
    """The field whose value stands in `path` for `{}`."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an entity."""

    name: str
    kind: Kind = Kind.TEXT
    is_queryable: bool = True
    is_projectable: bool = True
    is_nullable: bool = True
    link: MemberLink | None = None
    has_dotted: bool = False
    """True: dotted names may lead into its value."""
