"""
YAML as plain data, both ways.

Reading never constructs anything but maps, lists, strings, numbers, booleans, null and times (see yamlscalars). libyaml takes the
text apart; its events are put together here, in one pass, within limits. Writing can restore Ruby's tags, because third-party
tools read the files that Puppet leaves (reports, state, facts).
"""

from __future__ import annotations

from typing import Any

from . import yamlwriter
from .yamlscalars import MAX_DEPTH, MAX_NODES, Core, Psych, Scalars, YamlError
from .yamlwriter import OldSymbol, RubyObject, Symbol, WrittenItems, YamlTimestamp

PSYCH = Psych()
CORE = Core()


def loads(body: bytes | str, *, aliases: bool = False, first: bool = False, scalars: Scalars = PSYCH) -> Any:
    """
    Return the value of one YAML document.

    Args:
        aliases: anchors and aliases are accepted; their expansion is counted before it is used.
        first: of several documents the first is read, as Ruby does; otherwise several are an error.
        scalars: the meaning of scalars: PSYCH, as in files of Ruby's programs, or CORE, as in messages of 3.x peers.
    Raises:
        BadData: not YAML, a forbidden tag, an alias, a number that is too long, more levels than MAX_DEPTH, more nodes than MAX_NODES.
    """
    from . import yamlreader  # PyYAML takes 1 MB and 10 ms, and most runs of an agent read no YAML

    return yamlreader.read(body, aliases, first, scalars)


def load_reader() -> None:
    """Load the YAML reader, so that a server's first document does not have to wait for it."""
    from . import yamlreader as yamlreader


def dumps(data: Any, items: WrittenItems | None = None) -> bytes:
    """Return `data` as one YAML document in UTF-8, starting with `---`; the order of keys is preserved. `items` caches parts of it."""
    return yamlwriter.write(data, items).encode("utf-8", "surrogatepass")


__all__ = [
    "CORE",
    "MAX_DEPTH",
    "MAX_NODES",
    "PSYCH",
    "OldSymbol",
    "RubyObject",
    "Symbol",
    "WrittenItems",
    "YamlError",
    "YamlTimestamp",
    "dumps",
    "loads",
]
