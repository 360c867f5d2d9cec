"""
Resource types as `puppet generate types` writes them: a manifest that holds one `Puppet::Resource::ResourceType3.new(…)`.

Real masters read them instead of the Ruby source, so that environments do not see each other's types; so do we.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from shared.errors import ParseError

from ..compiler.syntax import nodes as n
from ..compiler.syntax.parser import parse
from ..compiler.syntax.source import Source
from .models import DeclaredAttribute, DeclaredType, TitlePattern

__all__ = ["FOLDER", "read_generated", "written"]

FOLDER = ".resource_types"
"""Below an environment."""
_TYPE, _PARAM = "Puppet::Resource::ResourceType3", "Puppet::Resource::Param"
_BOOLEAN = {"true", "false"}


def read_generated(name: str, text: str, path: str) -> DeclaredType:
    """
    The type `name` that the text declares.

    Raises:
        ParseError: it is not what `puppet generate types` writes, or declares another type.
    """
    source = Source(text, path)
    call = parse(source).body
    while isinstance(call, n.Block) and len(call.statements) == 1:
        call = call.statements[0]
    if not (
        isinstance(call, n.MethodCall) and call.name == "new" and isinstance(call.receiver, n.TypeName) and call.receiver.value == _TYPE
    ):
        raise _odd(source, call, f"Not a declaration of a resource type; wanted {_TYPE}.new(…)")
    given = list(call.arguments)
    if not given or not isinstance(given[0], n.String) or given[0].value.lower() != name:
        raise _odd(source, call, f"The file declares another type than {name}")
    isomorphic = given[4].value if len(given) > 4 and isinstance(given[4], n.Boolean) else True
    return DeclaredType(
        name,
        tuple(_attributes(source, given[1:2])),
        tuple(_attributes(source, given[2:3])),
        tuple(_patterns(source, given[3:4])),
        isomorphic,
        flagged=True,
    )


def _odd(source: Source, node: n.Node, message: str) -> ParseError:
    return ParseError(message, where=source.locate(node.at), hint="Write it anew: puppet generate types --force")


def _attributes(source: Source, lists: Sequence[n.Node]) -> Iterator[DeclaredAttribute]:
    for each in lists:
        if not isinstance(each, n.Array):
            raise _odd(source, each, "A resource type's properties and parameters are lists")
        for call in each.values:
            functor = call.functor if isinstance(call, n.Call) else None
            if not isinstance(call, n.Call) or not isinstance(functor, n.TypeName) or functor.value != _PARAM or len(call.arguments) < 2:
                raise _odd(source, call, f"Not an attribute of a resource type; wanted {_PARAM}(TYPE, NAME)")
            name = call.arguments[1]
            if not isinstance(name, n.String):
                raise _odd(source, name, "An attribute's name is text")
            flag = call.arguments[2] if len(call.arguments) > 2 else None
            yield DeclaredAttribute(name.value, isinstance(flag, n.Boolean) and flag.value)


def _patterns(source: Source, hashes: Sequence[n.Node]) -> Iterator[TitlePattern]:
    for each in hashes:
        if not isinstance(each, n.Hash):
            raise _odd(source, each, "A resource type's title patterns are a hash")
        for entry in each.entries:
            names = entry.value.values if isinstance(entry.value, n.Array) else ()
            if not isinstance(entry.key, n.Regex) or not names:
                raise _odd(source, entry, "A title pattern is a regular expression and a list of names")
            yield entry.key.source, tuple(name.value for name in names if isinstance(name, n.String))


def written(declared: DeclaredType, now: datetime) -> str:
    """
    The manifest that declares the type.

    Raises:
        ValueError: the type is open, or its titles could not be read.
    """
    patterns = declared.patterns()
    if declared.open or patterns is None:
        raise ValueError(declared.open or "its title patterns cannot be read")
    lines = [
        f"# This file was automatically generated on {now:%Y-%m-%d %H:%M:%S %z}.",
        "# Use the 'puppet generate types' command to regenerate this file.",
        "",
        *_comment(declared.doc, ""),
        f"{_TYPE}.new(",
        f"  {_quoted(declared.name)},",
        "  [",
        *_listed(declared.properties, ()),
        "  ],",
        "  [",
        *_listed(declared.parameters, declared.namevars),
        "  ],",
        "  {",
        *(
            f"    {_delimited(source)} => [{', '.join(map(_quoted, names))}]{',' if at < len(patterns) else ''}"
            for at, (source, names) in enumerate(patterns, 1)
        ),
        "  },",
        f"  {str(declared.isomorphic).lower()},",
        "  false)",
    ]
    return "\n".join(lines) + "\n"


def _listed(attributes: Sequence[DeclaredAttribute], namevars: Sequence[str]) -> Iterator[str]:
    for at, each in enumerate(attributes, 1):
        yield from _comment(each.doc, "    ")
        flag = ", true" if each.namevar or each.name in namevars else ""
        yield f"    {_PARAM}({_type(each)}, {_quoted(each.name)}{flag}){',' if at < len(attributes) else ''}"
        if at < len(attributes):
            yield ""


def _type(attribute: DeclaredAttribute) -> str:
    """The values it takes as a type of the language; words for true and false are booleans too."""
    kinds: list[str] = []
    if _BOOLEAN & set(attribute.values):
        kinds.append("Boolean")
    if attribute.values:
        kinds.append(f"Enum[{', '.join(map(_quoted, attribute.values))}]")
    if attribute.patterns:
        kinds.append(f"Pattern[{', '.join(map(_delimited, attribute.patterns))}]")
    if not kinds:
        return "Any"
    return kinds[0] if len(kinds) == 1 else f"Variant[{', '.join(kinds)}]"


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"{indent}# {line}".rstrip()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _delimited(source: str) -> str:
    """Between slashes; a slash inside that is not escaped yet is."""
    out: list[str] = []
    at = 0
    while at < len(source):
        if source[at] == "\\" and at + 1 < len(source):
            out.append(source[at : at + 2])
            at += 2
            continue
        out.append("\\/" if source[at] == "/" else source[at])
        at += 1
    return "/" + "".join(out) + "/"
