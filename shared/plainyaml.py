"""
YAML as plain data, both ways.

Reading never constructs anything but maps, lists, strings, numbers, booleans, null and times. Ruby's own tags are
read as what they wrap, when their class is on the allow-list; every other tag is an error. Writing can put Ruby's tags
back, because third-party tools read the files that Puppet leaves (reports, state, facts).
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from . import yamlwriter
from .errors import BadData
from .names import shown
from .yamlwriter import OldSymbol, RubyObject, Symbol, Timestamp

MAX_DEPTH = 100  # levels of nesting
MAX_EXPANSION = 1_000_000  # nodes, when aliases are allowed and counted each time they are used

_RUBY = re.compile(r"!ruby/(object|hash|sym|symbol|array|string|class|struct)(?::([\w:]+))?")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

ALLOWED_CLASSES = frozenset(
    {
        "Puppet::Transaction::Report",
        "Puppet::Transaction::Event",
        "Puppet::Resource::Status",
        "Puppet::Util::Log",
        "Puppet::Util::Metric",
        "Puppet::Util::TagSet",
        "Puppet::Node",
        "Puppet::Node::Facts",
        "Puppet::Node::Environment",
        "Puppet::Resource",
        "Puppet::Resource::Catalog",
        "Puppet::SSL::Host",
        "Puppet::Status",
        "Hash",
        "ActiveSupport::HashWithIndifferentAccess",
        "Set",
        "Array",
        "String",
        "Symbol",
    }
)


class _Plain(_LOADER):  # type: ignore[misc]
    """The safe loader, plus Ruby's tags as plain data."""


def _ruby(loader: Any, suffix: str, node: yaml.Node) -> Any:
    match = _RUBY.fullmatch("!ruby/" + suffix)
    if not match or (match[2] and match[1] not in ("sym", "symbol") and match[2] not in ALLOWED_CLASSES):
        raise BadData(f"The YAML tag {shown('!ruby/' + suffix)} is not allowed", where=None)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


def _str(loader: Any, node: yaml.Node) -> str:
    """Ruby writes symbols as `:name`; unquoted they are read as their name."""
    text: str = loader.construct_scalar(node)
    if not getattr(node, "style", None) and text[:1] == ":" and len(text) > 1:
        return text[1:]
    return text


_Plain.add_multi_constructor("!ruby/", _ruby)
_Plain.add_constructor("tag:yaml.org,2002:str", _str)


class _TimesAsText(_Plain):
    """Times stay the text they were written as, with their nanoseconds."""


_TimesAsText.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Plain.yaml_implicit_resolvers.items()
}
_TimesAsText.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))
PlainLoader: Any = _Plain


def loads(body: bytes | str, *, aliases: bool = False, times: bool = False, loader: Any = None) -> Any:
    """
    The value of one YAML document.

    Args:
        aliases: anchors and aliases are accepted; what they expand to is counted before anything is built.
        times: timestamps become `datetime`; otherwise they stay text.
        loader: a loader of one's own, made from PlainLoader.
    Raises:
        BadData: not YAML, a forbidden tag, an alias, nesting beyond MAX_DEPTH, an expansion beyond MAX_EXPANSION.
    """
    try:
        text = body.decode("utf-8") if isinstance(body, bytes) else body
    except UnicodeDecodeError as err:
        raise BadData(f"Not YAML: byte {err.start} is not UTF-8") from err
    try:
        _check(text, aliases)
        return yaml.load(text, Loader=loader or (_Plain if times else _TimesAsText))  # noqa: S506  # a safe loader, see above
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        place = f" (line: {mark.line + 1}, column: {mark.column + 1})" if mark else ""
        raise BadData(f"Not YAML: {err.problem or err.context}{place}") from err
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as err:
        raise BadData(f"Not YAML: {str(err).splitlines()[0] if str(err) else type(err).__name__}") from err


_MARK = re.compile(rb"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*(?:---(?=[ \t\r\n]|\Z))?")


def first_document(body: bytes) -> bytes:
    """Return what stands before the end of the first YAML document, which is all that Ruby reads of several; places stay as they are."""
    prologue = _PROLOGUE.match(body)
    end = _MARK.search(body, prologue.end() if prologue else 0)
    return body[: end.start()] if end else body


def _check(text: str, aliases: bool) -> None:
    """Walk the events: bound the depth, refuse aliases or count what they expand to, allow one document."""
    sizes: dict[str, int | None] = {}  # anchor -> nodes below it; None while it is open
    open_: list[tuple[str | None, int]] = []
    count = 0
    documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise BadData("Not one YAML document but several")
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor or "")
            if not aliases:
                raise BadData("YAML aliases are not accepted")
            if size is None:
                raise BadData("A YAML alias stands inside what it names")
            count += size
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, count))
            count += 1
            if event.anchor:
                sizes[event.anchor] = None
            if len(open_) > MAX_DEPTH:
                raise BadData(f"YAML nested more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                sizes[event.anchor] = 1
        if count > MAX_EXPANSION:
            raise BadData(f"YAML of more than {MAX_EXPANSION} nodes")


def dumps(data: Any) -> bytes:
    """`data` as one YAML document in UTF-8, starting with `---`; key order is kept."""
    return yamlwriter.write(data).encode("utf-8", "surrogatepass")


__all__ = [
    "ALLOWED_CLASSES",
    "MAX_DEPTH",
    "MAX_EXPANSION",
    "OldSymbol",
    "PlainLoader",
    "RubyObject",
    "Symbol",
    "Timestamp",
    "dumps",
    "loads",
]
