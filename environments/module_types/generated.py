"""
Resource types as `puppet generate types` writes them: a manifest that holds one `Puppet::Resource::ResourceType3.new(…)`.

Puppet's own masters read them instead of the Ruby source, so that environments do not see each other's types. So does this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from language.syntax import nodes as n
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import ParseError

from .models import DeclaredAttribute, DeclaredType, TitlePattern

FOLDER = ".resource_types"
"""The folder of generated types in an environment."""
_TYPE, _PARAM = "Puppet::Resource::ResourceType3", "Puppet::Resource::Param"
_BOOLEAN = {"true", "false"}


def read_generated(name: str, text: str, path: str) -> DeclaredType:
    """
    Return the type `name` that the text declares.

    Raises:
        ParseError: the text is not what `puppet generate types` writes, or declares another type.
    """
    source = Source(text, path)
    call = parse(source).body
    while isinstance(call, n.BlockExpression) and len(call.statements) == 1:
        call = call.statements[0]
    if not (
        isinstance(call, n.MethodCall)
        and call.name == "new"
        and isinstance(call.receiver, n.QualifiedReference)
        and call.receiver.value == _TYPE
    ):
        raise _error(source, call, f"Not a declaration of a resource type; expected {_TYPE}.new(…)")
    arguments = list(call.arguments)
    if not arguments or not isinstance(arguments[0], n.StringLiteral) or arguments[0].value.lower() != name:
        raise _error(source, call, f"The file declares another type than {name}")
    isomorphic = arguments[4].value if len(arguments) > 4 and isinstance(arguments[4], n.BooleanLiteral) else True
    return DeclaredType(
        name,
        tuple(_attributes(source, arguments[1:2])),
        tuple(_attributes(source, arguments[2:3])),
        tuple(_patterns(source, arguments[3:4])),
        isomorphic,
        explicit_namevars=True,
    )


def _error(source: Source, node: n.SyntaxNode, message: str) -> ParseError:
    return ParseError(message, where=source.locate(node.at), hint="Rewrite it: puppet generate types --force")


def _attributes(source: Source, lists: Sequence[n.SyntaxNode]) -> Iterator[DeclaredAttribute]:
    for array in lists:
        if not isinstance(array, n.ArrayLiteral):
            raise _error(source, array, "A resource type's properties and parameters are lists")
        for call in array.values:
            functor = call.functor if isinstance(call, n.FunctionCall) else None
            if (
                not isinstance(call, n.FunctionCall)
                or not isinstance(functor, n.QualifiedReference)
                or functor.value != _PARAM
                or len(call.arguments) < 2
            ):
                raise _error(source, call, f"Not an attribute of a resource type; expected {_PARAM}(TYPE, NAME)")
            name = call.arguments[1]
            if not isinstance(name, n.StringLiteral):
                raise _error(source, name, "An attribute's name is text")
            flag = call.arguments[2] if len(call.arguments) > 2 else None
            yield DeclaredAttribute(name.value, isinstance(flag, n.BooleanLiteral) and flag.value)


def _patterns(source: Source, hashes: Sequence[n.SyntaxNode]) -> Iterator[TitlePattern]:
    for hash_node in hashes:
        if not isinstance(hash_node, n.HashLiteral):
            raise _error(source, hash_node, "A resource type's title patterns are a hash")
        for entry in hash_node.entries:
            names = entry.value.values if isinstance(entry.value, n.ArrayLiteral) else ()
            if not isinstance(entry.key, n.RegexpLiteral) or not names:
                raise _error(source, entry, "A title pattern is a regular expression and a list of names")
            yield entry.key.source, tuple(name.value for name in names if isinstance(name, n.StringLiteral))


def generated_manifest(type_: DeclaredType, now: datetime) -> str:
    """
    Return the manifest that declares a type.

    Raises:
        ValueError: the type is open, or its titles could not be read.
    """
    patterns = type_.patterns()
    if type_.open or patterns is None:
        raise ValueError(type_.open or "its title patterns cannot be read")
    lines = [
        f"# This file was automatically generated on {now:%Y-%m-%d %H:%M:%S %z}.",
        "# Use the 'puppet generate types' command to regenerate this file.",
        "",
        *_comment(type_.doc, ""),
        f"{_TYPE}.new(",
        f"  {_quoted(type_.name)},",
        "  [",
        *_attribute_lines(type_.properties, ()),
        "  ],",
        "  [",
        *_attribute_lines(type_.parameters, type_.namevars),
        "  ],",
        "  {",
        *(
            f"    {_delimited(source)} => [{', '.join(map(_quoted, names))}]{',' if index < len(patterns) else ''}"
            for index, (source, names) in enumerate(patterns, 1)
        ),
        "  },",
        f"  {str(type_.isomorphic).lower()},",
        "  false)",
    ]
    return "\n".join(lines) + "\n"


def _attribute_lines(attributes: Sequence[DeclaredAttribute], namevars: Sequence[str]) -> Iterator[str]:
    for index, attribute in enumerate(attributes, 1):
        yield from _comment(attribute.doc, "    ")
        flag = ", true" if attribute.namevar or attribute.name in namevars else ""
        yield f"    {_PARAM}({_value_type(attribute)}, {_quoted(attribute.name)}{flag}){',' if index < len(attributes) else ''}"
        if index < len(attributes):
            yield ""


def _value_type(attribute: DeclaredAttribute) -> str:
    """Return the type of the language that has the attribute's values; when true and false are among them, booleans too."""
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
    """Return a regular expression between slashes, with each unescaped slash inside escaped."""
    parts: list[str] = []
    offset = 0
    while offset < len(source):
        if source[offset] == "\\" and offset + 1 < len(source):
            parts.append(source[offset : offset + 2])
            offset += 2
            continue
        parts.append("\\/" if source[offset] == "/" else source[offset])
        offset += 1
    return "/" + "".join(parts) + "/"
