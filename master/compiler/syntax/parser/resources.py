"""Resources: declarations, defaults, overrides, and the attributes of all of them."""

from __future__ import annotations

from dataclasses import replace

from ..lexer import KEYWORDS
from ..nodes import (
    Access,
    Attribute,
    AttributeSplat,
    Entry,
    Hash,
    Name,
    Node,
    Nop,
    Resource,
    ResourceBody,
    ResourceDefaults,
    ResourceOverride,
    String,
    TypeName,
)
from .cursor import Cursor
from .statements import in_block, with_calls

_ATTRIBUTE_NAMES = (KEYWORDS - {"true", "false"}) | {"name", "plan"}
_ARROWS = frozenset(("=>", "+>"))
_NEVER_FIRST = frozenset(("and", "or", "in", "else", "elsif", "inherits"))  # of an expression


class Resources(Cursor):
    """The part of the grammar between relationships and expressions."""

    def resource(self) -> Node:
        """
        resource = ("@" | "@@") resource
                 | "class" "{" bodies [";"] "}"
                 | expression ("{" (bodies [";"] | attributes [","]) "}")*

        The place of a resource and of its bodies is its type's first character, or its `@`.
        """
        kind = self.kind
        if kind == "@" or kind == "@@":
            return self.virtual()
        if kind == "class" and self.following() == "{":
            left: Node = self.class_resource()
        else:
            left = self.expression()
        while self.kind == "{":
            left = self.resource_behind(left)
        return left

    def virtual(self) -> Node:
        """A resource marked virtual or exported."""
        form, at = self.kind, self.at
        self.deeper()
        self.advance()
        inner = self.resource()
        self.depth -= 1
        if isinstance(inner, Resource):
            bodies = tuple(replace(body, at=at) for body in inner.bodies)
            return replace(inner, at=at, form=form, bodies=bodies)
        if isinstance(inner, ResourceDefaults | ResourceOverride):
            return replace(inner, at=at, form=form)
        what = "Virtual (@)" if form == "@" else "Exported (@@)"
        raise self.source.error(f"{what} can only be applied to a Resource Expression", at)

    def class_resource(self) -> Node:
        """`class { 'name': … }`"""
        at = self.at
        name = Name(at, self.token_end, "class")
        self.advance()
        self.advance()
        bodies = self.bodies(at)
        self.take("}")
        return Resource(at, self.last_end, "", name, bodies)

    def resource_behind(self, left: Node) -> Node:
        """What a `{` behind an expression makes of it."""
        brace = self.at
        self.deeper()
        self.advance()
        if self.attributes_ahead():
            attributes = self.attributes()
            self.accept(",")
            self.take("}")
            found = self.untitled(left, attributes, brace)
        else:
            bodies = self.bodies(left.at)
            self.take("}")
            found = Resource(left.at, self.last_end, "", left, bodies)
        self.depth -= 1
        return found

    def attributes_ahead(self) -> bool:
        """Whether attributes follow, and not a title."""
        if self.kind in ("}", ","):
            return True
        if self.kind == "*":
            return self.following() == "=>"
        return self.kind in _NEVER_FIRST or (self.kind in _ATTRIBUTE_NAMES and self.following() in _ARROWS)

    def bodies(self, at: int) -> tuple[ResourceBody, ...]:
        """bodies = expression ":" attributes [","] (";" bodies)*, and a last `;`"""
        found = []
        while True:
            title = self.expression()
            self.take(":")
            attributes = self.attributes()
            self.accept(",")
            found.append(ResourceBody(at, self.last_end, title, attributes))
            if not self.accept(";") or self.kind == "}":
                return tuple(found)

    def attributes(self) -> tuple[Attribute | AttributeSplat, ...]:
        """
        attributes = [attribute] ("," attribute)*
        attribute = (NAME | keyword) ("=>" | "+>") expression | "*" "=>" expression
        """
        found: list[Attribute | AttributeSplat] = []
        while True:
            kind, text, at = self.kind, self.text, self.at
            if kind in _ATTRIBUTE_NAMES:
                self.advance()
                op = self.kind
                if op not in _ARROWS:
                    self.unexpected()
                self.advance()
                value = self.expression()
                found.append(Attribute(at, value.end, text, op, value))
            elif kind == "*":
                self.advance()
                self.take("=>")
                value = self.expression()
                found.append(AttributeSplat(at, value.end, value))
            if self.kind != "," or (self.following() not in _ATTRIBUTE_NAMES and self.following() != "*"):
                return tuple(found)
            self.advance()

    def untitled(self, left: Node, attributes: tuple[Attribute | AttributeSplat, ...], brace: int) -> Node:
        """Defaults behind a type, an override behind a reference; behind a name the hash it looks like."""
        at, end = left.at, self.last_end
        if isinstance(left, TypeName):
            return ResourceDefaults(at, end, "", left, attributes)
        if isinstance(left, Access):
            return ResourceOverride(at, end, "", left, attributes)
        if not isinstance(left, Name):
            raise self.source.error("Expression is not valid as a resource, resource-default, or resource-override", at)
        entries = []
        for each in attributes:
            if isinstance(each, Attribute) and each.op == "+>":
                raise self.source.error("Syntax error resource body without title or hash with +>", brace)
            key: Node = String(brace, brace, each.name) if isinstance(each, Attribute) else Nop(each.at, each.at)
            entries.append(Entry(brace, end, key, each.value))
        hash_ = Hash(brace, end, tuple(entries))
        return in_block(with_calls(self.source, [[left], [hash_]], []), at, end)
